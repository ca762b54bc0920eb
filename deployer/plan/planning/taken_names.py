"""Refuses names that a plan cannot give to a table, because another table has them while the plan is applied.

Pure. An engine applies resources in an undeclared order, and deletes at the end. So a name is free only if no table has
it now, or if the table that has it is deleted before the engine runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from deployer.live.model import LiveLake
from deployer.plan.changes import CreateTable, RenameTable
from deployer.plan.graph import Graph
from deployer.specs.model import TableSpec

if TYPE_CHECKING:
    from deployer.plan.model import ResourcePlan


def refuse_taken_names(resources: Sequence[ResourcePlan], graph: Graph, live: LiveLake) -> list[ResourcePlan]:
    """Returns the plan's resources. Each creation or rename to a name that another table has is refused."""
    deleted = {each.live_address for each in resources if each.action == "delete"} - live.resources.keys()
    return [_checked(resource, graph, live, deleted) for resource in resources]


def _checked(resource: ResourcePlan, graph: Graph, live: LiveLake, deleted: set[str]) -> ResourcePlan:
    spec = graph.spec(resource.address)
    if not isinstance(spec, TableSpec):
        return resource
    changes = []
    for each in resource.changes:
        names = []
        if isinstance(each.change, RenameTable | CreateTable):
            names = [spec.full_name]
        if isinstance(each.change, CreateTable) and spec.former_name:
            names.append(spec.former_name)  # a creation takes over the table of that name
        taken = [name for name in names if live.at(f"table/{name}") is not None and f"table/{name}" not in deleted]
        if taken and each.refused is None:
            each = replace(each, refused=_reason(taken[0], graph, live, create=isinstance(each.change, CreateTable)))
        changes.append(each)
    return replace(resource, changes=tuple(changes))


def _reason(name: str, graph: Graph, live: LiveLake, *, create: bool) -> str:
    holder = live.resources.get(f"table/{name}")
    if holder is None:
        return f"another table has the name {name}: rename that table, `deployer table rename {name} NAME`"
    former = holder.partition("/")[2]
    if holder in graph.nodes:
        return f"{holder} has the name {name} now: rename it back first, `deployer table rename {name} {former}`"
    if create:
        return (
            f"the table {name} is {holder} in Pulumi's state: write `renamed_from: {former}` to keep it under this "
            f"name, else give it another one, `deployer table rename {name} NAME`"
        )
    return (
        f"{holder}, which is deleted last, has the name {name} now: rename it first, "
        f"`deployer table rename {name} NAME`"
    )
