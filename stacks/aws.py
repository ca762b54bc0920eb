"""A lake on S3: its bucket, the table of its state, its clusters, then the lake itself.

Loaded for roots on S3 only, since the package of AWS's types is large.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
from local import declare_lake

from deployer.compute.told import FOLDER as RUNS
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

UNFINISHED_UPLOAD_DAYS = 7
TABLE_VERSION_DAYS = 30  #: of data files that were deleted or replaced
#: Of the state and all else: as long as the state's table can be restored to what it was, its bodies are there.
OLD_VERSION_DAYS = 35
JOB_LOG_DAYS = 30
#: Of what jobs on clusters told of themselves: as long as `deployer follow` finds them. No run is that long.
RUN_DAYS = 90
#: S3 takes 1,000 rules; tables of databases beyond are cleaned as all else is.
MOST_DATABASES = 900

#: Of what holds data. `destroy` refuses it unless it is allowed by name, and even then AWS keeps it.
KEPT = pulumi.ResourceOptions(protect=True, retain_on_delete=True)
#: Of what keeps the data safe: it stays for as long as the data does.
GUARD = pulumi.ResourceOptions(retain_on_delete=True)


class DataBucket(pulumi.ComponentResource):
    """A bucket with versions, encrypted, closed to the public, reached by TLS alone, and cleaned of what is over."""

    def __init__(self, name: str, lake: Lake, key_arn: Any, tags: Mapping[str, str]) -> None:
        super().__init__("deployer:aws:DataBucket", name)
        self.bucket = aws.s3.Bucket(f"bucket/{name}", bucket=name, tags=tags, opts=self._with(KEPT))
        self.name = self.bucket.bucket
        guard = self._with(GUARD)
        aws.s3.BucketOwnershipControls(
            f"ownership/{name}", bucket=self.name, rule={"object_ownership": "BucketOwnerEnforced"}, opts=guard
        )
        versions = aws.s3.BucketVersioning(
            f"versions/{name}", bucket=self.name, versioning_configuration={"status": "Enabled"}, opts=guard
        )
        aws.s3.BucketServerSideEncryptionConfiguration(
            f"encryption/{name}",
            bucket=self.name,
            rules=[_encryption(key_arn)],
            opts=guard,
        )
        closed = aws.s3.BucketPublicAccessBlock(
            f"public-access/{name}",
            bucket=self.name,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=guard,
        )
        aws.s3.BucketPolicy(
            f"tls-only/{name}",
            bucket=self.name,
            policy=self.bucket.arn.apply(tls_only),
            # AWS refuses two changes of a bucket's access at the same time
            opts=_after(closed, guard),
        )
        aws.s3.BucketLifecycleConfiguration(
            f"lifecycle/{name}", bucket=self.name, rules=_lifecycle(lake), opts=_after(versions, guard)
        )
        self.register_outputs({"bucket": self.name})

    def _with(self, options: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions.merge(options, pulumi.ResourceOptions(parent=self))


class StateTable(pulumi.ComponentResource):
    """The DynamoDB table of the state store: restorable to any second, not deleted by mistake."""

    def __init__(self, name: str, region: str | None, aws_: AwsSettings, key_arn: Any, tags: Mapping[str, str]) -> None:
        super().__init__("deployer:aws:StateTable", name)
        keys = {key["KeyType"]: key["AttributeName"] for key in TABLE_SCHEMA["KeySchema"]}
        self.table = aws.dynamodb.Table(
            f"state-table/{name}",
            name=name,
            region=region,
            billing_mode="PROVISIONED" if aws_.state_capacity else TABLE_SCHEMA["BillingMode"],
            read_capacity=aws_.state_capacity[0] if aws_.state_capacity else None,
            write_capacity=aws_.state_capacity[1] if aws_.state_capacity else None,
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
            opts=pulumi.ResourceOptions.merge(KEPT, pulumi.ResourceOptions(parent=self)),
        )
        self.register_outputs({"name": self.table.name})


def declare_lake_on_aws(lake: Lake, managed: str, project_dir: Path) -> None:
    """Declare what the lake stands on, then the lake. `managed` is `all`, or `table` in a bucket that is there."""
    from aws_clusters import declare_clusters
    from aws_jobs import declare_jobs
    from aws_key import LakeKey
    from aws_services import declare_services

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
            pass
        case _:
            raise InvalidInput(f"deployer:aws cannot be {managed!r}", remedy="use all, table or none")
    options = instance.state.options
    bucket_alone = tuple(needs)
    if "endpoint" not in options:  # else the table is not in AWS, and the state store makes it
        # The state store looks for the same name.
        name = str(options.get("table") or table_name(instance.root, instance.name))
        region = str(options["region"]) if "region" in options else None
        state = StateTable(name, region, instance.aws, key_arn, tags)
        pulumi.export("state_table", state.table.name)
        needs.append(state)
        clusters = declare_clusters(instance, state.table.arn, tags, key_arn)
        declare_services(lake, clusters, declare_jobs(instance, bucket_alone, project_dir), tags)
    declare_lake(lake, needs)


def tls_only(bucket_arn: str) -> str:
    """A bucket policy that denies whatever comes without TLS."""
    statement = {
        "Sid": "TlsOnly",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [bucket_arn, f"{bucket_arn}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _after(needed: pulumi.Resource, options: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions.merge(options, pulumi.ResourceOptions(depends_on=[needed]))


def _encryption(key_arn: Any) -> dict[str, object]:
    """By S3's keys, or by the lake's, which S3 then asks for once for many objects (a bucket key) and not for each."""
    if key_arn is None:
        return {"apply_server_side_encryption_by_default": {"sse_algorithm": "AES256"}}
    return {
        "apply_server_side_encryption_by_default": {"sse_algorithm": "aws:kms", "kms_master_key_id": key_arn},
        "bucket_key_enabled": True,
    }


def _lifecycle(lake: Lake) -> list[dict[str, object]]:
    """Where several rules fit, S3 keeps to the earliest day: what a removed table left goes by the general rule."""
    below = "".join(f"{part}/" for part in lake.instance.root.removeprefix("s3://").split("/")[1:] if part)
    databases = sorted({table.database for table in lake.tables})[:MOST_DATABASES]
    tables: list[dict[str, object]] = [
        {
            "id": f"tables-of-{database}",
            "status": "Enabled",
            "filter": {"prefix": f"{below}{database}/"},
            "noncurrent_version_expiration": {"noncurrent_days": TABLE_VERSION_DAYS},
        }
        for database in databases
    ]
    return [
        {
            "id": "unfinished-uploads",
            "status": "Enabled",
            "filter": {"prefix": ""},
            "abort_incomplete_multipart_upload": {"days_after_initiation": UNFINISHED_UPLOAD_DAYS},
        },
        {
            "id": "old-versions",
            "status": "Enabled",
            "filter": {"prefix": ""},
            "noncurrent_version_expiration": {"noncurrent_days": OLD_VERSION_DAYS},
            "expiration": {"expired_object_delete_marker": True},
        },
        {
            "id": "job-logs",
            "status": "Enabled",
            "filter": {"prefix": f"{below}_job-logs/"},
            "noncurrent_version_expiration": {"noncurrent_days": 1},
            "expiration": {"days": JOB_LOG_DAYS},
        },
        {
            "id": "runs",
            "status": "Enabled",
            "filter": {"prefix": f"{below}{RUNS}/"},
            "noncurrent_version_expiration": {"noncurrent_days": 1},
            "expiration": {"days": RUN_DAYS},
        },
        *tables,
    ]


def _tags(instance: InstanceSpec) -> dict[str, str]:
    """The instance's own tags, and those by which bills and people find whose a resource is."""
    stack = f"{pulumi.get_project()}/{pulumi.get_stack()}"
    return {**instance.tags, "deployer:instance": instance.name, "deployer:stack": stack}
