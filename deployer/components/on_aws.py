"""A lake on S3: its bucket, the table of its state, its clusters, then the lake itself.

Loaded for roots on S3 only, since the package of AWS's types is large.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi

from deployer.components.tables import declare_tables
from deployer.compute.aws_names import INSTANCE_TAG, LAKE_TAG, lake_id
from deployer.errors import InvalidInput, NotFound
from deployer.specs.model import AwsSettings, InstanceSpec, Lake
from deployer.state.dynamodb_items import TABLE_SCHEMA
from deployer.state.dynamodb_table import table_name

try:
    import pulumi_aws as aws
except ModuleNotFoundError as error:
    raise NotFound(
        "a root on S3 needs the package pulumi-aws, which is not installed",
        remedy="pip install 'pulumi-aws>=7.30,<8'; or set deployer:aws to none when bucket and table are there already",
    ) from error


class StateTable(pulumi.ComponentResource):
    """The DynamoDB table of the state store: restorable to any second, not deleted by mistake."""

    def __init__(
        self,
        name: str,
        region: str | None,
        aws_: AwsSettings,
        key_arn: Any,
        tags: Mapping[str, str],
        kept: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("deployer:aws:StateTable", name)
        keys = {key["KeyType"]: key["AttributeName"] for key in TABLE_SCHEMA["KeySchema"]}
        self.table = aws.dynamodb.Table(
            f"state-table/{name}",
            name=name,
            region=region,
            billing_mode="PROVISIONED" if aws_.state_capacity else TABLE_SCHEMA["BillingMode"],
            read_capacity=aws_.state_capacity[0] if aws_.state_capacity else None,
            write_capacity=aws_.state_capacity[1] if aws_.state_capacity else None,
            on_demand_throughput=None
            if aws_.state_capacity
            else {"max_read_request_units": aws_.state_ceiling[0], "max_write_request_units": aws_.state_ceiling[1]},
            server_side_encryption={"enabled": True, "kms_key_arn": key_arn} if key_arn is not None else None,
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
            tags=tags,
            opts=pulumi.ResourceOptions.merge(kept, pulumi.ResourceOptions(parent=self)),
        )
        self.register_outputs({"name": self.table.name})


def declare_lake_on_aws(lake: Lake, managed: str, project_dir: Path) -> None:
    """Declare what the lake stands on, then the lake. `managed` is `all`, or `table` in a bucket that is there."""
    from deployer.components.bucket import GUARD, KEPT, DataBucket
    from deployer.components.jobs import declare_jobs
    from deployer.components.key import LakeKey
    from deployer.components.schedules import declare_services
    from deployer.components.serverless import declare_clusters

    instance = lake.instance
    bucket_name = instance.root.removeprefix("s3://").split("/")[0]
    tags = _tags(instance)
    needs: list[pulumi.Resource] = []
    key_arn: Any = instance.aws.kms_key
    if managed in ("all", "table") and key_arn == "managed":
        key = LakeKey(instance, tags, KEPT, GUARD)
        key_arn = key.arn
        pulumi.export("kms_key", key_arn)
    match managed:
        case "all":
            bucket = DataBucket(bucket_name, lake, key_arn, tags)
            pulumi.export("bucket", bucket.name)
            needs.append(bucket)
        case "table":
            _refuse_for_table(instance.aws)
        case _:
            raise InvalidInput(f"deployer:aws cannot be {managed!r}", remedy="use all, table or none")
    options = instance.state.options
    bucket_alone = tuple(needs)
    if "endpoint" not in options:  # else the table is not in AWS, and the state store makes it
        # The state store looks for the same name.
        name = str(options.get("table") or table_name(instance.root, instance.name))
        region = str(options["region"]) if "region" in options else None
        state = StateTable(name, region, instance.aws, key_arn, tags, KEPT)
        pulumi.export("state_table", state.table.name)
        needs.append(state)
        clusters = declare_clusters(lake, state.table.arn, tags, key_arn)
        declare_services(lake, clusters, declare_jobs(instance, bucket_alone, project_dir), tags, key_arn)
    pulumi.export("root", declare_tables(lake, needs).instance.root)


def _refuse_for_table(settings: AwsSettings) -> None:
    """Raises InvalidInput for settings of a bucket that the stack does not declare."""
    declared = {
        "object_lock": settings.object_lock is not None,
        "replicate_to": settings.replicate_to is not None,
        "only_from": settings.only_from != AwsSettings().only_from,
    }
    for name in (name for name, is_declared in declared.items() if is_declared):
        raise InvalidInput(
            f"aws.{name} is a setting of the bucket, and deployer:aws is table: the stack leaves the bucket alone",
            remedy=f"remove aws.{name}, and set it up with the bucket; or set deployer:aws to all",
        )


def _tags(instance: InstanceSpec) -> dict[str, str]:
    """The instance's own tags, and those by which bills and people find whose a resource is."""
    stack = f"{pulumi.get_project()}/{pulumi.get_stack()}"
    lake = lake_id(instance.root, instance.name)  # what access is granted by
    return {**instance.tags, INSTANCE_TAG: instance.name, "deployer:stack": stack, LAKE_TAG: lake}
