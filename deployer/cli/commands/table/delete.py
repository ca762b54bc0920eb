"""`deployer table delete`: deletes a table's data and metadata permanently."""

from __future__ import annotations

from typing import Annotated

import typer

from deployer.cli.options import (
    DEFAULT_STACK,
    AsJson,
    DeleteSavepoints,
    Force,
    ProjectDir,
    SpecsPath,
    StackName,
    TableName,
)


def delete(
    table: TableName,
    force: Force = False,
    delete_savepoints: DeleteSavepoints = False,
    write_spec: Annotated[
        bool, typer.Option("--write-spec", help="Also remove the table's document from the specs.")
    ] = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Delete a table with its data, all of its versions and its metadata, also when it is protected from deletion or
    cannot be read.

    Asks for the table's name first. A table that has savepoints is refused without --delete-savepoints.
    """
    from dataclasses import asdict

    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.inputs.table import changed, confirm_by_name
    from deployer.errors import Corrupt, NotFound
    from deployer.live.reader import unreadable
    from deployer.plan.assess.savepoints import describe_savepoints
    from deployer.platform.text.formatting import count, size
    from deployer.tables.admin.deletion import delete_counted, to_delete
    from deployer.tables.inspect.protection import refuse_savepoints

    written: list[str] = []
    with changed(project, stack, specs, table, unreadable=True) as target:
        if target.entry.status == "active":
            try:
                target.opened()  # this also records what Lance has
            except (Corrupt, NotFound) as why:
                note(f"{target.entry.address} cannot be read: {unreadable(target.entry, why).what}")
        if not delete_savepoints:
            refuse_savepoints(target.store, target.entry)
        found = to_delete(target.store, target.root, target.entry)
        if not force:
            for name in found.savepoints:
                note(f"removes savepoint {name}")
            for each in found.datasets:
                note(f"removes {each.location}: {count(each.files, 'file')} with {size(each.bytes)}")
        what = f"{_rows(found.rows)}, {count(found.files, 'file')} with {size(found.bytes)} on storage,"
        confirm_by_name(target.name, f"This deletes {target.name} with {what} forever", force=force)
        declared = target.lake.table(target.name)
        if write_spec and declared is not None:
            from deployer.cli.commands.table.spec import take_out

            written = take_out(target, declared)
        done = delete_counted(
            target.store, target.root, target.entry, allow_destroy=True, delete_savepoints=delete_savepoints
        )
        if write_spec:
            from deployer.app.stack.engine import engine_for

            engine_for(target.workspace, target.workspace.lake()).refresh(target.workspace.stack_ref)
    if as_json:
        print_json(asdict(done) | {"written": written})
        return 0
    how_much = f"{_rows(done.rows)}, {count(done.files, 'file')} with {size(done.bytes)} on storage"
    stdout().print(f"deleted {done.table}: {how_much}")
    if done.savepoints:
        stdout().print(f"  removed {describe_savepoints(done.savepoints)}")
    for each in done.datasets:
        stdout().print(f"  removed {each.location}: {size(each.bytes)}", style="dim")
    for file in written:
        stdout().print(f"{'edited' if (target.workspace.dir / file).exists() else 'removed'} {file}")
    if declared is not None and not written:
        note("the specs still declare it: the next `deployer up` creates it again, without rows")
    return 0


def _rows(number: int | None) -> str:
    from deployer.platform.text.formatting import count

    return "an unknown number of rows" if number is None else count(number, "row")
