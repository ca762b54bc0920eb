"""The plan of datasets of recordings. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from deployer.live.model import LiveDataset, LiveLake, TableStatistics
from deployer.plan.assess.risk import Risk, assess
from deployer.plan.diff.lakes import diff
from deployer.plan.graph import Graph
from deployer.plan.graph.build import Spec
from deployer.plan.model import Action, PlannedChange, ResourcePlan
from deployer.plan.planning.cause import cause
from deployer.specs.types.dataset import DatasetSpec
from deployer.state.model.declared_properties import DEFAULT_DATABASE


def plan_datasets(graph: Graph, live: LiveLake, *, owner: str, allow_destroy: Collection[str]) -> list[ResourcePlan]:
    """Returns the plan of datasets: those of the graph in its order, then deletions by name.

    `owner` is the `project/stack` whose datasets are deleted when the specs no longer declare them. Datasets in
    Pulumi's state of the stack are deleted too. In the statistics, rows are layers.
    """
    found = []
    for node in graph.nodes.values():
        if isinstance(node.spec, DatasetSpec):
            now = live.datasets.get(node.address)
            found.append(_plan(node.address, now, node.spec, allow_destroy, _refusal(node.spec, now, live, owner)))
    for address, dataset in sorted(live.datasets.items()):
        is_own = dataset.owner == owner or dataset.dataset_id in live.applied_datasets
        if address not in graph.nodes and is_own:
            found.append(_plan(address, dataset, None, allow_destroy, None))
    return found


def action_of(before: Spec | None, after: Spec | None, planned: Sequence[PlannedChange]) -> Action:
    """Returns the action on a resource with these changes."""
    if not planned:
        return "same"
    if before is None:
        return "create"
    return "delete" if after is None else "update"


def _plan(
    address: str, now: LiveDataset | None, after: DatasetSpec | None, allow_destroy: Collection[str], why: str | None
) -> ResourcePlan:
    before = now.spec if now is not None else None
    statistics = TableStatistics(rows=now.layers, known=bool(now.dataset_id)) if now is not None else TableStatistics()
    planned = []
    for change in diff(before, after):
        assessment, refused = assess(change, statistics), why
        if refused is None and assessment.risk is Risk.DESTROYS and address not in allow_destroy:
            refused = f"destroys data; to allow it: --allow-destroy {address}"
        planned.append(PlannedChange(change, assessment, cause(change, after), refused))
    live_address, dataset_id = (address, now.dataset_id) if now is not None else ("", "")
    return ResourcePlan(
        address, action_of(before, after, planned), tuple(planned), statistics, live_address, dataset_id
    )


def _refusal(spec: DatasetSpec, now: LiveDataset | None, live: LiveLake, owner: str) -> str | None:
    """Returns why no change of a dataset is applied; None where changes are applied."""
    if now is not None and now.owner not in ("", owner) and now.dataset_id not in live.applied_datasets:
        return f"stack {now.owner} manages the dataset: give this one another name"
    table = f"table/{DEFAULT_DATABASE}.{spec.name}"
    if now is None and live.at(table) is not None:
        return f"{table} has the name: give the dataset another one, or rename the table"
    return None
