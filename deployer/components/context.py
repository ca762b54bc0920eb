"""The context that the components of one lake share: its project, AWS settings, tags and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pulumi

from deployer.errors import InvalidInput
from deployer.platform.aws.names import INSTANCE_TAG, LAKE_TAG, lake_id
from deployer.specs.model import InstanceSpec
from deployer.specs.model import Lake as LakeSpec

#: Of what holds data. `destroy` refuses it unless it is allowed by name, and even then AWS keeps it.
KEPT = pulumi.ResourceOptions(protect=True, retain_on_delete=True)
#: Of what keeps the data safe, and of what may still be in use: the stack stops managing it, and AWS keeps it.
GUARD = pulumi.ResourceOptions(retain_on_delete=True)


@dataclass(frozen=True, slots=True)
class LakeContext:
    """The context of a lake's components. `key_arn` is of the lake's KMS key, if it has one. `prefix` begins the names
    of the lake's resources in Pulumi: empty for the lake that `deployer:specs` names, else such as `eu/`."""

    lake: LakeSpec
    tags: Mapping[str, str]
    key_arn: pulumi.Output[str] | str | None = None
    prefix: str = ""

    @property
    def instance(self) -> InstanceSpec:
        return self.lake.instance

    @property
    def label(self) -> str:
        """The instance's name, for the names of resources."""
        return f"{self.prefix}{self.instance.name}"


def lake_tags(instance: InstanceSpec, more: Mapping[str, str]) -> dict[str, str]:
    """Returns the instance's own tags and `more`, and those by which bills and people find whose a resource is."""
    stack = f"{pulumi.get_project()}/{pulumi.get_stack()}"
    lake = lake_id(instance.root, instance.name)  # what access is granted by
    return {**instance.tags, **more, INSTANCE_TAG: instance.name, "deployer:stack": stack, LAKE_TAG: lake}


def below(parent: pulumi.Resource, options: pulumi.ResourceOptions | None = None) -> pulumi.ResourceOptions:
    """Options of a resource inside of a component."""
    return pulumi.ResourceOptions.merge(options, pulumi.ResourceOptions(parent=parent))


def after(options: pulumi.ResourceOptions, *needed: pulumi.Resource) -> pulumi.ResourceOptions:
    """Returns the options of a resource that is made when `needed` are there."""
    return pulumi.ResourceOptions.merge(options, pulumi.ResourceOptions(depends_on=list(needed)))


def project_dir() -> Path:
    """Returns the folder of `Pulumi.yaml`, from which relative paths of specs start."""
    return Path(pulumi.get_root_directory())


def managed_on_aws() -> Literal["all", "table", "none"]:
    """Returns what `deployer:aws` says that the stack declares. Raises InvalidInput for anything else."""
    match pulumi.Config("deployer").get("aws") or "all":
        case ("all" | "table" | "none") as managed:
            return managed
        case other:
            raise InvalidInput(f"deployer:aws cannot be {other!r}", remedy="use all, table or none")
