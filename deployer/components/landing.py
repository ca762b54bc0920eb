"""The rights of jobs to read the places from which tables load files automatically."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from deployer.components.context import LakeContext
from deployer.compute.schedules.landing import LandingPlaces, landing_policy
from deployer.platform.aws.arns import partition_of


@dataclass(frozen=True, slots=True)
class LandingArgs:
    """The arguments of Landing: places by the name of the cluster whose runs read them, and the clusters' own roles."""

    context: LakeContext
    table_arn: pulumi.Input[str]  #: of the state's table, which contains the partition
    places: Mapping[str, LandingPlaces]
    roles: Mapping[str, pulumi.Input[str]]


class Landing(pulumi.ComponentResource):
    """A policy for each role whose runs load files, beside the policy for the lake. Existing roles get none."""

    def __init__(self, name: str, args: LandingArgs, opts: pulumi.ResourceOptions) -> None:
        super().__init__("deployer:aws:Landing", name, None, opts)
        own = pulumi.ResourceOptions(parent=self)
        for cluster, places in args.places.items():
            if cluster in args.roles:
                policy = pulumi.Output.from_input(args.table_arn).apply(_policy(places))
                label = f"landing/{args.context.prefix}{cluster}"
                aws.iam.RolePolicy(label, name="landing", role=args.roles[cluster], policy=policy, opts=own)
        self.register_outputs({})


def _policy(places: LandingPlaces) -> Callable[[str], str]:
    """Returns a function from the ARN of the state's table to the policy's text."""
    return lambda arn: json.dumps(landing_policy(places, partition_of(arn)))
