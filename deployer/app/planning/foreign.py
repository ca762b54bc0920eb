"""What the engine would do that the planner did not say."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from deployer.app.reporter import Reporter
from deployer.app.stack.fast_path import Recorded
from deployer.app.workspace import Workspace
from deployer.engine import Operation
from deployer.engine.providers.plugin_search import find_plugin
from deployer.engine.values.urns import STACK_REFERENCE
from deployer.errors import DeployerError
from deployer.plan import Foreign, Plan
from deployer.provider.urn import address_of, is_in_no_cloud, type_of

#: Why Pulumi does something to a resource of the lake that is as the specs declare it.
_LEFT = {"create": "it is there; Pulumi's state of this stack takes it over"}
_USUAL = frozenset(("lake", "aws"))  #: packages of the programs that projects start with
_CUT_OFF = "left over from an interrupted run"


def with_foreign(plan: Plan, operations: Collection[Operation]) -> Plan:
    """The plan, which shows the operations of other providers, and those that only Pulumi's state needs."""
    return replace(plan, foreign=tuple(_foreign(plan, operations)))


def _foreign(plan: Plan, operations: Collection[Operation]) -> Iterator[Foreign]:
    """Operations that the planner did not say: those of other providers, and what only Pulumi's state needs."""
    planned = {(resource.address, resource.action) for resource in plan.resources if resource.changes}
    unreadable = {table.address for table in plan.unreadable}
    ended = {removal.table_id for removal in plan.removals if removal.kind == "deleting"}  # before the engine runs
    for operation in operations:
        if operation.op == "refresh" or is_in_no_cloud(operation.type, custom=operation.custom):
            continue
        if operation.op == "read" and operation.type == STACK_REFERENCE:
            continue
        address = address_of(operation.urn)
        if operation.op == "same":
            if operation.not_compared:
                what = address or f"{type_of(operation.urn)} {operation.name}"
                secrets = ", ".join(operation.not_compared)
                yield Foreign(what, "may change", f"a preview decrypts nothing, so {secrets} cannot be compared")
            continue
        if address is None:
            yield Foreign(f"{type_of(operation.urn)} {operation.name}", operation.op, operation.reason)
        elif address not in unreadable and (address, operation.op) not in planned and operation.id not in ended:
            yield Foreign(address, operation.op, operation.reason or _LEFT.get(operation.op, _CUT_OFF))


def note_plugins(workspace: Workspace, recorded: Recorded, reporter: Reporter) -> None:
    """Notes the programs that are started because Pulumi's state names their providers, the usual ones aside."""
    for package in sorted(recorded.packages - _USUAL):
        try:
            started = f"{find_plugin(package, workspace.project.plugins, workspace.dir)} is started"
        except DeployerError:
            started = "its plugin was not found"  # the engine says what to do, or the Pulumi CLI finds it
        reporter.note(f"Pulumi's state names the provider {package}: {started}")
