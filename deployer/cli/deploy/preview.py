"""`deployer preview`: what would change, how risky it is and what caused it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.deploy.plan_output import Format, print_plan
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
    from deployer.app.planning.plan import Planned
    from deployer.app.workspace import Workspace
    from deployer.plan.model import Plan

Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        dir_okay=False,
        help="Save the plan to this file too, and show its digest; `up FILE --expect DIGEST` applies exactly it, or "
        "says what moved. It is signed with the key in DEPLOYER_PLAN_KEY, where that is set.",
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
    from dataclasses import replace

    from deployer.app.workspace import open_workspace
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
    if against is not None:
        from deployer.app.spec_diff.compare import Comparison, plan_against

        compared = Comparison(project, stack, specs, against, tuple(target or ()))
        workspace, plan = plan_against(compared, allow_destroy or ())
        if policy_only:
            return _policy_only(workspace, plan, form)
        print_plan(plan, form, against)
    else:
        from deployer.app.planning.plan import plan_up
        from deployer.cli.project.validate import note_unread

        workspace = replace(
            open_workspace(project, stack, specs), new_state=new_state, delete_savepoints=delete_savepoints
        )
        if policy_only:
            return _policy_only(workspace, plan_up(workspace, allow_destroy or (), target or ()).plan, form)
        if out is None:
            planned = plan_up(workspace, allow_destroy or (), target or ())
            print_plan(planned.plan, form)
        else:
            planned = _saved(workspace, allow_destroy or (), target or (), out, form)
        note_unread(workspace, planned.lake.files)
        plan = planned.plan
    return 2 if exit_code and (plan.unreadable or not plan.is_empty) else 0


def _saved(
    workspace: Workspace, allow_destroy: Sequence[str], target: Sequence[str], out: Path, form: Format
) -> Planned:
    """Save the plan, and print it with the digest of its file; one that cannot be saved is printed all the same."""
    from deployer.app.planning.plan import plan_up
    from deployer.app.planning.saved_plan import save_plan
    from deployer.errors import DeployerError
    from deployer.plan.saved.seal import plan_signer

    signer = plan_signer()
    planned = plan_up(workspace, allow_destroy, target)
    try:
        saved = save_plan(workspace, planned, tuple(allow_destroy), out, signer)
    except DeployerError:
        print_plan(planned.plan, form)
        raise
    print_plan(planned.plan, form, saved=saved)
    return planned


def _policy_only(workspace: Workspace, plan: Plan, form: Format) -> int:
    """Print what policies say of the plan, and nothing else of it; returns the exit code."""
    from deployer.cli.deploy.plan_output import print_verdict
    from deployer.errors import NotFound, Refused

    if plan.verdict is None:
        raise NotFound(
            "there are no policies", where=workspace.dir / "policies", remedy="put a rule there, see docs/policy.md"
        )
    print_verdict(plan.instance, plan.verdict, form, plan.targets)
    return Refused.exit_code if plan.denied else 0
