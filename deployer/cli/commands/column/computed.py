"""`deployer column list|add`: the computed columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName, TableName, WriteSpec

if TYPE_CHECKING:
    from deployer.cli.inputs.table import Target
    from deployer.specs.types.types import Column


def list_columns(
    table: TableName,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """List a table's computed columns: how each is computed, and which versions its rows have."""
    from dataclasses import asdict

    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from deployer.cli.console.output import print_json, stdout
    from deployer.cli.inputs.table import looked_at
    from deployer.tables.inspect.computed import computed_infos

    with looked_at(project, stack, specs, table) as opened:
        found = computed_infos(opened)
        name = opened.entry.full_name
    if as_json:
        columns = [{**asdict(each), "stale": each.is_stale} for each in found]
        print_json({"table": name, "columns": columns})
        return 0
    if not found:
        stdout().print(f"{name} has no computed columns")
        return 0
    shown = Table("column", "type", "by", "version", "rows", box=SIMPLE_HEAD, pad_edge=False)
    for each in found:
        by = each.definition + (" on load" if each.on_load else "")
        shown.add_row(each.name, each.type, by, each.version, each.summary)
    stdout().print(shown)
    return 0


def add(
    table: TableName,
    column: Annotated[str, typer.Argument(help="Name of the new column.", metavar="COLUMN")],
    sql: Annotated[
        str | None, typer.Option(help="One SQL expression over columns of the table.", show_default=False)
    ] = None,
    udf: Annotated[
        str | None,
        typer.Option(
            help="A function of the project as package.module:function; it is not imported.", show_default=False
        ),
    ] = None,
    inputs: Annotated[
        str | None, typer.Option(help="The columns that the function gets: a, b.", show_default=False)
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--type", help="The column's type; that of the expression by default.", show_default=False),
    ] = None,
    version: Annotated[
        str | None,
        typer.Option(help="The function's version; a hash of its module's text by default.", show_default=False),
    ] = None,
    on_load: Annotated[
        bool, typer.Option("--on-load", help="Compute rows that are loaded or changed at once.")
    ] = False,
    write_spec: WriteSpec = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Add a computed column: at once, and no data file is written. It is null until a backfill computes it."""
    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.inputs.table import changed
    from deployer.cli.inputs.table import write_spec as edit_spec
    from deployer.columns.definitions.add import add_columns, check_new_columns
    from deployer.specs.types.computed import describe_computed

    written: list[str] = []
    with changed(project, stack, specs, table, alone=write_spec) as target:
        opened = target.opened()
        given = _column(target, column, sql, udf, inputs, kind, version, on_load)
        [added] = check_new_columns(opened, [given])
        add_columns(opened, [added])
        if write_spec:
            written = edit_spec(target)
    by = describe_computed(added.computed)
    if as_json:
        print_json({"table": target.name, "column": added.name, "computed": by, "written": written})
        return 0
    stdout().print(f"{target.name}: added {added.name}, computed by {by}; null until `deployer column backfill`")
    if not write_spec:
        note("the column is drift until the spec declares it: `--write-spec`, or `deployer drift --write-spec`")
    for file in written:
        stdout().print(f"edited {file}")
    return 0


def _column(
    target: Target,
    name: str,
    sql: str | None,
    udf: str | None,
    inputs: str | None,
    kind: str | None,
    version: str | None,
    on_load: bool,
) -> Column:
    from deployer.columns.definitions.transforms import column_of_sql
    from deployer.errors import InvalidInput
    from deployer.specs.sources.modules import source_versions
    from deployer.specs.types.column_names import split_names
    from deployer.specs.types.computed import ComputedBySql, ComputedByUdf
    from deployer.specs.types.parser import parse_type
    from deployer.specs.types.types import Column

    address = f"table/{target.name}"
    if (sql is None) == (udf is None):
        what = "a computed column needs `--sql` or `--udf`" if sql is None else "`--sql` and `--udf` are both given"
        raise InvalidInput(what, where=address, remedy="give one of them")
    if sql is not None:
        if other := next((each for each, given in (("inputs", inputs), ("version", version)) if given), None):
            raise InvalidInput(f"`--{other}` is given with `--sql`", where=address, remedy="it is for functions only")
        if kind is None:
            return column_of_sql(name, sql, target.opened().schema, on_load=on_load)
        return Column(name, parse_type(kind), computed=ComputedBySql(sql.strip(), on_load=on_load))
    assert udf is not None  # noqa: S101
    if kind is None or inputs is None:
        missing = "type" if kind is None else "inputs"
        what = f"`--{missing}` is missing, and the function is not imported to find it out"
        remedy = "give the type, such as --type float64" if kind is None else "name its columns: --inputs a,b"
        raise InvalidInput(what, where=address, remedy=remedy)
    found = version or source_versions(target.workspace.project.dir)(udf)
    if found is None:
        what = f"the project has no file of module {udf.partition(':')[0]}, so its version is unknown"
        raise InvalidInput(what, where=address, remedy="give --version 1, and another one when the function changes")
    computed = ComputedByUdf(udf, "", split_names(inputs, "--inputs"), found, on_load=on_load)
    return Column(name, parse_type(kind), computed=computed)
