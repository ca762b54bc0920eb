"""Resources of other providers, such as the bucket of a lake on S3: in a plan, and in `destroy`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from deployer.app.reporter import Reporter
from deployer.app.stack.fast_path import Recorded
from deployer.app.workspace import Workspace
from deployer.engine import Engine, Operation
from deployer.engine.values.urns import STACK_REFERENCE
from deployer.errors import DeployerError, Refused
from deployer.plan import Foreign, Plan
from deployer.provider.urn import address_of, is_in_no_cloud, type_of

#: reasons for an operation of Pulumi on a resource of the lake that has no changes
_LEFT = {"create": "it exists already; Pulumi's state of this stack takes it over"}
_USUAL = frozenset(("lake", "aws"))  #: packages of the programs that new projects start with
_CUT_OFF = "left over from an interrupted run"


def with_foreign(plan: Plan, operations: Collection[Operation]) -> Plan:
    """Returns the plan with the operations of other providers, and with those that only Pulumi's state needs."""
    return replace(plan, foreign=tuple(_foreign(plan, operations)))


def _foreign(plan: Plan, operations: Collection[Operation]) -> Iterator[Foreign]:
    """Yields operations that the planner does not plan: those of other providers, and those that only Pulumi's state
    needs."""
    planned = {(resource.address, resource.action) for resource in plan.resources if resource.changes}
    unreadable = {table.address for table in plan.unreadable}
    # these deletions end before the engine runs
    ended = {removal.table_id for removal in plan.removals if removal.kind == "deleting"}
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
    """Notes the plugins that are started because Pulumi's state names their providers, except those of lake and aws."""
    others = sorted(recorded.packages - _USUAL)
    if not others:
        return
    from deployer.engine.providers.plugin_search import find_plugin

    for package in others:
        try:
            started = f"{find_plugin(package, workspace.project.plugins, workspace.dir)} is started"
        except DeployerError:
            started = "its plugin was not found"  # the engine reports what to do, or the Pulumi CLI finds the plugin
        reporter.note(f"Pulumi's state names the provider {package}: {started}")


@dataclass(frozen=True, slots=True)
class ForeignResource:
    """A resource of another provider. `kept`: a deletion removes it from the stack, but not from its cloud."""

    name: str
    type: str
    protected: bool
    kept: bool

    def destroyed(self) -> Foreign:
        """Returns what `destroy` does to the resource, in the form of a plan."""
        if self.kept:
            return Foreign(f"{self.type} {self.name}", "release", "it stays in its cloud")
        return Foreign(f"{self.type} {self.name}", "delete")


def foreign_resources(workspace: Workspace, engine: Engine) -> tuple[ForeignResource, ...]:
    """Returns the resources of other providers in Pulumi's state, sorted by type and name, because the order in the
    state depends on the last run."""
    deployment = engine.export(workspace.stack_ref).get("deployment") or {}
    found = (
        ForeignResource(
            str(resource["urn"]).split("::", 3)[3],
            type_of(resource["urn"]),
            bool(resource.get("protect")),
            bool(resource.get("retainOnDelete")),
        )
        for resource in deployment.get("resources") or ()
        if resource.get("custom")
        and not resource.get("delete")
        and address_of(resource["urn"]) is None
        and not is_in_no_cloud(type_of(resource["urn"]), custom=True)
        and type_of(resource["urn"]) != STACK_REFERENCE
    )
    return tuple(sorted(found, key=lambda each: (each.type, each.name)))


def refuse_protected(resources: Sequence[ForeignResource], allowed: Collection[str]) -> None:
    """Raises Refused, before anything is deleted, when `allowed` does not name a protected resource."""
    refused = sorted(each.name for each in resources if each.protected and each.name not in allowed)
    if refused:
        what = "1 resource is" if len(refused) == 1 else f"{len(refused)} resources are"
        raise Refused(
            f"{what} protected from deletion: {', '.join(refused)}; nothing was changed",
            remedy="name each with --allow-destroy; the bucket and the state's table of a lake stay in AWS even then",
        )
