"""The verdict of the rules in `policies/` on a command's plan. Without that folder, no code of policies is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from deployer.app.reporter import Reporter
from deployer.app.workspace import Workspace
from deployer.errors import NotFound
from deployer.live.model import LiveLake
from deployer.plan import Plan
from deployer.plan.targeting.targets import describe_targets
from deployer.provider.unplanned import POLICIES, has_policies
from deployer.specs.model import Lake

if TYPE_CHECKING:
    from deployer.live.column_age import Since
    from deployer.plan.changes import ColumnPath
    from deployer.plan.graph.build import Spec
    from deployer.policy.model import Policies
    from deployer.policy.view import ColumnSince


@contextmanager
def opened_policies(workspace: Workspace, reporter: Reporter) -> Iterator[Policies | None]:
    """Yields the project's policies; None where there are none. They are read before the program runs, which could
    write other ones.

    Raises InvalidSpecs for policies that are not valid.
    """
    if not has_policies(workspace.dir):
        yield None
        return
    with _loaded(workspace.dir, "", reporter) as policies:
        yield policies


def judged(
    workspace: Workspace, plan: Plan, lake: Lake, live: LiveLake, policies: Policies | None, *, declared: bool = True
) -> Plan:
    """Returns the plan with the verdict of the policies; unchanged where there are none.

    `declared` is False where the plan deletes what the lake declares. A plan with targets is judged as if nothing else
    existed. Raises InvalidSpecs for rules that fail.
    """
    if policies is None:
        return plan
    specs: Sequence[Spec] = (lake.instance, *lake.tables, *lake.datasets) if declared else ()
    return _judged(workspace, plan, specs, live, policies, "", _since(live, workspace.root(lake)))


def judged_at_ref(
    workspace: Workspace, plan: Plan, lake: Lake, live: LiveLake, project: Path, ref: str, reporter: Reporter
) -> Plan:
    """Returns the plan with the verdict of the policies that the project had at a Git ref. The project's files at the
    ref are in the folder `project`."""
    from deployer.plan.verdict import Verdict

    if has_policies(project):
        with _loaded(project, ref, reporter) as policies:
            return _judged(workspace, plan, (lake.instance, *lake.tables, *lake.datasets), live, policies, ref, None)
    if has_policies(workspace.dir):
        note = f"there is no {POLICIES}/ at {ref}: its rules take effect once they are merged"
        return replace(plan, verdict=Verdict(notes=(note,), ref=ref))
    return plan


def _judged(
    workspace: Workspace,
    plan: Plan,
    specs: Sequence[Spec],
    live: LiveLake,
    policies: Policies,
    ref: str,
    since: ColumnSince | None,
) -> Plan:
    import datetime as dt

    from deployer.policy.evaluate import evaluate
    from deployer.policy.view import plan_view

    targets = plan.targets
    if targets is not None:
        specs = [spec for spec in specs if spec.address in targets.addresses]
        approvals = tuple(each for each in policies.approvals if each.address in targets.addresses)
        # otherwise approvals for other resources would count as unused
        policies = replace(policies, approvals=approvals)
    view = plan_view(plan, specs, live, workspace.stack, dt.datetime.now(dt.UTC), since)
    verdict = evaluate(policies, view)
    if targets is not None:
        verdict = replace(
            verdict, notes=(f"the rules checked the targets only: {describe_targets(targets)}", *verdict.notes)
        )
    return replace(plan, verdict=replace(verdict, ref=ref))


def _loaded(project: Path, ref: str, reporter: Reporter) -> Policies:
    from deployer.policy.load import load_policies

    return load_policies(project, ref, lambda line: reporter.note(f"policies: {line}"))


def _since(live: LiveLake, root: str) -> ColumnSince:
    def since(address: str, column: ColumnPath) -> Since | None:
        from deployer.live.column_age import column_since
        from deployer.state import open_reader

        table = live.tables.get(address)
        if table is None:
            return None
        try:
            with closing(open_reader(root)) as store:
                return column_since(store, table.table_id, column)
        except NotFound:
            return None

    return since
