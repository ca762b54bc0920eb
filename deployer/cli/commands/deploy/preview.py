"""`deployer preview`: shows the changes that `up` would make, their risks and their causes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.commands.deploy.plan_output import Format, print_plan
from deployer.cli.commands.project.validate import note_unread
from deployer.cli.options import (
    DEFAULT_STACK,
    AllowDestroy,
    AsJson,
    DeleteSavepoints,
    NewState,
    ProjectDir,
    SpecsPath,
    StackName,
    Target,
)

if TYPE_CHECKING:
    from deployer.app import PlanResult
    from deployer.plan.saved.seal import PlanSigner

Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        dir_okay=False,
        help="Save the plan to this file too, and show its digest; `up FILE --expect DIGEST` applies exactly "
        "this plan, or reports what changed since. It is signed with the key in DEPLOYER_PLAN_KEY, where that is set.",
        show_default=False,
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="REF",
        help="Compare with the specs at this Git ref, without touching live state: for pull requests from forks.",
        show_default=False,
    ),
]
PolicyOnly = Annotated[
    bool,
    typer.Option(
        "--policy-only",
        help="Show only what the rules in policies/ say, and exit with 3 when a mandatory one is broken: for CI.",
    ),
]


def preview(
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    format: Annotated[
        Format,
        typer.Option("--format", help="How the plan is shown. Markdown fits a pull-request comment, HTML is one page."),
    ] = Format.TREE,
    out: Out = None,
    against: Against = None,
    target: Target = None,
    allow_destroy: AllowDestroy = None,
    delete_savepoints: DeleteSavepoints = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 2 when there are changes, or tables that cannot be read.")
    ] = False,
    policy_only: PolicyOnly = False,
    new_state: NewState = False,
    as_json: AsJson = False,
) -> int:
    """Show what `up` would change, against live state refreshed first. Reads only: neither the lake nor any state is
    written to."""
    from deployer import app
    from deployer.cli.console.activity import show_progress
    from deployer.cli.console.reporter import ConsoleReporter
    from deployer.errors import InvalidInput

    form = Format.JSON if as_json else format
    if out is not None and against is not None:
        raise InvalidInput(
            "--out and --against do not go together",
            remedy="leave out one: a plan can only be applied to the live state that it was made from",
        )
    if policy_only and (out is not None or exit_code):
        raise InvalidInput(
            f"--policy-only and {'--out' if out is not None else '--exit-code'} do not go together",
            remedy="run preview twice: once for the rules, once for the plan",
        )
    signer = None
    if out is not None:
        from deployer.plan.saved.seal import plan_signer

        signer = plan_signer()  # an unusable key is reported at once
    found = app.plan(
        project,
        stack,
        specs,
        targets=target or (),
        allow_destroy=allow_destroy or (),
        delete_savepoints=delete_savepoints,
        new_state=new_state,
        against=against,
        reporter=ConsoleReporter(),
        on_progress=show_progress("planning", as_json=form is Format.JSON),
    )
    if policy_only:
        return _policy_only(found, form)
    if out is None:
        print_plan(found, form)
    else:
        _save(found, out, signer, form)
    if found.planned is not None:
        note_unread(found.workspace, found.planned.lake.files)
    return 2 if exit_code and (found.unreadable or not found.is_empty) else 0


def _save(plan: PlanResult, out: Path, signer: PlanSigner | None, form: Format) -> None:
    """Saves the plan, and prints it with the digest of its file. A plan that cannot be saved is printed too, before the
    error."""
    from deployer import app
    from deployer.errors import DeployerError

    try:
        plan = app.save_plan(plan, out, signer=signer)
    except DeployerError:
        print_plan(plan, form)
        raise
    print_plan(plan, form)


def _policy_only(found: PlanResult, form: Format) -> int:
    """Prints only the verdict of the policies on the plan; returns the exit code."""
    from deployer.cli.commands.deploy.plan_output import print_verdict
    from deployer.errors import NotFound, Refused

    if found.verdict is None:
        where = found.workspace.dir / "policies"
        raise NotFound("there are no policies", where=where, remedy="put a rule there, see docs/policy.md")
    print_verdict(found.plan, found.verdict, form)
    return Refused.exit_code if found.plan.denied else 0
