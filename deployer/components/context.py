"""The shared context of a lake's components: its specs, AWS settings, tags and options."""

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

#: Options of resources that hold data. `destroy` refuses to remove them unless they are allowed by name, and even then
#: AWS keeps them.
KEPT = pulumi.ResourceOptions(protect=True, retain_on_delete=True)
#: Options of resources that protect the data, and of those that may still be in use: the stack stops managing them, and
#: AWS keeps them.
GUARD = pulumi.ResourceOptions(retain_on_delete=True)


@dataclass(frozen=True, slots=True)
class LakeContext:
    """The context of a lake's components. `key_arn` is the ARN of the lake's KMS key, if it has one. `prefix` begins
    the names of the lake's resources in Pulumi: empty for the lake that `deployer:specs` names, otherwise such as
    `eu/`."""

    lake: LakeSpec
    tags: Mapping[str, str]
    key_arn: pulumi.Output[str] | str | None = None
    prefix: str = ""

    @property
    def instance(self) -> InstanceSpec:
        return self.lake.instance

    @property
    def label(self) -> str:
        """The instance's name in names of resources."""
        return f"{self.prefix}{self.instance.name}"


def lake_tags(instance: InstanceSpec, more: Mapping[str, str]) -> dict[str, str]:
    """Returns the instance's own tags, `more`, and the tags that assign a resource to its lake and stack, such as in
    bills."""
    stack = f"{pulumi.get_project()}/{pulumi.get_stack()}"
    lake = lake_id(instance.root, instance.name)  # access is granted by this tag
    return {**instance.tags, **more, INSTANCE_TAG: instance.name, "deployer:stack": stack, LAKE_TAG: lake}


def below(parent: pulumi.Resource, options: pulumi.ResourceOptions | None = None) -> pulumi.ResourceOptions:
    """Returns the options of a resource inside of a component."""
    return pulumi.ResourceOptions.merge(options, pulumi.ResourceOptions(parent=parent))


def after(options: pulumi.ResourceOptions, *needed: pulumi.Resource) -> pulumi.ResourceOptions:
    """Returns the options of a resource that is created after `needed`."""
    return pulumi.ResourceOptions.merge(options, pulumi.ResourceOptions(depends_on=list(needed)))


def project_dir() -> Path:
    """Returns the folder of `Pulumi.yaml`. Relative paths of specs are relative to it."""
    return Path(pulumi.get_root_directory())


def managed_on_aws() -> Literal["all", "table", "none"]:
    """Returns the AWS resources that the stack declares, from `deployer:aws`. Raises InvalidInput for another value."""
    match pulumi.Config("deployer").get("aws") or "all":
        case ("all" | "table" | "none") as managed:
            return managed
        case other:
            raise InvalidInput(f"deployer:aws cannot be {other!r}", remedy="use all, table or none")
