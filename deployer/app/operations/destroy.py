"""`destroy`: deletes what a stack manages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deployer.app.operations.apply import Approve, ignore_plan, require_approval
from deployer.app.operations.plan import PlanRefused, PlanResult
from deployer.app.planning.addresses import check_addresses
from deployer.app.planning.foreign import foreign_resources, refuse_protected
from deployer.app.planning.orphaned_tables import finish_deletions
from deployer.app.planning.plan import plan_destroy
from deployer.app.reporter import SILENT, Reporter
from deployer.app.stack.lock_wait import held_in_time
from deployer.app.stack.missing_plugin import InstallMissing, handle_missing_plugin
from deployer.app.workspace import open_workspace
from deployer.engine import Operation
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.platform.text import masking


@dataclass(frozen=True, slots=True)
class DestroyResult:
    """The result of `destroy`.

    `summary` counts the engine's operations by kind, `operations` lists them. `kept` are the names of protected
    resources that stay in AWS and are not part of the stack any more.
    """

    plan: PlanResult
    summary: Mapping[str, int]
    operations: tuple[Operation, ...]
    kept: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Returns whether there was nothing to delete."""
        return not self.summary.get("delete")

    def to_json(self) -> dict[str, Any]:
        """Returns the document that `deployer destroy --json` prints."""
        return {"plan": self.plan.to_json(), "summary": dict(self.summary)}


def destroy(
    project: Path | str | None = None,
    stack: str = "dev",
    specs: Path | str | None = None,
    *,
    approve: Approve,
    allow_destroy: Sequence[str] = (),
    delete_savepoints: bool = False,
    lock_timeout: str | None = None,
    on_plan: Callable[[PlanResult], None] = ignore_plan,
    install_missing: InstallMissing | None = None,
    reporter: Reporter = SILENT,
    on_progress: OnProgress = no_progress,
) -> DestroyResult:
    """Deletes every table that the stack manages, and the instance.

    The arguments are those of `apply`; `approve` is always called. Tables that hold rows are protected until
    `allow_destroy` names them or `deletion_protection: false` was applied.

    Raises PlanRefused for protected tables, Refused for protected resources of other providers, and what `apply`
    raises.
    """
    with masking.scope() as secrets:
        workspace = replace(open_workspace(project, stack, specs), delete_savepoints=delete_savepoints)
        on_progress(Progress("reading the specs", 0, None, ""))
        lake = workspace.lake()
        handle_missing_plugin(workspace, lake, install_missing)
        with held_in_time(workspace, lake, lock_timeout, reporter):
            planned = plan_destroy(workspace, lake, allow_destroy, reporter, on_progress)
            on_progress(Progress("asking the engine what the stack has", 0, None, ""))
            foreign = foreign_resources(workspace, planned.engine())
            planned = replace(planned, plan=replace(planned.plan, foreign=tuple(each.destroyed() for each in foreign)))
            check_addresses("--allow-destroy", allow_destroy, planned.plan)
            result = PlanResult(planned.plan, workspace, planned, secrets=secrets)
            on_plan(result)
            if result.is_refused:
                raise PlanRefused(result)
            refuse_protected(foreign, allow_destroy)
            require_approval(result, approve)
            finish_deletions(workspace, planned, reporter)
            with reporter.steps() as on_event:
                done = planned.engine().destroy(
                    workspace.stack_ref, on_event=on_event, allow_destroy=frozenset(allow_destroy)
                )
    kept = tuple(each.name for each in foreign if each.protected and each.kept)
    return DestroyResult(result, done.summary, done.operations, kept)
