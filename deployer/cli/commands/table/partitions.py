"""`deployer table partitions|files`: draws the partition tree, and lists its files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName, TableName

if TYPE_CHECKING:
    from deployer.tables.layout.partitions.sizes import PartitionInfo

ID_WIDTH = 13  #: the width of a partition's id, and of `across leaves`: never cut, because `--partition` takes the id


def partitions(
    table: TableName,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Draw a table's partition tree: rows, bytes and files of each leaf."""
    from dataclasses import asdict

    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.inputs.table import looked_at
    from deployer.platform.text.formatting import count, size
    from deployer.specs.types.column_names import listed
    from deployer.tables.layout.partitions.sizes import partition_infos

    with looked_at(project, stack, specs, table) as opened:
        found = partition_infos(opened)
    files = opened.state.files
    across = files.count - sum(node.sizes.files for node in found if node.leaf)
    if as_json:
        print_json(
            {
                "table": opened.entry.full_name,
                "row_keys": list(opened.row_keys),
                "rows": files.rows,
                "bytes": files.bytes,
                "files": files.count,
                "files_across_leaves": across,
                "partitions": [asdict(node) for node in found],
            }
        )
        return 0
    leaves = count(sum(node.leaf for node in found), "leaf", "leaves")
    keys = f"by {listed(opened.row_keys)}" if opened.row_keys else "without row keys"
    held_in = f"{count(files.rows, 'row')} in {count(files.count, 'file')}, {size(files.bytes)}"
    stdout().print(f"{opened.entry.full_name} {keys}: {leaves}, {held_in}")
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    shown.add_column("partition", overflow="fold")
    for name in ("rows", "size", "files", *(["across"] if across else [])):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("id", no_wrap=True, min_width=ID_WIDTH)
    for drawn, node in zip(_drawn(found), found, strict=True):
        held = node.sizes
        cells = (f"{held.rows:,}", size(held.bytes), f"{held.files:,}") if node.leaf or held.files else ("", "", "")
        shared = ((f"~{held.across:,}" if held.across else ""),) if across else ()
        shown.add_row(drawn, *cells, *shared, node.partition)
    stdout().print(shown)
    if across:
        lie = "1 file lies" if across == 1 else f"{across:,} files lie"
        note(f"{lie} across leaves: look-ups find their rows by key, and `across` estimates how many a leaf has")
    return 0


def files(
    table: TableName,
    partition: Annotated[
        str | None, typer.Option(help="Only files of the partition with this id, and below it.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Show at most this many; 0 for all. --json has all.")] = 100,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """List a table's files in the order of their keys: partition, rows, bytes, first and last key."""
    from dataclasses import asdict

    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.inputs.table import looked_at
    from deployer.platform.text.formatting import size
    from deployer.tables.layout.partitions.sizes import file_infos

    with looked_at(project, stack, specs, table) as opened:
        found = file_infos(opened, partition)
    if as_json:
        print_json({"table": opened.entry.full_name, "files": [asdict(file) for file in found]})
        return 0
    if not found:
        note("there are no files")
        return 0
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    shown.add_column("fragment", justify="right")
    shown.add_column("partition", no_wrap=True, min_width=ID_WIDTH)
    for name in ("rows", "size"):
        shown.add_column(name, justify="right", no_wrap=True)
    for name in ("first key", "last key", "sorted"):
        shown.add_column(name)
    for file in found[: limit or None]:
        shown.add_row(
            f"{file.fragment}",
            file.partition or "across leaves",
            f"{file.rows:,}",
            size(file.bytes),
            _key(file.first_key),
            _key(file.last_key),
            "yes" if file.sorted else "no",
        )
    stdout().print(shown)
    if limit and len(found) > limit:
        note(f"{len(found) - limit:,} more: give --limit 0 for all")
    return 0


def _drawn(nodes: list[PartitionInfo]) -> list[str]:
    """Returns the text of each node with the lines of the tree before it."""
    last = {node.parent: node.partition for node in nodes}  # the last child of each parent
    open_: list[bool] = []  # for each depth above, whether more children follow
    lines = []
    for node in nodes:
        del open_[max(node.depth - 1, 0) :]
        is_last = last[node.parent] == node.partition
        guides = "".join("│  " if more else "   " for more in open_)
        branch = ("└─ " if is_last else "├─ ") if node.depth else ""
        lines.append(f"{guides}{branch}{_range(node)}")
        if node.depth:
            open_.append(not is_last)
    return lines


def _range(node: PartitionInfo) -> str:
    if node.lower is None and node.upper is None:
        return "all keys"
    if node.lower is None:
        return f"below {_key(node.upper)}"
    return f"from {_key(node.lower)}" + (f" to below {_key(node.upper)}" if node.upper is not None else "")


def _key(key: Any) -> str:
    if key is None:
        return "unknown"
    text = ", ".join(map(str, key)) if isinstance(key, list) else str(key)
    return (text if len(text) <= 40 else f"{text[:39]}…").replace("\n", "⏎") or '""'
