"""Roles that the stack creates: all under the lake's path, named after the lake, and within its permissions
boundary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from deployer.platform.aws.names import own_name, role_path
from deployer.specs.model import InstanceSpec


@dataclass(frozen=True, slots=True)
class LakeRoleArgs:
    """The arguments of LakeRole. `what` tells the lake's roles apart; the name of a cluster does not begin with a
    slash. `trust` says who may assume the role."""

    instance: InstanceSpec
    what: str
    description: str
    trust: pulumi.Input[Mapping[str, Any]]
    tags: Mapping[str, str]


class LakeRole(pulumi.ComponentResource):
    """A role of the lake, still without rights."""

    arn: pulumi.Output[str]
    name: pulumi.Output[str]

    def __init__(self, name: str, args: LakeRoleArgs, opts: pulumi.ResourceOptions) -> None:
        super().__init__("deployer:aws:LakeRole", name, None, opts)
        instance = args.instance
        role = aws.iam.Role(
            name,
            name=own_name(instance.root, instance.name, args.what),
            path=role_path(instance.root, instance.name),
            description=args.description,
            assume_role_policy=pulumi.Output.from_input(args.trust).apply(json.dumps),
            permissions_boundary=instance.aws.permissions_boundary,
            tags=args.tags,
            # in stacks of earlier releases, the role is directly below the component that it belongs to
            opts=pulumi.ResourceOptions(parent=self, aliases=[pulumi.Alias(parent=opts.parent)]),
        )
        self.arn, self.name = role.arn, role.name
        self.register_outputs({"arn": self.arn, "name": self.name})
