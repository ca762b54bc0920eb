"""The DynamoDB table of the state store."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from deployer.components.context import KEPT, LakeContext, below
from deployer.specs.model import InstanceSpec
from deployer.state.backends.dynamodb.items import TABLE_SCHEMA
from deployer.state.backends.dynamodb.table import table_name


def state_table_name(instance: InstanceSpec) -> str:
    """Returns the name by which the state store finds its table."""
    return str(instance.state.options.get("table") or table_name(instance.root, instance.name))


class StateTable(pulumi.ComponentResource):
    """The DynamoDB table of the state store, with point-in-time recovery and protection from deletion."""

    arn: pulumi.Output[str]
    name: pulumi.Output[str]

    def __init__(self, name: str, args: LakeContext, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declares the table `name`."""
        super().__init__("deployer:aws:StateTable", name, None, opts)
        options, settings = args.instance.state.options, args.instance.aws
        capacity, ceiling = settings.state_capacity, settings.state_ceiling
        keys = {key["KeyType"]: key["AttributeName"] for key in TABLE_SCHEMA["KeySchema"]}
        table = aws.dynamodb.Table(
            f"state-table/{name}",
            name=name,
            region=str(options["region"]) if "region" in options else None,
            billing_mode="PROVISIONED" if capacity else TABLE_SCHEMA["BillingMode"],
            read_capacity=capacity[0] if capacity else None,
            write_capacity=capacity[1] if capacity else None,
            on_demand_throughput=None
            if capacity
            else {"max_read_request_units": ceiling[0], "max_write_request_units": ceiling[1]},
            server_side_encryption={"enabled": True, "kms_key_arn": args.key_arn} if args.key_arn is not None else None,
            hash_key=keys["HASH"],
            range_key=keys["RANGE"],
            attributes=[
                {"name": each["AttributeName"], "type": each["AttributeType"]}
                for each in TABLE_SCHEMA["AttributeDefinitions"]
            ],
            local_secondary_indexes=[
                {
                    "name": index["IndexName"],
                    "range_key": index["KeySchema"][1]["AttributeName"],
                    "projection_type": index["Projection"]["ProjectionType"],
                }
                for index in TABLE_SCHEMA["LocalSecondaryIndexes"]
            ],
            point_in_time_recovery={"enabled": True},
            deletion_protection_enabled=True,
            tags=args.tags,
            opts=below(self, KEPT),
        )
        self.arn, self.name = table.arn, table.name
        self.register_outputs({"name": self.name})
