"""What a stack has of other providers, such as the bucket of a lake on S3, and what `destroy` may do to it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from deployer.app.workspace import Workspace
from deployer.engine import Engine
from deployer.engine.values.urns import STACK_REFERENCE
from deployer.errors import Refused
from deployer.plan import Foreign
from deployer.provider.urn import address_of, is_in_no_cloud, type_of


@dataclass(frozen=True, slots=True)
class ForeignResource:
    """A resource of another provider. `kept`: a deletion takes it out of the stack, and leaves it where it is."""

    name: str
    type: str
    protected: bool
    kept: bool

    def destroyed(self) -> Foreign:
        """What `destroy` does to it, as a plan says it."""
        if self.kept:
            return Foreign(f"{self.type} {self.name}", "release", "it stays in its cloud")
        return Foreign(f"{self.type} {self.name}", "delete")


def foreign_resources(workspace: Workspace, engine: Engine) -> tuple[ForeignResource, ...]:
    """The resources of other providers in Pulumi's state, by type and name: its own order is that of the last run."""
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
    """Raises Refused, before anything is deleted, when something protected was not allowed by name."""
    refused = sorted(each.name for each in resources if each.protected and each.name not in allowed)
    if refused:
        what = "1 resource is" if len(refused) == 1 else f"{len(refused)} resources are"
        raise Refused(
            f"{what} protected from deletion: {', '.join(refused)}; nothing was changed",
            remedy="name each with --allow-destroy; the bucket and the state's table of a lake stay in AWS even then",
        )
