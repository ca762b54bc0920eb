"""`deployer rows erase`: removes rows from everything that is stored of their table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.commands.rows.engine import tasks_by
from deployer.cli.commands.rows.options import Engine, Yes
from deployer.cli.inputs.spark_session import session_of
from deployer.cli.options import (
    DEFAULT_STACK,
    AllowDestroy,
    AsJson,
    DeleteSavepoints,
    EngineName,
    ProjectDir,
    SpecsPath,
    StackName,
    TableName,
)

if TYPE_CHECKING:
    from deployer.services.erasure.results import ErasurePlan, ErasureResult


def erase(
    table: TableName,
    where: Annotated[
        str,
        typer.Option(
            help="Erase the rows for which this SQL condition is true, such as \"account = 'A-17'\".",
            show_default=False,
        ),
    ],
    delete_savepoints: DeleteSavepoints = False,
    allow_destroy: AllowDestroy = None,
    engine: Engine = EngineName.AUTO,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what holds the rows and would be removed, and change nothing.")
    ] = False,
    yes: Yes = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Erase rows forever: from the table, and from every version, savepoint, replaced dataset, index and past state
    that still has them.

    Asks first, and lists what is removed. Savepoints that have the rows go only with --delete-savepoints. Afterwards
    all versions that are left are read, and all files searched for values of the rows. Exit code 2: something could not
    be reached yet, and the command says how to finish. Rows under a legal hold are refused. A table that is protected
    from deletion keeps at least one row, unless --allow-destroy names it.
    """
    from deployer.cli.commands.deploy.up import confirm
    from deployer.cli.console.output import print_json
    from deployer.cli.console.progress_display import Meter
    from deployer.cli.inputs.table import changed_by_state
    from deployer.platform.system.progress import no_progress
    from deployer.platform.text.formatting import count
    from deployer.services.erasure.erase import erase as erase_rows
    from deployer.services.erasure.erase import refuse_savepoints_of
    from deployer.services.erasure.planning import plan_erasure

    with changed_by_state(project, stack, specs, table) as opened:
        if dry_run or not yes:
            plan = plan_erasure(opened, where, None, tasks_by(engine, project, stack, specs, no_progress))
            if dry_run and as_json:
                print_json(plan.as_json())
            elif not as_json:
                _print_plan(plan)
            if dry_run:
                return 0
            refuse_savepoints_of(plan, opened.address, allowed=delete_savepoints)
            confirm(f"Erase {count(max(plan.rows, plan.stored_rows), 'row')} of {plan.table} forever?")
        with Meter(as_json=as_json) as meter:
            done = erase_rows(
                opened,
                where,
                delete_savepoints=delete_savepoints,
                allow_destroy=opened.address in (allow_destroy or ()),
                on_progress=meter.begin(opened.entry.full_name),
                engine=engine.value,
                session=session_of(project, stack, specs),
            )
    if as_json:
        print_json(done.as_json())
    else:
        _print_done(done)
    return 0 if done.is_proven else 2


def _print_plan(plan: ErasurePlan) -> None:
    from deployer.cli.console.output import note, stdout
    from deployer.platform.text.formatting import count

    hidden = max(0, plan.stored_rows - plan.rows)
    also = f", and {count(hidden, 'row')} that are deleted but still in its files" if hidden else ""
    stdout().print(f"{plan.table}: {count(plan.rows, 'row')}{also}")
    for label, found in (
        ("removes versions that hold the rows", [str(each) for each in plan.versions]),
        ("removes savepoints of these versions", list(plan.savepoints)),
        ("removes tags of other programs at these versions", list(plan.tags)),
        ("removes replaced datasets", list(plan.datasets)),
        ("rebuilds indexes", list(plan.indexes)),
    ):
        if found:
            more = f" and {len(found) - 20} more" if len(found) > 20 else ""
            stdout().print(f"  {label}: {', '.join(found[:20])}{more}")
    if plan.unknown_versions:
        missing = ", ".join(map(str, plan.unknown_versions))
        note(f"versions {missing} lack a column of the condition, so they count as holding the rows")
    for each in plan.unreached:
        note(each)


def _print_done(done: ErasureResult) -> None:
    from deployer.cli.console.output import note, stdout
    from deployer.platform.text.formatting import count

    out = stdout()
    out.print(f"{done.table}: erased {count(done.rows, 'row')}")
    gone = [count(done.versions, "version")] if done.versions else []
    gone += [f"savepoint {name}" for name in done.savepoints] + [f"tag {name}" for name in done.tags]
    gone += [f"dataset {each}" for each in done.datasets]
    gone += ["past states of its log"] if done.history else []
    if gone:
        out.print(f"  removed {', '.join(gone)}")
    if done.rewritten_files or done.indexes:
        built = f", indexes {', '.join(done.indexes)}" if done.indexes else ""
        out.print(f"  rewrote {count(done.rewritten_files, 'file')}{built}")
    out.print(
        f"  read {count(done.versions_read, 'version')}: {count(done.rows_left, 'row')} left; searched "
        f"{count(done.files_searched, 'file')} for {count(done.values, 'value')}: found in "
        f"{count(len(done.files_with_values), 'file')}"
    )
    for each in done.unreached:
        note(each)
