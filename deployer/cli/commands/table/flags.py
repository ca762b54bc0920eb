"""`deployer table rename|online|offline`: change only the state store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName, TableName, WriteSpec


def rename(
    table: TableName,
    new: Annotated[str, typer.Argument(help="Its new name as `database.name`, or the name alone in its database.")],
    write_spec: WriteSpec = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Rename a table, or move it to another database. No data moves, and readers that know its place keep working."""
    from deployer.app.planning.addresses import split_name
    from deployer.cli.console.output import print_json, stdout
    from deployer.cli.inputs.table import changed
    from deployer.cli.inputs.table import write_spec as edit_spec
    from deployer.tables.admin.naming import rename_table

    with changed(project, stack, specs, table) as target:
        database, name = split_name(new if "." in new else f"{target.entry.database}.{new}")
        done = rename_table(target.store, target.entry, database, name)
        written = edit_spec(target) if write_spec else []
    if as_json:
        print_json({"table": f"{database}.{name}", "was": target.name, "changed": done, "written": written})
        return 0
    stdout().print(
        f"{target.name} is {database}.{name} now; its data stays at {target.entry.location}"
        if done
        else f"{target.name} already has this name"
    )
    declared = target.lake.table(target.name) is not None
    _print_spec_edits(written, undone=done and declared and not write_spec)
    return 0


def online(
    table: TableName,
    write_spec: WriteSpec = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Put a table online.

    `online` says whether services and splits of leaves run on the table by themselves; loads, queries and what is run
    by hand work either way.
    """
    return _set(table, True, write_spec, project, stack, specs, as_json)


def offline(
    table: TableName,
    write_spec: WriteSpec = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Take a table offline.

    `online` says whether services and splits of leaves run on the table by themselves; loads, queries and what is run
    by hand work either way.
    """
    return _set(table, False, write_spec, project, stack, specs, as_json)


def _set(
    table: str, online: bool, write_spec: bool, project: Path | None, stack: str, specs: Path | None, as_json: bool
) -> int:
    from deployer.cli.console.output import print_json, stdout
    from deployer.cli.inputs.table import changed
    from deployer.cli.inputs.table import write_spec as edit_spec
    from deployer.tables.admin.naming import set_online

    with changed(project, stack, specs, table) as target:
        done = set_online(target.store, target.entry.table_id, online)
        written = edit_spec(target) if write_spec else []
    if as_json:
        print_json({"table": target.name, "online": online, "changed": done, "written": written})
        return 0
    now = "online" if online else "offline"
    stdout().print(f"{target.name} is {now} now" if done else f"{target.name} is {now} already")
    declared = target.lake.table(target.name)
    _print_spec_edits(written, undone=declared is not None and declared.online != online and not write_spec)
    return 0


def _print_spec_edits(written: list[str], *, undone: bool) -> None:
    from deployer.cli.console.output import note, stdout

    for file in written:
        stdout().print(f"edited {file}")
    if undone:
        note("the next `deployer up` undoes it unless the spec says so: --write-spec, or `deployer drift --write-spec`")
