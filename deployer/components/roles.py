"""Roles that the stack makes: all below the lake's path, named after the lake, and within its permissions boundary."""

import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws

from deployer.compute.aws_names import own_name, role_path
from deployer.specs.model import InstanceSpec


def declare_role(
    resource: str,
    instance: InstanceSpec,
    what: str,
    description: str,
    trust: pulumi.Input[Mapping[str, Any]],
    tags: Mapping[str, str],
    options: pulumi.ResourceOptions,
) -> aws.iam.Role:
    """A role called after `what` of the lake; `trust` is its policy of who may act in it."""
    return aws.iam.Role(
        resource,
        name=own_name(instance.root, instance.name, what),
        path=role_path(instance.root, instance.name),
        description=description,
        assume_role_policy=pulumi.Output.from_input(trust).apply(json.dumps),
        permissions_boundary=instance.aws.permissions_boundary,
        tags=tags,
        opts=options,
    )
