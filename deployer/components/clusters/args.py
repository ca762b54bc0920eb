"""Arguments that a program adds to the specs of a lake's clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from deployer.components.context import LakeContext
from deployer.specs.model import Cluster


@dataclass(frozen=True, slots=True)
class Network:
    """The ids of a VPC's subnets and of security groups; ids may be outputs of the program's resources."""

    subnets: Sequence[pulumi.Input[str]]
    security_groups: Sequence[pulumi.Input[str]] = ()


@dataclass(frozen=True, slots=True)
class ClusterArgs:
    """A cluster of the specs. `network` and `job_role` (an ARN) are used where its spec does not set them.

    `scheduled`: a schedule starts a service on it.
    """

    context: LakeContext
    spec: Cluster
    table_arn: pulumi.Input[str]  #: of the state's table
    network: Network | None = None
    job_role: pulumi.Input[str] | None = None
    scheduled: bool = False

    @property
    def label(self) -> str:
        """The cluster's name in names of resources."""
        return f"{self.context.prefix}{self.spec.name}"

    def options(self) -> dict[str, Any]:
        """Returns the options of the spec, with the program's network and role where the spec has none."""
        found: dict[str, Any] = dict(self.spec.options)
        if self.network is not None and "subnets" not in found:
            found["subnets"] = list(self.network.subnets)
            if self.network.security_groups and "security_groups" not in found:
                found["security_groups"] = list(self.network.security_groups)
        if self.job_role is not None:
            found.setdefault("execution_role", self.job_role)
        return found
