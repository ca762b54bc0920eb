"""The Glue databases that METASYNC fills."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from deployer.components.context import LakeContext
from deployer.compute.schedules.schedules import glue_policy
from deployer.specs.values.glue import own_glue_databases


@dataclass(frozen=True, slots=True)
class CatalogArgs:
    """The arguments of Catalog. `roles` has the names of the clusters' own roles by cluster: each of them may fill the
    databases after a load."""

    context: LakeContext
    roles: Mapping[str, pulumi.Input[str]]


class Catalog(pulumi.ComponentResource):
    """The databases of METASYNC's targets in this account, and the rights to fill them."""

    def __init__(self, name: str, args: CatalogArgs, opts: pulumi.ResourceOptions) -> None:
        super().__init__("deployer:aws:Catalog", name, None, opts)
        context = args.context
        # in stacks of earlier releases, the databases are outside of any component
        own = pulumi.ResourceOptions(parent=self, aliases=[pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)])
        found = [
            aws.glue.CatalogDatabase(
                f"catalog/{context.prefix}{database}",
                name=database,
                region=region,
                description=f"Tables of the lake {context.instance.name}",
                tags=context.tags,
                opts=own,
            )
            for database, region in own_glue_databases(context.lake).items()
        ]
        policy = pulumi.Output.all(*(each.arn for each in found)).apply(lambda arns: json.dumps(glue_policy(arns)))
        for cluster, role in args.roles.items():
            aws.iam.RolePolicy(f"catalog/{context.prefix}{cluster}", name="catalog", role=role, policy=policy, opts=own)
        self.register_outputs({})
