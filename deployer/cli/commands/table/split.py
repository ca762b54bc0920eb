"""`deployer table split` and `deployer table split-points estimate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName, TableName

if TYPE_CHECKING:
    from deployer.specs.model import TableSpec
    from deployer.tables.importing.split_estimate import Estimate
    from deployer.tables.layout.partitions.split import SplitResult

split_points = typer.Typer(name="split-points", help="Estimate split points of a table.", no_args_is_help=True)


def split(
    table: TableName,
    max_rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The most rows of a leaf; by default, `partitions: max_rows_per_leaf` of the spec.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be split, and change nothing.")] = False,
    write_spec: Annotated[
        bool, typer.Option("--write-spec", help="Edit the specs so that they declare the new leaves.")
    ] = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Split every leaf above a limit at quantiles of its keys. No row is moved, and loads may run meanwhile.

    Split leaves are not drift; `--write-spec` declares them as split points.
    """
    from dataclasses import asdict

    from deployer.cli.console.output import print_json, stdout
    from deployer.cli.console.progress_display import working
    from deployer.cli.inputs.table import changed
    from deployer.cli.inputs.table import write_spec as edit_spec
    from deployer.errors import InvalidInput
    from deployer.tables.layout.partitions.split import declare_split_points, split_leaves

    if dry_run and write_spec:
        raise InvalidInput("--dry-run changes nothing, and --write-spec edits specs", remedy="give one of them")
    written: list[str] = []
    with changed(project, stack, specs, table, alone=write_spec) as target:
        with working(f"splitting leaves of {target.name}", as_json=as_json):
            done = split_leaves(target.store, target.root, target.entry.table_id, max_rows, dry_run=dry_run)
        if write_spec:
            declare_split_points(target.store, target.root, target.entry.table_id)
            written = edit_spec(target)
    if as_json:
        print_json({"table": target.name, "dry_run": dry_run, **asdict(done), "written": written})
        return 0
    _print(target.name, done, dry_run=dry_run)
    for file in written:
        stdout().print(f"edited {file}")
    return 0


def _print(name: str, done: SplitResult, *, dry_run: bool) -> None:
    from deployer.cli.console.output import note, stdout
    from deployer.platform.text.formatting import count

    for leaf in done.split:
        points = ", ".join(map(_text, leaf.points[:8])) + (
            f" and {len(leaf.points) - 8:,} more" if len(leaf.points) > 8 else ""
        )
        parts = count(len(leaf.leaves), "leaf", "leaves")
        stdout().print(f"leaf {leaf.partition} with {count(leaf.rows, 'row')} → {parts}, split at {points}")
    for leaf_id, rows in done.unsplit:
        note(f"leaf {leaf_id} has {rows:,} rows with the same key, which cannot be split")
    if not done.split:
        other = "no other" if done.unsplit else "no"
        stdout().print(f"{name}: {other} leaf has more than {done.max_rows:,} rows")
    else:
        leaves = count(done.leaves, "leaf", "leaves")
        stdout().print(f"{name} would have {leaves}" if dry_run else f"{name} has {leaves} now")


def _text(point: Any) -> str:
    return f"({', '.join(map(str, point))})" if isinstance(point, list) else str(point)


@split_points.command("estimate")
def estimate(
    files: Annotated[list[str], typer.Argument(help="Files, folders, globs or a Lance dataset.", metavar="FILE…")],
    leaves: Annotated[int, typer.Option("--leaves", "-n", min=2, max=100_000, help="Number of leaves.")],
    table: Annotated[
        str | None,
        typer.Option(
            help="The table, as `database.name`, whose declared or live row keys are used.", show_default=False
        ),
    ] = None,
    row_key: Annotated[
        list[str] | None,
        typer.Option(help="Instead of a table: a column of the files; repeatable, in order.", show_default=False),
    ] = None,
    sample: Annotated[int, typer.Option(min=1, help="Read about this many rows.")] = 1_000_000,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Write the split points to this file, in the form that `table reinitialise` reads.",
            show_default=False,
        ),
    ] = None,
    in_base64: Annotated[bool, typer.Option("--base64", help="With --out: each line in base64.")] = False,
    write_spec: Annotated[
        bool, typer.Option("--write-spec", help="With --table: edit the specs so that they declare the split points.")
    ] = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Find split points that part the rows of files into leaves of about the same size, from a sample of their keys."""
    from deployer.cli.console.output import note, print_data, print_json, stdout
    from deployer.errors import InvalidInput
    from deployer.platform.files.private import write_private
    from deployer.platform.text.formatting import count
    from deployer.specs.editing.write import split_point_document
    from deployer.tables.importing.split_estimate import estimate_split_points
    from deployer.tables.layout.partitions.split_point_files import split_points_text

    if (table is None) == (not row_key):
        raise InvalidInput("give --table, or --row-key", remedy="such as --table nyc.flights")
    if write_spec and table is None:
        raise InvalidInput("--write-spec needs --table", remedy="name the table whose spec is edited")
    spec = _spec_of(project, stack, specs, table) if table else None
    found: Estimate = estimate_split_points(files, leaves, spec, tuple(row_key or ()), sample)
    documents = [split_point_document(point, found.keys) for point in found.points]
    written: list[str] = []
    if out is not None:
        write_private(out, split_points_text(found.points, found.keys, in_base64=in_base64), keeps_mode=True)
        written.append(str(out))
    if write_spec and spec is not None:
        written.append(_declare(project, stack, specs, spec, documents))
    if as_json:
        basis = {"row_keys": [key.name for key in found.keys], "rows": found.rows, "sampled": found.sampled}
        print_json({"leaves": len(documents) + 1, **basis, "split_points": documents, "written": written})
        return 0
    if len(documents) + 1 < leaves:
        note(f"a few keys have most of the rows: there are only {count(len(documents) + 1, 'leaf', 'leaves')}")
    note(f"from {found.sampled:,} of {count(found.rows, 'row')}")
    if not written:
        lines = ["partitions:", "  split_points:", *(f"    - {_in_yaml(each)}" for each in documents)]
        print_data("".join(f"{line}\n" for line in lines))
    for file in written:
        stdout().print(f"wrote {file}")
    return 0


def _in_yaml(document: Any) -> str:
    """Returns a split point as one line of a spec."""
    from deployer.platform.text.visible import json_text
    from deployer.specs.editing.write import to_yaml

    if isinstance(document, list):
        return json_text(document)  # YAML reads JSON too
    return to_yaml({"": document}).partition(": ")[2].rstrip()


def _spec_of(project: Path | None, stack: str, specs: Path | None, name: str) -> TableSpec:
    """Returns the declared table, or the live one if no spec declares it."""
    from deployer.app.workspace import open_workspace
    from deployer.cli.inputs.table import looked_at
    from deployer.live.reader import live_table

    lake = open_workspace(project, stack, specs).lake()
    named = [spec for spec in lake.tables if name in (spec.full_name, spec.name)]
    if len(named) == 1:
        return named[0]
    with looked_at(project, stack, specs, name) as opened:
        return live_table(opened.entry, opened.state).spec


def _declare(project: Path | None, stack: str, specs: Path | None, spec: TableSpec, points: list[Any]) -> str:
    from deployer.app.workspace import open_workspace
    from deployer.errors import DeployerError, NotFound
    from deployer.specs.editing.edits import SpecEdits

    workspace = open_workspace(project, stack, specs)
    place = spec.sources.get("partitions") or spec.sources.get("")
    if place is None:
        raise NotFound("no spec declares the table", where=spec.address, remedy="declare it first")
    limit = {} if spec.max_rows_per_leaf is None else {"max_rows_per_leaf": spec.max_rows_per_leaf}
    edits = SpecEdits(workspace.dir)
    edits.set_property(place, "partitions", {"split_points": points, **limit} if points or limit else None)
    before = edits.write()
    try:
        workspace.lake()
    except DeployerError:
        for path, text in before.items():
            path.write_text(text, encoding="utf-8")
        raise
    return place.file
