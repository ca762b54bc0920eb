"""`deployer destroy`: deletes what a stack manages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deployer.cli.commands.deploy.up import Yes
from deployer.cli.options import (
    DEFAULT_STACK,
    AllowDestroy,
    AsJson,
    DeleteSavepoints,
    LockTimeout,
    ProjectDir,
    SpecsPath,
    StackName,
)

if TYPE_CHECKING:
    from deployer.app import DestroyResult, PlanResult


def destroy(
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    allow_destroy: AllowDestroy = None,
    delete_savepoints: DeleteSavepoints = False,
    yes: Yes = False,
    lock_timeout: LockTimeout = None,
    as_json: AsJson = False,
) -> int:
    """Delete every table that the stack manages, and the instance. Asks for the instance's name first.

    Tables that hold rows are protected until `--allow-destroy` names them or `deletion_protection: false` was applied;
    the bucket and the state's table of a lake on S3 until `--allow-destroy` names them. Those stay in AWS even then.
    Savepoints of tables are named, and need `--delete-savepoints`.
    A table that cannot be read is deleted too; where its log cannot be read, `--allow-destroy` has to name it.
    """
    from deployer import app
    from deployer.cli.commands.deploy.plugin import may_install
    from deployer.cli.commands.deploy.up import show
    from deployer.cli.console.activity import show_progress
    from deployer.cli.console.output import print_json
    from deployer.cli.console.reporter import ConsoleReporter
    from deployer.cli.summaries.unreadable import note_unreadable

    def on_plan(plan: PlanResult) -> None:
        if not as_json:
            show(plan)
        note_unreadable(plan.unreadable)

    done = app.destroy(
        project,
        stack,
        specs,
        approve=lambda plan: yes or _is_name_typed(plan.instance),
        allow_destroy=allow_destroy or (),
        delete_savepoints=delete_savepoints,
        lock_timeout=lock_timeout,
        on_plan=on_plan,
        install_missing=may_install(may_ask=not (yes or as_json)),
        reporter=ConsoleReporter(as_json=as_json),
        on_progress=show_progress("planning", as_json=as_json),
    )
    print_json(done.to_json()) if as_json else _print(done, stack)
    return 0


def _print(done: DestroyResult, stack: str) -> None:
    from deployer.cli.console.output import note, stdout
    from deployer.cli.console.step_view import summary_line

    if done.is_empty:
        note(f"stack {stack} manages nothing")
        return
    stdout().print(summary_line(done.operations))
    if done.kept:
        note(f"still in AWS, and no longer part of the stack: {', '.join(done.kept)}")


def _is_name_typed(name: str) -> bool:
    """Asks for the instance's name. Raises InvalidInput if stdin is not a terminal, Interrupted for another name."""
    import sys

    from deployer.cli.console.output import ask
    from deployer.errors import Interrupted, InvalidInput

    if not sys.stdin.isatty():
        raise InvalidInput("stdin is not a terminal, so nothing can be confirmed", remedy="pass --yes")
    if ask(f"This deletes all of it. Type the instance's name ({name}) to continue") != name:
        raise Interrupted("that is not the instance's name; nothing was changed")
    return True
