"""`deployer up`: applies what the specs declare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.options import (
    DEFAULT_STACK,
    AllowDestroy,
    AsJson,
    DeleteSavepoints,
    LockTimeout,
    NewState,
    ProjectDir,
    SpecsPath,
    StackName,
    Target,
)

if TYPE_CHECKING:
    from deployer.app import ApplyResult, PlanResult
    from deployer.app.operations.apply import Approve

SavedPlanFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="[PLAN]",
        help="A plan that `preview --out` saved. It is applied exactly, unless the state that it was made from "
        "has changed. `up` asks before it deletes anything. If DEPLOYER_PLAN_PUBLIC_KEY is set, the plan must "
        "be signed.",
        show_default=False,
    ),
]

Expect = Annotated[
    str | None,
    typer.Option(
        "--expect",
        metavar="DIGEST",
        help="Refuse PLAN unless this is the digest of its file, sha256:… as `preview --out` showed it.",
        show_default=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; for CI.")]


def up(
    context: typer.Context,
    plan: SavedPlanFile = None,
    expect: Expect = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    target: Target = None,
    allow_destroy: AllowDestroy = None,
    delete_savepoints: DeleteSavepoints = False,
    yes: Yes = False,
    lock_timeout: LockTimeout = None,
    new_state: NewState = False,
    as_json: AsJson = False,
) -> int:
    """Apply the specs. Shows the plan and asks first; refuses what destroys data unless it was allowed by address.

    Tables that cannot be read are left as they are; the others are applied, and the exit code is 1. New recordings of
    datasets that declare `register: auto` are registered; for one that cannot be, the exit code is 1.
    From the plan on, other runs that would change the stack are refused until this one ends, or wait for it with
    `--lock-timeout`.
    """
    from deployer import app
    from deployer.cli.commands.deploy.plugin import may_install
    from deployer.cli.console.activity import show_progress
    from deployer.cli.console.reporter import ConsoleReporter
    from deployer.errors import InvalidInput

    on_plan = _ignore if as_json else show
    install_missing = may_install(may_ask=not (yes or as_json))
    reporter = ConsoleReporter(as_json=as_json)
    on_progress = show_progress("planning", as_json=as_json)
    if plan is not None:
        if specs is not None or allow_destroy or delete_savepoints or target:
            raise InvalidInput(
                "--specs, --target, --allow-destroy and --delete-savepoints are part of the plan",
                where=plan,
                remedy="give them to preview --out",
            )
        given = context.get_parameter_source("stack")
        done = app.apply_plan(
            plan,
            project=project,
            stack=stack if given is not None and given.name == "COMMANDLINE" else None,
            expect=expect,
            approve=_approval("Apply this plan? It deletes what is shown.", yes=yes),
            new_state=new_state,
            lock_timeout=lock_timeout,
            on_plan=on_plan,
            install_missing=install_missing,
            reporter=reporter,
            on_progress=on_progress,
        )
    elif expect is not None:
        raise InvalidInput(
            "--expect is the digest of a saved plan", remedy="give the plan too: up PLAN --expect DIGEST"
        )
    else:
        done = app.apply(
            project,
            stack,
            specs,
            approve=_approval("Apply these changes?", yes=yes),
            targets=target or (),
            allow_destroy=allow_destroy or (),
            delete_savepoints=delete_savepoints,
            new_state=new_state,
            lock_timeout=lock_timeout,
            on_plan=on_plan,
            install_missing=install_missing,
            reporter=reporter,
            on_progress=on_progress,
        )
    _print(done, as_json=as_json)
    return 1 if done.unreadable or any(each.failures for each in done.recordings) else 0


def _ignore(_: PlanResult) -> None:
    """Ignores the plan, because the JSON result contains it."""


def show(plan: PlanResult) -> None:
    """Prints the plan as a tree, and the digest of its file if it was saved."""
    from deployer.cli.console.output import note, stdout
    from deployer.plan.render.terminal import plan_as_tree

    stdout().print(plan_as_tree(plan.plan))
    if (file := plan.saved) is not None:
        note(f"{file.file} is {file.digest}" + (f", signed by {file.signed_by}" if file.signed_by else ""))


def _approval(question: str, *, yes: bool) -> Approve:
    """Returns a function that approves every plan with `yes`, and otherwise asks."""

    def approve(_: PlanResult) -> bool:
        if not yes:
            confirm(question)
        return True

    return approve


def _print(done: ApplyResult, *, as_json: bool) -> None:
    """Prints what was applied. On stderr, reports the old datasets, the recordings and the tables that cannot be
    read."""
    from deployer.cli.console.output import note, print_json, stderr, stdout
    from deployer.cli.console.step_view import summary_line
    from deployer.platform.text.formatting import count

    if as_json:
        print_json(done.to_json())
    elif not done.plan.is_empty:
        stdout().print(summary_line(done.operations))
    for old in done.old_datasets:
        gone = "it belongs to a rewrite that is no longer needed" if old.given_up else "the table was rewritten since"
        note(f"{old.table}: {old.location} is {f'kept: {old.why}' if old.why else f'removed: {gone}'}")
    for each in done.recordings:
        registered = [f"{count(each.registered, 'recording')} registered"] if each.registered else []
        lines = [*registered, *(f"search index {index} built" for index in each.indexes)]
        for line in lines:
            note(f"{each.address}: {line}")
        for failure in () if as_json else each.failures:
            stderr().print(f"error: {each.address}: {failure}", style="red", soft_wrap=True, markup=False)
    if done.unreadable and not as_json:
        left = "was left as it is" if len(done.unreadable) == 1 else "were left as they are"
        names = ", ".join(table.address for table in done.unreadable)
        failure = f"{count(len(done.unreadable), 'table')} cannot be read and {left}: {names}"
        remedy = "everything else was applied; `deployer state verify` shows what is wrong"
        stderr().print(f"error: {failure}; {remedy}", style="red", soft_wrap=True)


def confirm(question: str) -> None:
    """Asks for a yes. Raises InvalidInput if stdin is not a terminal, Interrupted for a no."""
    import sys

    from deployer.cli.console.output import ask_yes_or_no
    from deployer.errors import Interrupted, InvalidInput

    if not sys.stdin.isatty():
        raise InvalidInput("stdin is not a terminal, so nothing can be confirmed", remedy="pass --yes")
    if not ask_yes_or_no(question):
        raise Interrupted("Cancelled. Nothing was changed.")
