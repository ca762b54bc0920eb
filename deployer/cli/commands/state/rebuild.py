"""`deployer state rebuild`: rebuilds a lost state store from the datasets of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, LockTimeout, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.tables.maintenance.verify.rebuild import Rebuild, RebuiltTable


def rebuild(
    preview: Annotated[bool, typer.Option("--preview", help="Show what would be rebuilt, and write nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; for CI.")] = False,
    lock_timeout: LockTimeout = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Rebuild a lost state store from the datasets under the instance's root.

    Tables get their ids, names, keys, partitions, settings, services and savepoints from the record in each dataset,
    and their rows and jobs from the dataset's versions. No data is changed. Runs of services and the authors of
    commits are lost. A damaged state store is moved aside; one that is whole is refused.

    Exit codes: 0 rebuilt, or shown; 1 an error; 2 rebuilt, or shown, and something is left out; 3 refused.
    """
    from deployer.app.stack.fast_path import read_recorded
    from deployer.app.stack.lock_wait import held_in_time
    from deployer.app.workspace import open_workspace
    from deployer.cli.commands.deploy.up import confirm
    from deployer.cli.console.output import print_json, stdout
    from deployer.cli.console.progress_display import working
    from deployer.cli.console.reporter import ConsoleReporter
    from deployer.errors import NotFound
    from deployer.platform.text.formatting import count
    from deployer.tables.maintenance.verify.rebuild import ProjectDeclarations, apply_rebuild, plan_rebuild

    workspace = open_workspace(project, stack, specs)
    lake = workspace.lake()
    with held_in_time(workspace, lake, lock_timeout, ConsoleReporter()):
        tables = {each.full_name: each for each in lake.tables}
        declared = ProjectDeclarations(lake.instance, tables, workspace.owner, read_recorded(workspace.stack_ref).ids)
        with working("reading the datasets", as_json=as_json) as on_progress:
            planned = plan_rebuild(workspace.root(lake), declared, on_progress)
        if not as_json:
            _show(planned)
        if not planned.tables:
            raise NotFound(
                "there is no dataset of a table to rebuild the state from",
                where=planned.root,
                remedy="check that the disk of the root is mounted",
            )
        aside = None
        if not preview:
            if not yes:
                confirm("Make the state store from these datasets?")
            with working("writing the state", as_json=as_json):
                aside = apply_rebuild(planned)
    if as_json:
        print_json(_as_json(planned, aside, written=not preview))
    elif not preview:
        stdout().print(f"rebuilt the state of {count(len(planned.tables), 'table')}", soft_wrap=True)
        if aside:
            stdout().print(f"the damaged state store is now {aside}", soft_wrap=True)
        stdout().print("`deployer preview` shows what differs from the specs", soft_wrap=True)
    return 2 if planned.problems else 0


def _show(planned: Rebuild) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from deployer.cli.console.output import note, stdout
    from deployer.platform.text.visible import visible

    shown = Table("table", "rows", "versions", "row keys", "from", "location", box=SIMPLE_HEAD, pad_edge=False)
    for each in planned.tables:
        rows, versions, keys = _figures(each)
        shown.add_row(
            each.entry.full_name,
            f"{rows:,}",
            f"{versions:,}",
            visible(", ".join(keys)) or "none",
            each.origin,
            each.entry.location,
        )
    if planned.tables:
        stdout().print(shown)
    for each in planned.tables:
        for text in each.notes:
            note(f"{each.entry.full_name}: {visible(text)}")
    for problem in planned.problems:
        stdout().print(f"left out: {visible(problem.where)}: {visible(problem.what)}", style="red", soft_wrap=True)
    for location in planned.plain:
        note(f"{visible(location)} is not a table of deployer; `deployer import` takes it under management")


def _figures(table: RebuiltTable) -> tuple[int, int, tuple[str, ...]]:
    if table.log is None:
        return 0, 0, ()
    return table.log.state.files.rows, table.log.versions, table.log.state.properties.row_keys


def _as_json(planned: Rebuild, aside: str | None, *, written: bool) -> dict[str, Any]:
    tables = []
    for each in planned.tables:
        rows, versions, keys = _figures(each)
        tables.append(
            {
                "table": each.entry.full_name,
                "id": each.entry.table_id,
                "location": each.entry.location,
                "rows": rows,
                "versions": versions,
                "row_keys": list(keys),
                "from": each.origin,
                "notes": list(each.notes),
            }
        )
    return {
        "written": written,
        "moved_aside": aside,
        "tables": tables,
        "left_out": [{"where": each.where, "what": each.what} for each in planned.problems],
        "others": list(planned.plain),
    }
