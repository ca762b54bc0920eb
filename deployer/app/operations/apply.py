"""`apply` and `apply_plan`: change the lake to what the specs, or a plan, declare."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deployer.app.operations.plan import PlanRefused, PlanResult, live_plan
from deployer.app.operations.recordings import AppliedRecordings, apply_recordings
from deployer.app.planning.addresses import check_addresses
from deployer.app.planning.plan import Planned, plan_lake
from deployer.app.planning.saved_plan import as_saved_plan, open_plan, plan_again
from deployer.app.reporter import SILENT, Reporter
from deployer.app.stack.engine import prepare_for
from deployer.app.stack.lock_wait import held_in_time
from deployer.app.stack.missing_plugin import InstallMissing, handle_missing_plugin
from deployer.app.workspace import Workspace, open_workspace
from deployer.engine import Engine, Operation
from deployer.errors import DeployerError, Interrupted, NotFound, Refused
from deployer.live.model import Unreadable
from deployer.plan.saved.file import MovedFact
from deployer.platform.system.failpoints import reached
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.platform.text import masking
from deployer.specs import known_lake
from deployer.specs.model import Lake

if TYPE_CHECKING:
    from deployer.tables.evolution.rewrite.cleanup import OldDataset

#: Receives a plan that changes something, and returns whether the plan may be applied.
Approve = Callable[[PlanResult], bool]


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """The result of `apply` or `apply_plan`.

    `summary` counts the engine's operations by kind, `operations` lists them. `old_datasets` are datasets that rewrites
    left behind and whose retention has ended: removed, or kept for a reason. `recordings` lists the recordings that
    were registered with datasets, and the failures.
    """

    plan: PlanResult
    summary: Mapping[str, int]
    operations: tuple[Operation, ...]
    old_datasets: tuple[OldDataset, ...] = ()
    recordings: tuple[AppliedRecordings, ...] = ()

    @property
    def unreadable(self) -> tuple[Unreadable, ...]:
        """The tables that were left unchanged because they cannot be read; everything else was applied."""
        return self.plan.unreadable

    def to_json(self) -> dict[str, Any]:
        """Returns the document that `deployer up --json` prints."""
        document: dict[str, Any] = {"plan": self.plan.to_json(), "summary": dict(self.summary)}
        if self.recordings:
            document["recordings"] = [each.to_json() for each in self.recordings]
        if self.unreadable:
            rows = [each.as_row() for each in self.unreadable]
            document["error"] = {"kind": "Corrupt", "unreadable": rows}
        return document


class PlanMoved(Refused):
    """The state that a plan read has changed, so nothing was applied. `moved` lists each change. `file` is the file of
    a saved plan; None where the plan was passed as a value."""

    kind = "Refused"

    def __init__(self, file: str | None, moved: Sequence[MovedFact], *, is_applied: bool) -> None:
        self.file, self.moved = file, tuple(moved)
        number = "1 thing" if len(moved) == 1 else f"{len(moved)} things"
        remedy = "the lake already has the state that the plan declares" if is_applied else "preview again with --out"
        what = f"{number} that the plan depends on changed since it was made; nothing was applied"
        super().__init__(what, where=file, remedy=remedy)

    def details(self) -> tuple[str, ...]:
        return tuple(map(str, self.moved))

    def document(self) -> dict[str, Any]:
        moved = [asdict(each) for each in self.moved]
        return {"error": {"kind": self.kind, "where": self.file, "moved": moved}}


def ignore_plan(_: PlanResult) -> None:
    """Does nothing with the plan: the default of `on_plan`."""


def apply(
    project: Path | str | None = None,
    stack: str = "dev",
    specs: Path | str | None = None,
    *,
    approve: Approve,
    targets: Sequence[str] = (),
    allow_destroy: Sequence[str] = (),
    delete_savepoints: bool = False,
    new_state: bool = False,
    lock_timeout: str | None = None,
    on_plan: Callable[[PlanResult], None] = ignore_plan,
    install_missing: InstallMissing | None = None,
    reporter: Reporter = SILENT,
    on_progress: OnProgress = no_progress,
) -> ApplyResult:
    """Plans and applies what the specs declare. Other runs on the stack are refused until it ends.

    The arguments are those of `plan`. `on_plan` receives the plan first. Then `approve` is called, unless the plan is
    empty; Interrupted is raised if it returns False. `lock_timeout`, such as `"90s"`, is how long to wait while another
    run holds the stack; then Conflict is raised, by default at once. `install_missing` receives a provider's plugin
    that the program needs and that is not installed. `on_progress` receives the progress of the planning, until
    `on_plan` is called; the `reporter` receives that of the steps.

    Raises PlanRefused for a plan with refused changes. Raises EngineFailed where a step fails; completed steps are then
    saved.
    """
    with masking.scope() as secrets:
        opened = open_workspace(project, stack, specs)
        workspace = replace(opened, new_state=new_state, delete_savepoints=delete_savepoints)
        on_progress(Progress("reading the specs", 0, None, ""))
        prepare_for(workspace)
        lake = workspace.lake()
        handle_missing_plugin(workspace, lake, install_missing)
        with held_in_time(workspace, lake, lock_timeout, reporter):
            planned = plan_lake(
                workspace, lake, allow_destroy, chosen=targets, reporter=reporter, on_progress=on_progress
            )
            check_addresses("--allow-destroy", allow_destroy, planned.plan)
            result = PlanResult(planned.plan, workspace, planned, secrets=secrets)
            on_plan(result)
            if result.is_refused:
                raise PlanRefused(result)
            if not result.is_empty:
                require_approval(result, approve)
            return _apply(workspace, planned, result, reporter)


def apply_plan(
    plan: PlanResult | Path | str,
    *,
    project: Path | str | None = None,
    stack: str | None = None,
    expect: str | None = None,
    approve: Approve | None = None,
    new_state: bool = False,
    lock_timeout: str | None = None,
    on_plan: Callable[[PlanResult], None] = ignore_plan,
    install_missing: InstallMissing | None = None,
    reporter: Reporter = SILENT,
    on_progress: OnProgress = no_progress,
) -> ApplyResult:
    """Applies exactly this plan, of `plan` or of a file of `save_plan`, unless something that it read changed since.

    `expect` is the digest that a file must have. A file must be signed where DEPLOYER_PLAN_PUBLIC_KEY is set. `approve`
    is called only where the plan destroys data, or deletes or replaces a resource. Other arguments are those of
    `apply`.

    Raises PlanMoved with everything that changed, Refused for a plan of another project, stack, digest or signature,
    Corrupt for a file that was damaged or edited, and what `apply` raises.
    """
    with masking.scope() as secrets:
        if isinstance(plan, PlanResult):
            workspace, saved = plan.workspace, as_saved_plan(plan.workspace, live_plan(plan))
        else:
            workspace, saved = open_plan(Path(plan), None if project is None else Path(project), stack, expect)
        workspace = replace(workspace, new_state=new_state or workspace.new_state)
        file = saved.saved_as if saved.saved_as.file else None
        handle_missing_plugin(workspace, saved.desired, install_missing)
        # The state that the plan is compared with does not change until the plan is applied.
        with held_in_time(workspace, saved.desired, lock_timeout, reporter):
            planned, moved = plan_again(workspace, saved, reporter, on_progress)
            if moved:
                raise PlanMoved(file.file if file else None, moved, is_applied=planned.plan.is_empty)
            result = PlanResult(planned.plan, workspace, planned, saved=file, secrets=secrets)
            on_plan(result)
            if result.is_refused:
                raise PlanRefused(result)
            if result.takes_away and approve is not None:
                require_approval(result, approve)
            return _apply(workspace, planned, result, reporter)


def require_approval(plan: PlanResult, approve: Approve) -> None:
    """Raises Interrupted if `approve` returns False."""
    if not approve(plan):
        raise Interrupted("the plan was not approved; nothing was changed")


def _apply(workspace: Workspace, planned: Planned, result: PlanResult, reporter: Reporter) -> ApplyResult:
    from deployer.app.planning.orphaned_tables import finish_deletions

    reached("cli.up.planned")
    root = workspace.root(planned.lake)
    _record_others(root, planned, reporter)
    # This also runs for an empty plan: Pulumi's state then takes over what was refreshed, and what an interrupted run
    # left open. The program applies the lake that was shown, even if the specs are edited meanwhile.
    ended = finish_deletions(workspace, planned, reporter)
    refreshed = planned.refreshed.without(ended) if planned.refreshed else None
    with known_lake(workspace.dir, workspace.specs, planned.lake, workspace.stack), reporter.steps() as on_event:
        applied = planned.engine().up(
            workspace.stack_ref,
            on_event=on_event,
            targets=planned.scope.targets,
            allow_destroy=planned.allow_destroy,
            config=planned.config,
            leave=planned.scope.leave,
            refreshed=refreshed,
        )
    _publish_clusters(workspace, planned.lake, planned.engine(), reporter)
    _remove_unused_code(workspace, planned.lake, planned.engine(), reporter)
    recordings = apply_recordings(workspace, planned)
    removed = _remove_old_datasets(root, planned)
    return ApplyResult(result, applied.summary, applied.operations, removed, recordings)


def _record_others(root: str, planned: Planned, reporter: Reporter) -> None:
    """Records in the tables' logs the commits to Lance that the plan counted and the logs lack."""
    behind = [table for table in planned.live.tables.values() if not table.recorded]
    if not behind:
        return
    from deployer.datasets.recovery.rollforward import refresh
    from deployer.state import open_store

    with closing(open_store(root)) as store:
        for table in behind:
            try:
                refresh(store, root, table.table_id)
            except DeployerError as error:
                reporter.note(f"{table.spec.address}: what others committed to it could not be recorded: {error}")


def _remove_old_datasets(root: str, planned: Planned) -> tuple[OldDataset, ...]:
    """Removes the datasets that rewrites left and the plan showed. Returns them, and those that are kept with the
    reason.

    Only tables that had an old dataset or that the plan changed are checked: the state of the others is not read.
    """
    from deployer.state import open_store
    from deployer.tables.evolution.rewrite.cleanup import remove_old_datasets

    tables = {table.table_id for table in planned.live.tables.values() if table.former}
    changed = (each for each in planned.plan.resources if each.changes and not each.address.startswith("dataset/"))
    tables |= {resource.table_id for resource in changed if resource.table_id}
    if not tables:
        return ()
    foreseen = {each.name for each in planned.plan.removals if each.kind in ("replaced", "unfinished")}
    try:
        store = open_store(root)
    except NotFound:
        return ()
    with closing(store):
        return tuple(remove_old_datasets(store, root, only=tables, foreseen=foreseen))


def _publish_clusters(workspace: Workspace, lake: Lake, engine: Engine, reporter: Reporter) -> None:
    """Publishes the current clusters of the stack on AWS. A failure becomes a note, and what is applied stays
    applied."""
    from deployer.app.stack.state import stack_outputs
    from deployer.compute.jobs.code import REMOTE_KINDS
    from deployer.compute.running.published_clusters import publish_clusters

    if not any(each.kind in REMOTE_KINDS for each in lake.instance.clusters):
        return
    try:
        publish_clusters(workspace.root(lake), stack_outputs(workspace, engine), workspace.values)
    except DeployerError as error:
        reporter.note(f"programs cannot find the clusters of the lake: {error}")


def _remove_unused_code(workspace: Workspace, lake: Lake, engine: Engine, reporter: Reporter) -> None:
    """Removes code of jobs that no stack has used for long. A failure becomes a note, and what is applied stays
    applied."""
    from deployer.compute.old_job_code import DAYS, remove_old_code
    from deployer.platform.text.formatting import count, size

    root = workspace.root(lake)
    if not root.startswith("s3://"):
        return
    try:
        removed = remove_old_code(root, lambda: json.dumps(dict(engine.export(workspace.stack_ref))))
    except DeployerError as error:
        reporter.note(f"old code of jobs could not be listed: {error}")
        return
    if removed.objects:
        amount = f"{count(removed.objects, 'object')}, {size(removed.bytes)}"
        reporter.note(f"removed code of jobs that no stack has used for {DAYS} days: {amount}")
