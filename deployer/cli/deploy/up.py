"""`deployer up`: apply what the specs declare."""

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
    from deployer.app.planning.plan import Planned
    from deployer.app.workspace import Workspace
    from deployer.plan.saved.file import MovedFact, SavedPlan
    from deployer.plan.saved.seal import SavedAs

SavedPlanFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="[PLAN]",
        help="A plan that `preview --out` saved: applied as it is, unless anything that it read moved. Asks before it "
        "takes anything away. Has to be signed where DEPLOYER_PLAN_PUBLIC_KEY is set.",
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

    Tables that cannot be read are left as they are; the others are applied, and the exit code is 1.
    From the plan on nobody else changes the stack: other runs that would are refused until this one ends, or
    wait for it with `--lock-timeout`.
    """
    from dataclasses import replace

    from deployer.app.planning.addresses import check_addresses
    from deployer.app.planning.plan import plan_lake
    from deployer.app.planning.saved_plan import open_plan
    from deployer.app.stack.engine import prepare_for
    from deployer.app.stack.lock_wait import held_in_time
    from deployer.app.workspace import open_workspace
    from deployer.cli.deploy.plugin_offer import offer_aws_provider
    from deployer.errors import InvalidInput

    if plan is not None:
        if specs is not None or allow_destroy or delete_savepoints or target:
            raise InvalidInput(
                "--specs, --target, --allow-destroy and --delete-savepoints are part of the plan",
                where=plan,
                remedy="give them to preview --out",
            )
        given = context.get_parameter_source("stack")
        chosen = stack if given is not None and given.name == "COMMANDLINE" else None
        workspace, saved = open_plan(plan, project, chosen, expect)
        return _up_saved((replace(workspace, new_state=new_state), saved), yes, lock_timeout, as_json)
    if expect is not None:
        raise InvalidInput(
            "--expect is the digest of a saved plan", remedy="give the plan too: up PLAN --expect DIGEST"
        )
    workspace = replace(open_workspace(project, stack, specs), new_state=new_state, delete_savepoints=delete_savepoints)
    prepare_for(workspace)
    lake = workspace.lake()
    offer_aws_provider(workspace, lake, may_ask=not (yes or as_json))
    with held_in_time(workspace, lake, lock_timeout):
        planned = plan_lake(workspace, lake, allow_destroy or (), chosen=target or ())
        check_addresses("--allow-destroy", allow_destroy or (), planned.plan)
        if not as_json:
            show(planned)
        if planned.plan.is_refused:
            return refuse(planned, as_json=as_json)
        if not yes and not planned.plan.is_empty:
            confirm("Apply these changes?")
        return _apply(workspace, planned, as_json=as_json)


def _up_saved(opened: tuple[Workspace, SavedPlan], yes: bool, lock_timeout: str | None, as_json: bool) -> int:
    """Apply a saved plan. Its review was the question, but for what takes something away."""
    from deployer.app.planning.saved_plan import plan_again
    from deployer.app.stack.lock_wait import held_in_time
    from deployer.cli.deploy.plugin_offer import offer_aws_provider
    from deployer.console.output import note

    workspace, saved = opened
    file = saved.saved_as
    offer_aws_provider(workspace, saved.desired, may_ask=not (yes or as_json))
    # What the plan is compared with stays so until it is applied.
    with held_in_time(workspace, saved.desired, lock_timeout):
        planned, moved = plan_again(workspace, saved)
        if moved:
            return _refuse_moved(file.file, moved, already=planned.plan.is_empty, as_json=as_json)
        if not as_json:
            show(planned)
            note(f"{file.file} is {file.digest}" + (f", signed by {file.signed_by}" if file.signed_by else ""))
        if planned.plan.is_refused:
            return refuse(planned, as_json=as_json)
        if planned.plan.takes_away and not yes:
            confirm("Apply this plan? It takes away what is shown.")
        return _apply(workspace, planned, as_json=as_json, saved=file)


def _apply(workspace: Workspace, planned: Planned, *, as_json: bool, saved: SavedAs | None = None) -> int:
    from deployer.app.planning.orphaned_tables import delete_unknown, end_deletions
    from deployer.app.stack.publish_clusters import publish_applied, remove_unused_code
    from deployer.cli.summaries.unreadable import as_json_rows
    from deployer.console.output import note, print_json, stdout
    from deployer.console.step_view import StepView
    from deployer.plan.render.json_form import plan_as_json
    from deployer.specs import known_lake
    from deployer.system.failpoints import reached

    reached("cli.up.planned")
    _record_others(workspace.root(planned.lake), planned)
    # With an empty plan too: Pulumi's state takes over what was refreshed, and what a run that was cut off left open.
    # The program applies the lake that was shown, even if somebody edits the specs meanwhile.
    ended = end_deletions(workspace, planned)
    for address in ended.values():
        note(f"ended the deletion of {address}, which was cut off")
    refreshed = planned.refreshed.without(ended) if planned.refreshed else None
    for line in delete_unknown(workspace, planned):
        note(line)
    with known_lake(workspace.dir, workspace.specs, planned.lake, workspace.stack), StepView(as_json=as_json) as view:
        result = planned.engine().up(
            workspace.stack_ref,
            on_event=view,
            targets=planned.scope.targets,
            allow_destroy=planned.allow_destroy,
            config=planned.config,
            leave=planned.scope.leave,
            refreshed=refreshed,
        )
    publish_applied(workspace, planned.lake, planned.engine())
    remove_unused_code(workspace, planned.lake, planned.engine())
    unreadable = planned.plan.unreadable
    if as_json:
        error = {"error": {"kind": "Corrupt", "unreadable": as_json_rows(unreadable)}} if unreadable else {}
        print_json({"plan": plan_as_json(planned.plan, saved=saved), "summary": dict(result.summary), **error})
    elif not planned.plan.is_empty:
        stdout().print(view.summary(result.operations))
    _remove_old_datasets(workspace.root(planned.lake), planned)
    return _tell_unreadable(planned, as_json=as_json)


def _tell_unreadable(planned: Planned, *, as_json: bool) -> int:
    """Say which tables were left as they are because they cannot be read; returns the exit code."""
    from deployer.console.output import stderr
    from deployer.text.formatting import count

    unreadable = planned.plan.unreadable
    if unreadable and not as_json:
        left = "was left as it is" if len(unreadable) == 1 else "were left as they are"
        names = ", ".join(table.address for table in unreadable)
        words = f"{count(len(unreadable), 'table')} cannot be read and {left}: {names}"
        remedy = "everything else was applied; `deployer state verify` says what is wrong"
        stderr().print(f"error: {words}; {remedy}", style="red", soft_wrap=True)
    return 1 if unreadable else 0


def _record_others(root: str, planned: Planned) -> None:
    """Record in the tables' logs what was committed to Lance and is not there yet, which the plan counted in."""
    behind = [table for table in planned.live.tables.values() if not table.recorded]
    if not behind:
        return
    from contextlib import closing

    from deployer.console.output import note
    from deployer.datasets.recovery.rollforward import refresh
    from deployer.errors import DeployerError
    from deployer.state import open_store

    with closing(open_store(root)) as store:
        for table in behind:
            try:
                refresh(store, root, table.table_id)
            except DeployerError as error:
                note(f"{table.spec.address}: what others committed to it could not be recorded: {error}")


def _remove_old_datasets(root: str, planned: Planned) -> None:
    """Remove what rewrites left and the plan showed; datasets that have to be looked at first are named.

    With targets, only those tables are looked at.
    """
    from contextlib import closing

    from deployer.console.output import note
    from deployer.errors import NotFound
    from deployer.state import open_store
    from deployer.tables.rewrite.cleanup import remove_old_datasets

    try:
        store = open_store(root)
    except NotFound:
        return
    tables: list[str] = [""]  # all of them
    if planned.plan.targets is not None:
        tables = [table.table_id for table in planned.live.tables.values() if table.former]
    with closing(store):
        foreseen = {each.name for each in planned.plan.removals if each.kind in ("replaced", "unfinished")}
        for old in (each for only in tables for each in remove_old_datasets(store, root, only=only, foreseen=foreseen)):
            gone = "a rewrite that is not wanted any more" if old.given_up else "the table was rewritten since"
            note(f"{old.table}: {old.location} is {f'kept: {old.why}' if old.why else f'removed: {gone}'}")


def _refuse_moved(file: str, moved: list[MovedFact], *, already: bool, as_json: bool) -> int:
    """Say what moved since the plan was made, and that nothing was changed; returns the exit code.

    `already`: the lake is as the plan wants it.
    """
    from dataclasses import asdict

    from deployer.console.output import print_json, stderr
    from deployer.errors import Refused

    if as_json:
        print_json({"error": {"kind": Refused.kind, "where": file, "moved": [asdict(each) for each in moved]}})
        return Refused.exit_code
    console = stderr()
    for each in moved:
        console.print(str(each), soft_wrap=True)
    number = "1 thing" if len(moved) == 1 else f"{len(moved)} things"
    remedy = "the lake is as the plan wants it already" if already else "preview again with --out"
    console.print(
        f"error: {file}: {number} that the plan read moved since, nothing was changed; {remedy}",
        style="red",
        soft_wrap=True,
    )
    return Refused.exit_code


def show(planned: Planned) -> None:
    """Print the plan as a tree."""
    from deployer.console.output import stdout
    from deployer.plan.render.terminal import plan_as_tree

    stdout().print(plan_as_tree(planned.plan))


def refuse(planned: Planned, *, as_json: bool) -> int:
    """Say that the plan has parts that are refused, and that nothing was changed; returns the exit code."""
    from deployer.console.output import print_json, stderr
    from deployer.errors import Refused
    from deployer.plan.render.json_form import plan_as_json

    refused, denied = planned.plan.refused, planned.plan.denied
    if as_json:
        reasons = [{"address": change.change.address, "why": change.refused} for change in refused]
        reasons += [{"address": each.address, "why": each.refused} for each in planned.plan.refused_removals]
        reasons += [{"address": each.address, "why": f"{each.rule}: {each.message}"} for each in denied]
        print_json({"plan": plan_as_json(planned.plan), "error": {"kind": "Refused", "refused": reasons}})
        return Refused.exit_code
    said = []
    if number := len(refused) + len(planned.plan.refused_removals):
        said.append("1 change is refused" if number == 1 else f"{number} changes are refused")
    if denied:
        said.append(f"{len(denied)} mandatory violation{'s' if len(denied) > 1 else ''} of policies")
    remedy = "; mend the specs, or have them approved in policies/" if denied else ""
    stderr().print(f"error: {', '.join(said)}, nothing was changed{remedy}", style="red", soft_wrap=True)
    return Refused.exit_code


def confirm(question: str) -> None:
    """Ask for a yes; raises InvalidInput where nobody can be asked, Interrupted for a no."""
    import sys

    from deployer.console.output import ask_yes_or_no
    from deployer.errors import Interrupted, InvalidInput

    if not sys.stdin.isatty():
        raise InvalidInput("nobody can be asked here", remedy="give --yes to apply without asking")
    if not ask_yes_or_no(question):
        raise Interrupted("stopped by your answer, nothing was changed")
