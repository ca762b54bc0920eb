"""`plan`: the changes that `apply` would make, as a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deployer.app.planning.plan import Planned, plan_up
from deployer.app.reporter import SILENT, Reporter
from deployer.app.workspace import Workspace, open_workspace
from deployer.errors import InvalidInput, Refused
from deployer.live.model import Unreadable
from deployer.plan.assess.risk import Risk
from deployer.plan.model import Action, Plan, PlannedChange
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.platform.text import masking

if TYPE_CHECKING:
    from deployer.plan.assess.cost_delta import MonthlyCost
    from deployer.plan.saved.seal import PlanSigner, SavedAs
    from deployer.plan.verdict import Verdict


@dataclass(frozen=True, slots=True)
class PlanResult:
    """A plan: the changes of an operation, their risks, and whether they may be applied.

    `plan` has every resource with its changes. `against` is the Git ref that the specs were compared with; None where
    live state was read. `saved` is the file of a saved plan, otherwise None.
    """

    plan: Plan
    workspace: Workspace = field(repr=False, compare=False)
    planned: Planned | None = field(default=None, repr=False, compare=False)  #: None where no live state was read
    against: str | None = None
    saved: SavedAs | None = None
    secrets: masking.KnownSecrets | None = field(default=None, repr=False, compare=False)  #: no file may contain these

    @property
    def instance(self) -> str:
        """The name of the instance."""
        return self.plan.instance

    @property
    def changes(self) -> tuple[PlannedChange, ...]:
        """Every change of the lake's own resources with its risk, its cause and, if it is refused, the reason."""
        return self.plan.changes

    @property
    def totals(self) -> Mapping[Action, int]:
        """Returns how many resources are created, updated, deleted and left unchanged."""
        return self.plan.counts()

    @property
    def risk(self) -> Risk:
        """The highest risk of all changes; safe where there are none."""
        return max((each.assessment.risk for each in self.changes), key=list(Risk).index, default=Risk.SAFE)

    @property
    def cost(self) -> MonthlyCost | None:
        """The change of the expected monthly cost; None where nothing changes, or the root is on a disk."""
        return self.plan.cost

    @property
    def verdict(self) -> Verdict | None:
        """The verdict of the project's policies on the plan; None without policies."""
        return self.plan.verdict

    @property
    def unreadable(self) -> tuple[Unreadable, ...]:
        """The tables that cannot be read. `apply` leaves them unchanged, `destroy` deletes them."""
        return self.plan.unreadable or (tuple(self.planned.live.unreadable.values()) if self.planned else ())

    @property
    def is_empty(self) -> bool:
        """Returns whether there is nothing to do. Tables may be unreadable nevertheless."""
        return self.plan.is_empty

    @property
    def is_refused(self) -> bool:
        """Returns whether `apply` raises PlanRefused: a change is refused, or the plan violates a mandatory rule of the
        policies."""
        return self.plan.is_refused

    @property
    def takes_away(self) -> bool:
        """Returns whether the plan destroys data, or deletes or replaces a resource of any provider."""
        return self.plan.takes_away

    def to_json(self) -> dict[str, Any]:
        """Returns the document that `deployer preview --json` prints."""
        from deployer.plan.render.json_form import plan_as_json

        return plan_as_json(self.plan, self.against, self.saved)


class PlanRefused(Refused):
    """The plan has refused changes, or it violates mandatory rules; nothing was changed. `plan` is the plan."""

    kind = "Refused"

    def __init__(self, result: PlanResult) -> None:
        self.plan, found, reasons = result, result.plan, []
        if number := len(found.refused) + len(found.refused_removals):
            reasons.append("1 change is refused" if number == 1 else f"{number} changes are refused")
        if found.denied:
            reasons.append(f"{len(found.denied)} mandatory violation{'s' if len(found.denied) > 1 else ''} of policies")
        remedy = "fix the specs, or have them approved in policies/" if found.denied else ""
        super().__init__(f"{', '.join(reasons)}; nothing was changed", remedy=remedy)

    def document(self) -> dict[str, Any]:
        found = self.plan.plan
        reasons = [{"address": each.change.address, "why": each.refused} for each in found.refused]
        reasons += [{"address": each.address, "why": each.refused} for each in found.refused_removals]
        reasons += [{"address": each.address, "why": f"{each.rule}: {each.message}"} for each in found.denied]
        return {"plan": self.plan.to_json(), "error": {"kind": self.kind, "refused": reasons}}


def plan(
    project: Path | str | None = None,
    stack: str = "dev",
    specs: Path | str | None = None,
    *,
    targets: Sequence[str] = (),
    allow_destroy: Sequence[str] = (),
    delete_savepoints: bool = False,
    new_state: bool = False,
    against: str | None = None,
    reporter: Reporter = SILENT,
    on_progress: OnProgress = no_progress,
) -> PlanResult:
    """Plans what `apply` would change, against refreshed live state. Writes neither to the lake nor to any state.

    `project` is the folder of `Pulumi.yaml`; by default the current folder or the nearest parent that has the file.
    `specs` is a file or folder of specs; by default `deployer:specs` of the stack. `targets` are addresses or globs
    that limit the plan. `allow_destroy` are addresses whose data may be destroyed. `delete_savepoints` lets tables be
    deleted with their savepoints, `new_state` allows a new state store in the place of a lost one. With `against`, a
    Git ref, the specs are compared with those at the ref, and no live state is read. `on_progress` receives the steps
    of the planning and their progress; exceptions that it raises end the plan.

    Raises InvalidSpecs with every problem, InvalidInput for a wrong argument, Refused for another stack's lake.
    """
    with masking.scope() as secrets:
        if against is not None:
            from deployer.app.spec_diff.compare import Comparison, plan_against

            on_progress(Progress(f"comparing the specs with those at {against}", 0, None, ""))
            compared = Comparison(_path(project), stack, _path(specs), against, tuple(targets))
            workspace, found = plan_against(compared, allow_destroy, reporter)
            return PlanResult(found, workspace, against=against, secrets=secrets)
        opened = open_workspace(project, stack, specs)
        workspace = replace(opened, new_state=new_state, delete_savepoints=delete_savepoints)
        planned = plan_up(workspace, allow_destroy, targets, reporter, on_progress)
        return PlanResult(planned.plan, workspace, planned, secrets=secrets)


def save_plan(result: PlanResult, file: Path | str, *, signer: PlanSigner | None = None) -> PlanResult:
    """Saves the plan for `apply_plan`, and returns it with its file and digest as `saved`.

    The file is signed by `signer`, or else with the key in DEPLOYER_PLAN_KEY where that is set. Raises Refused for a
    plan that `apply_plan` would refuse, InvalidInput where the file cannot be written.
    """
    from deployer.app.planning.saved_plan import write_saved_plan
    from deployer.plan.saved.seal import plan_signer

    planned = live_plan(result)
    secrets = result.secrets or masking.current()
    return replace(
        result, saved=write_saved_plan(result.workspace, planned, Path(file), signer or plan_signer(), secrets)
    )


def live_plan(result: PlanResult) -> Planned:
    """Returns the plan with its live state. Raises InvalidInput for a plan between two versions of the specs, which has
    no live state."""
    if result.planned is None:
        raise InvalidInput(
            "a plan against a Git ref cannot be saved or applied",
            remedy="plan without `against`: a plan can only be applied to the live state that it was made from",
        )
    return result.planned


def _path(given: Path | str | None) -> Path | None:
    return None if given is None else Path(given)
