"""`deployer describe`: everything about one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName, TableName

if TYPE_CHECKING:
    from deployer.tables.inspect.describe import TableDescription, ViewInfo


def describe(
    table: TableName,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Show a table's columns, keys, partitions with their rows, storage and versions."""
    from deployer.cli.console.output import print_json
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.state.model.times import as_document
    from deployer.tables.inspect.describe import describe as described
    from deployer.tables.read.table import open_table

    root = root_to_read(project, stack, specs)
    found = described(open_table(root, table).opened)
    if as_json:
        print_json(as_document(found))
    else:
        _print(found)
    return 0


def _print(found: TableDescription) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.filesize import decimal
    from rich.table import Table

    from deployer.cli.console.output import stdout
    from deployer.platform.text.formatting import count
    from deployer.specs.types.column_names import listed

    console, summary = stdout(), found.summary
    console.print(f"{summary.name}" + (f": {found.description.strip()}" if found.description.strip() else ""))
    facts = {
        "rows": f"{summary.rows:,} in {count(summary.files, 'file')}, {decimal(summary.bytes)}",
        "row keys": (listed(found.row_keys) or "none") + (" (unique)" if found.unique else ""),
        "sort keys": listed(found.sort_keys) or "none",
        "version": f"{found.lance_version} (state {found.state_version}, generation {found.generation})",
        "last write": summary.last_write.strftime("%Y-%m-%d %H:%M:%S UTC") if summary.last_write else "never",
        "online": "yes" if summary.online else "no: services and splits of leaves do not run on it by themselves",
        "deletion protection": "yes" if found.deletion_protection else "no",
        **({"changes kept": found.retain_changes} if found.retain_changes else {}),
        "location": found.location,
        **(
            {"dataset": f"{found.dataset}; kept from before: {', '.join(found.retired) or 'none'}"}
            if found.dataset > 1
            else {}
        ),
        "table id": found.table_id,
        **{name.replace("_", " "): str(value) for name, value in found.storage.items() if value is not None},
        **({"tags": ", ".join(f"{k}={v}" for k, v in found.tags.items())} if found.tags else {}),
    }
    shown = Table(box=None, show_header=False, pad_edge=False)
    for name, value in facts.items():
        shown.add_row(name, value)
    console.print(shown)
    has_sources = any(column.source is not None for column in found.columns)
    headings = ("column", "type", "null", "key", *(["in files"] if has_sources else []), "description")
    columns = Table(*headings, box=SIMPLE_HEAD, pad_edge=False)
    for column in found.columns:
        null = "null" if column.nullable else "not null"
        in_files = [repr(column.source) if column.source is not None else ""] if has_sources else []
        key = ", ".join(filter(None, (column.key, "sensitive" if column.sensitive else "")))
        columns.add_row(column.name, column.type, null, key, *in_files, column.description.strip())
    console.print(columns)
    if found.view is not None:
        _print_view(found.view)
    if found.computed:
        computed = Table("computed column", "by", "rows", box=SIMPLE_HEAD, pad_edge=False)
        for each in found.computed:
            computed.add_row(each.name, each.definition + (" on load" if each.on_load else ""), each.summary)
        console.print(computed)
    if found.indexes:
        indexes = Table("index", "on", "status", box=SIMPLE_HEAD, pad_edge=False)
        indexes.add_column("rows in it", justify="right")
        indexes.add_column("not in it", justify="right")
        for index in found.indexes:
            parameters = "".join(f", {name} {value}" for name, value in index.parameters.items())
            waits = f"waits for {index.waits_for_rows:,}"
            status = Group(waits, "rows to learn from") if index.waits_for_rows else index.status
            rows = (f"{index.indexed_rows:,}", f"{index.unindexed_rows:,}")
            indexes.add_row(index.name, f"{listed(index.columns)}: {index.kind}{parameters}", status, *rows)
        console.print(indexes)
    if found.row_keys:
        leaves = Table(box=SIMPLE_HEAD, pad_edge=False)
        leaves.add_column("leaf from")
        leaves.add_column("to below")
        for name in ("rows", "size", "files"):
            leaves.add_column(name, justify="right")
        for leaf in found.leaves:
            ends = (_key(leaf.lower, "the first key"), _key(leaf.upper, "the last key"))
            leaves.add_row(*ends, f"{leaf.rows:,}", decimal(leaf.bytes), f"{leaf.files:,}")
        console.print(leaves)
    if found.unplaced_files:
        one = found.unplaced_files == 1
        lie, whose = ("file lies", "its") if one else ("files lie", "their")
        console.print(f"{found.unplaced_files:,} {lie} across leaves; look-ups find {whose} rows by key")


def _print_view(view: ViewInfo) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from deployer.cli.console.output import stdout

    refreshed = view.refreshed_at.strftime("%Y-%m-%d %H:%M:%S UTC") if view.refreshed_at else "never"
    behind = [f"{name} changed {at:%Y-%m-%d %H:%M:%S} UTC" for name, at in sorted(view.behind.items())]
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_row("query", view.query)
    for name, source in sorted(view.functions.items()):
        facts.add_row(f"function {name}", source)
    facts.add_row("refreshed", refreshed)
    facts.add_row("not in it yet", view.unknown or ", ".join(behind) or "nothing")
    facts.add_row("late after", view.max_staleness or "any time")
    stdout().print(facts)
    lineage = Table("column", "made of", "indexes", box=SIMPLE_HEAD, pad_edge=False)
    for each in view.lineage:
        lineage.add_row(each.column, ", ".join(each.sources), ", ".join(each.indexes))
    stdout().print(lineage)


def _key(key: tuple[Any, ...] | None, none: str) -> str:
    return none if key is None else ", ".join(str(value) for value in key)
