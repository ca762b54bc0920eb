"""`deployer table add`: creates a table, from a spec file or from columns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName, WriteSpec

if TYPE_CHECKING:
    from deployer.app.workspace import Workspace
    from deployer.specs.model import Lake, TableSpec


def add(
    table: Annotated[str | None, typer.Argument(help="The new table as `database.name`.", show_default=False)] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="A column as NAME:TYPE, with ` not null` if it may not be null; repeatable, in order.",
            show_default=False,
        ),
    ] = None,
    row_key: Annotated[list[str] | None, typer.Option(help="A row key; repeatable.", show_default=False)] = None,
    unique: Annotated[bool, typer.Option("--unique", help="No two rows may have the same row keys.")] = False,
    sort_key: Annotated[list[str] | None, typer.Option(help="A sort key; repeatable.", show_default=False)] = None,
    description: Annotated[str, typer.Option(help="Description of a row.", show_default=False)] = "",
    split_points: Annotated[
        Path | None, typer.Option(help="A file of split points, one per line.", show_default=False)
    ] = None,
    in_base64: Annotated[bool, typer.Option("--base64", help="Each line of that file is in base64.")] = False,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="A spec file with tables, instead of columns.", show_default=False),
    ] = None,
    write_spec: WriteSpec = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Create a table at once. It is drift until the specs declare it: --write-spec writes its spec and applies it."""
    from deployer.app.stack.engine import held
    from deployer.app.workspace import open_workspace
    from deployer.cli.console.output import note, print_json, stdout
    from deployer.errors import InvalidInput
    from deployer.platform.text.formatting import count
    from deployer.specs.types.column_names import listed

    if (file is None) == (table is None):
        raise InvalidInput("give a name and columns, or --file", remedy="such as nyc.events --column id:int64")
    if file is not None and (column or row_key or sort_key or split_points or description or unique):
        raise InvalidInput("the file declares the whole table", remedy="leave the other options out")
    workspace = open_workspace(project, stack, specs)
    lake = workspace.lake()
    if file is not None:
        from deployer.cli.commands.table.spec import tables_in

        wanted = tables_in(workspace, lake.instance, file)
    else:
        assert table is not None  # noqa: S101
        more = {"description": description, "row_keys": row_key, "unique": unique, "sort_keys": sort_key}
        wanted = (_of_options(workspace, lake, table, column or [], more, split_points, in_base64),)
    with held(workspace, lake):
        written = _create(workspace, lake, wanted, write_spec=write_spec)
    if as_json:
        print_json({"created": [spec.address for spec in wanted], "written": written})
        return 0
    for spec in wanted:
        keys = f", by {listed(spec.row_keys)}" if spec.row_keys else ""
        keys += " (unique)" if spec.unique else ""
        leaves = count(len(spec.split_points) + 1, "leaf", "leaves")
        stdout().print(f"created {spec.full_name}: {count(len(spec.columns), 'column')}{keys}, {leaves}")
    for name in written:
        stdout().print(f"wrote {name}")
    if not written:
        note(
            "no spec declares it, so the next `deployer up` removes it while it is empty: give --write-spec to keep it"
        )
    return 0


def _of_options(
    workspace: Workspace,
    lake: Lake,
    table: str,
    columns: list[str],
    more: Mapping[str, object],
    split_points: Path | None,
    in_base64: bool,
) -> TableSpec:
    from dataclasses import replace

    from deployer.app.planning.addresses import split_name
    from deployer.cli.commands.table.spec import table_of_options
    from deployer.errors import InvalidInput
    from deployer.tables.layout.partitions.split_point_files import read_split_points

    if not columns:
        raise InvalidInput("a table needs columns", remedy="give --column NAME:TYPE, or --file")
    spec = table_of_options(workspace, lake.instance, split_name(table), columns, more)
    if split_points is None:
        return spec
    by_name = {each.name: each for each in spec.columns}
    points = read_split_points(split_points, [by_name[name] for name in spec.row_keys], in_base64=in_base64)
    return replace(spec, split_points=points)


def _create(workspace: Workspace, lake: Lake, wanted: tuple[TableSpec, ...], *, write_spec: bool) -> list[str]:
    from contextlib import closing

    from deployer.app.importing.spec_files import check_specs, write_specs
    from deployer.app.stack.state import apply_only
    from deployer.errors import Conflict
    from deployer.state import open_store
    from deployer.tables.admin.tables import create_table

    root = workspace.root(lake)
    with closing(open_store(root)) as store:
        for spec in wanted:
            if lake.table(spec.full_name) is not None:
                raise Conflict("the specs declare it already", where=spec.address, remedy="`deployer up` creates it")
            there = store.instance().by_name(spec.full_name)
            if there is not None and there.status == "active":
                raise Conflict("a table of that name exists already", where=spec.address, remedy="choose another name")
        if not write_spec:
            for spec in wanted:
                create_table(store, root, spec, workspace.owner)
            return []
    check_specs(workspace, lake, wanted)
    written = write_specs(workspace, wanted)
    apply_only(workspace, [spec.address for spec in wanted])
    return written
