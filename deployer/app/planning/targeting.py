"""`--target` of `preview` and `up`: the resources that take part, and what the engine may and may not touch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from deployer.app.stack.fast_path import Recorded
from deployer.app.workspace import Workspace
from deployer.engine import Operation
from deployer.engine.project.backend_url import is_known
from deployer.errors import InvalidInput, Refused
from deployer.live.model import LiveLake, Unreadable
from deployer.plan import Plan
from deployer.plan.targeting.targets import Targets, matching, needs_instance, resolve_targets
from deployer.provider.urn import address_of, urn_of
from deployer.specs.model import Lake

#: The limit of `plan_lake`: addresses and globs of a user, or the targets of a saved plan.
Chosen = Sequence[str] | Targets


@dataclass(frozen=True, slots=True)
class Scope:
    """URNs for the engine. With `targets`, it touches only these. It never touches what is in `leave`."""

    targets: frozenset[str] = frozenset()
    leave: frozenset[str] = frozenset()


def choose_targets(chosen: Chosen, lake: Lake, live: Mapping[str, str], recorded: Recorded) -> Targets | None:
    """Returns the targets of a run; None for the whole lake. `live` has the addresses of the state store's tables by
    id."""
    if isinstance(chosen, Targets):
        return chosen
    return resolve_targets(chosen, lake, live, recorded.ids) if chosen else None


def limited(workspace: Workspace, plan: Plan, lake: Lake, live: LiveLake, recorded: Recorded, targets: Targets) -> Plan:
    """Returns the plan of the targets. The instance stays in it if it is a target, or if the targets need it.

    `plan`, `lake` and `live` have the targets' tables and the instance. Raises InvalidInput for a target that matches
    only a table of another stack.
    """
    instance = lake.instance.address
    # then it is also unknown what a table belongs to
    unknown = is_known(workspace.project.backend_url) and instance not in recorded.ids
    if unknown or needs_instance((each.change for each in plan.changes), lake, live):
        targets = targets.needing(instance)
    resources = tuple(each for each in plan.resources if each.address != instance or instance in targets.addresses)
    plan = replace(plan, resources=resources, targets=targets)
    own = {each.address for each in plan.resources} | {each.address for each in plan.unreadable}
    own |= {each.live_address for each in plan.resources}
    own |= {f"table/{table.former_name}" for table in lake.tables if table.former_name}
    own |= {each.entry.address for each in live.unfinished} | recorded.ids.keys()
    for given in targets.given:
        if not matching(given, own):
            raise InvalidInput(
                f"--target {given}: this stack neither declares nor manages it, so there is nothing to plan",
                where=instance,
                remedy="leave it out, or run `deployer tables` to see which stack manages it",
            )
    return plan


def scope_of(workspace: Workspace, targets: Targets | None, lake: Lake, live: LiveLake, recorded: Recorded) -> Scope:
    """Returns what the engine may touch: everything except tables that cannot be read, and what is not targeted.

    Resources of other providers belong to the instance. If the instance takes part, they do too, and only tables and
    datasets are left alone.
    """
    leave = _unreadable(lake, live, recorded)
    if targets is not None and lake.instance.address not in targets.addresses:
        chosen = urns_of(workspace, targets.addresses, recorded)
        return Scope(chosen, urns_of(workspace, leave, recorded))
    if targets is not None:
        others = {table.address for table in lake.tables} | {dataset.address for dataset in lake.datasets}
        others |= {address for address in recorded.ids if address.startswith(("table/", "dataset/"))}
        leave |= others - targets.addresses
    return Scope(leave=urns_of(workspace, leave, recorded))


def refuse_unreached(plan: Plan, scope: Scope, operations: Collection[Operation]) -> None:
    """Raises Refused for a table to be created that the engine passes over. The program declares it inside of a
    component, so that its URN differs from the one that follows from its address."""
    reached = {address_of(operation.urn) for operation in operations}
    for resource in plan.resources:
        if scope.targets and resource.action == "create" and resource.address not in reached:
            raise Refused(
                "the program declares it inside of a component, where --target does not find it before it exists",
                where=resource.address,
                remedy="create it without --target, or declare it outside of components",
            )


def _unreadable(lake: Lake, live: LiveLake, recorded: Recorded) -> set[str]:
    """Returns the addresses of tables that cannot be read: the live, the declared and the applied ones."""
    if not live.unreadable:
        return set()
    ids = {table.table_id for table in live.unreadable.values()}
    declared = {table.address for table in lake.tables if isinstance(live.of(table), Unreadable)}
    return {*live.unreadable, *declared, *(address for address, id_ in recorded.ids.items() if id_ in ids)}


def urns_of(workspace: Workspace, addresses: Collection[str], recorded: Recorded) -> frozenset[str]:
    """Returns the URNs of resources, under all names that the program or Pulumi's state has for them."""
    urns = {urn_of(workspace.project.name, workspace.stack, address) for address in addresses}
    return frozenset(urns | {urn for address, urn in recorded.urns.items() if address in addresses})


def recorded_of(recorded: Recorded, targets: Targets | None) -> Recorded:
    """Returns the part of Pulumi's state that concerns the targets."""
    if targets is None:
        return recorded
    return replace(
        recorded, ids={address: id_ for address, id_ in recorded.ids.items() if address in targets.addresses}
    )
