"""The bucket of a lake, what guards it, and where its access logs and copies go."""

import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws

from deployer.components.roles import declare_role
from deployer.compute.aws_access import JOB_LOGS
from deployer.compute.aws_names import log_bucket_name
from deployer.compute.bucket_access import bucket_policy, copies_policy, copies_trust, log_bucket_policy
from deployer.compute.told import FOLDER as RUNS
from deployer.specs.model import InstanceSpec, Lake, ReplicateTo

UNFINISHED_UPLOAD_DAYS = 7
TABLE_VERSION_DAYS = 30  #: of data files that were deleted or replaced
#: Of the state and all else: as long as the state's table can be restored to what it was, its bodies are there.
OLD_VERSION_DAYS = 35
JOB_LOG_DAYS = 30
#: Of what jobs on clusters told of themselves: as long as `deployer follow` finds them. No run is that long.
RUN_DAYS = 90
RUN_VERSION_DAYS = 7  #: of what was told before, which is written over every few seconds
ACCESS_LOG_DAYS = 365
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
        self._instance, self._tags = lake.instance, tags
        settings = lake.instance.aws
        lock = settings.object_lock
        self.bucket = aws.s3.Bucket(f"bucket/{name}", bucket=name, tags=tags, opts=self._with(KEPT))
        self.name = self.bucket.bucket
        self._guard = guard = self._with(GUARD)
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
        closed = self._closed(f"public-access/{name}", self.name)
        below = _below(lake.instance)
        aws.s3.BucketPolicy(
            f"tls-only/{name}",
            bucket=self.name,
            policy=pulumi.Output.all(self.bucket.arn, key_arn).apply(
                lambda arns: json.dumps(bucket_policy(arns[0], below, arns[1], settings.only_from))
            ),
            # AWS refuses two changes of a bucket's access at the same time
            opts=_after(closed, guard),
        )
        aws.s3.BucketLifecycleConfiguration(
            f"lifecycle/{name}", bucket=self.name, rules=_lifecycle(lake), opts=_after(versions, guard)
        )
        if lock:
            aws.s3.BucketObjectLockConfiguration(
                f"object-lock/{name}",
                bucket=self.name,
                rule={"default_retention": {"mode": lock.mode.upper(), "days": lock.days}},
                opts=_after(versions, guard),
            )
        if settings.access_logs != "none":
            self._access_logs(name, settings.access_logs)
        if settings.replicate_to:
            self._copies(name, below, key_arn, settings.replicate_to, versions)
        self.register_outputs({"bucket": self.name})

    def _closed(self, resource: str, bucket: Any) -> aws.s3.BucketPublicAccessBlock:
        return aws.s3.BucketPublicAccessBlock(
            resource,
            bucket=bucket,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=self._guard,
        )

    def _access_logs(self, name: str, place: str) -> None:
        """S3's log of requests, in a bucket of its own or a folder that is there."""
        needed: list[pulumi.Resource] = []
        folder = place.removeprefix("s3://").rstrip("/")
        target, _, prefix = folder.partition("/")
        bucket: Any = target
        if place == "managed":
            target, prefix = log_bucket_name(self._instance.root, self._instance.name), name
            logs = aws.s3.Bucket(f"access-logs/{name}", bucket=target, tags=self._tags, opts=self._with(GUARD))
            bucket = logs.bucket
            closed = self._closed(f"access-logs-closed/{name}", bucket)
            policy = aws.s3.BucketPolicy(
                f"access-logs-policy/{name}",
                bucket=bucket,
                policy=pulumi.Output.all(logs.arn, self.bucket.arn).apply(
                    lambda arns: json.dumps(log_bucket_policy(*arns))
                ),
                opts=_after(closed, self._guard),
            )
            aws.s3.BucketLifecycleConfiguration(
                f"access-logs-lifecycle/{name}",
                bucket=bucket,
                rules=[_expired("access-logs", "", ACCESS_LOG_DAYS, None), _UNFINISHED],
                opts=self._guard,
            )
            needed.append(policy)
        aws.s3.BucketLogging(
            f"logging/{name}",
            bucket=self.name,
            target_bucket=bucket,
            target_prefix=f"{prefix}/" if prefix else "",
            opts=pulumi.ResourceOptions.merge(self._guard, pulumi.ResourceOptions(depends_on=needed)),
        )

    def _copies(self, name: str, below: str, key_arn: Any, copies: ReplicateTo, versions: pulumi.Resource) -> None:
        """S3 copies each new object to another bucket, in a role of its own."""
        role = declare_role(
            "role/copies",
            self._instance,
            "/copies",  # no cluster is called so
            f"Copies of the lake {self._instance.name}",
            copies_trust(),
            self._tags,
            self._with(pulumi.ResourceOptions()),
        )
        rights = aws.iam.RolePolicy(
            "copies",
            name="copies",
            role=role.name,
            policy=pulumi.Output.all(self.bucket.arn, key_arn).apply(
                lambda arns: json.dumps(copies_policy(arns[0], below, copies, arns[1]))
            ),
            opts=self._with(pulumi.ResourceOptions()),
        )
        encrypted = {"encryption_configuration": {"replica_kms_key_id": copies.kms_key}} if copies.kms_key else {}
        chosen = {"sse_kms_encrypted_objects": {"status": "Enabled"}} if copies.kms_key else None
        aws.s3.BucketReplicationConfig(
            f"copies/{name}",
            bucket=self.name,
            role=role.arn,
            rules=[
                {
                    "id": "copies",
                    "status": "Enabled",
                    "priority": 0,
                    "filter": {"prefix": below},
                    "delete_marker_replication": {"status": "Enabled"},
                    "destination": {"bucket": copies.bucket, **encrypted},
                    "source_selection_criteria": chosen,
                }
            ],
            opts=pulumi.ResourceOptions.merge(self._guard, pulumi.ResourceOptions(depends_on=[versions, rights])),
        )

    def _with(self, options: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions.merge(options, pulumi.ResourceOptions(parent=self))


def _after(needed: pulumi.Resource, options: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions.merge(options, pulumi.ResourceOptions(depends_on=[needed]))


def _below(instance: InstanceSpec) -> str:
    """The prefix of the lake's objects, with a slash at its end."""
    return "".join(f"{part}/" for part in instance.root.removeprefix("s3://").split("/")[1:] if part)


def _encryption(key_arn: Any) -> dict[str, object]:
    """By S3's keys, or by the lake's, which S3 then asks for once for many objects (a bucket key) and not for each."""
    if key_arn is None:
        return {"apply_server_side_encryption_by_default": {"sse_algorithm": "AES256"}}
    return {
        "apply_server_side_encryption_by_default": {"sse_algorithm": "aws:kms", "kms_master_key_id": key_arn},
        "bucket_key_enabled": True,
    }


def _expired(rule: str, prefix: str, days: int, old_days: int | None) -> dict[str, object]:
    """Objects go after so many days, versions that were written over after `old_days`."""
    old = {"noncurrent_version_expiration": {"noncurrent_days": old_days}} if old_days else {}
    return {"id": rule, "status": "Enabled", "filter": {"prefix": prefix}, **old, "expiration": {"days": days}}


_UNFINISHED: dict[str, object] = {
    "id": "unfinished-uploads",
    "status": "Enabled",
    "filter": {"prefix": ""},
    "abort_incomplete_multipart_upload": {"days_after_initiation": UNFINISHED_UPLOAD_DAYS},
}


def _lifecycle(lake: Lake) -> list[dict[str, object]]:
    """Where several rules fit, S3 keeps to the earliest day: what a removed table left goes by the general rule."""
    below = _below(lake.instance)
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
        _UNFINISHED,
        {
            "id": "old-versions",
            "status": "Enabled",
            "filter": {"prefix": ""},
            "noncurrent_version_expiration": {"noncurrent_days": OLD_VERSION_DAYS},
            "expiration": {"expired_object_delete_marker": True},
        },
        _expired("job-logs", f"{below}{JOB_LOGS}/", JOB_LOG_DAYS, JOB_LOG_DAYS),
        _expired("runs", f"{below}{RUNS}/", RUN_DAYS, RUN_VERSION_DAYS),
        *tables,
    ]
