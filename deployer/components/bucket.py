"""The bucket of a lake, its protection, and the targets of its access logs and copies."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pulumi_aws as aws

from deployer.components.context import GUARD, KEPT, LakeContext, after, below
from deployer.components.roles import LakeRole, LakeRoleArgs
from deployer.compute.iam.bucket import bucket_policy, copies_policy, copies_trust, log_bucket_policy
from deployer.compute.iam.jobs import JOB_LOGS
from deployer.compute.jobs.status import FOLDER as RUNS
from deployer.platform.aws.names import log_bucket_name
from deployer.specs.model import InstanceSpec, Lake, ReplicateTo

UNFINISHED_UPLOAD_DAYS = 7
TABLE_VERSION_DAYS = 30  #: for data files that were deleted or replaced
#: For the state and everything else: bodies of the state are kept as long as the state's table can be restored.
OLD_VERSION_DAYS = 35
JOB_LOG_DAYS = 30
#: Lifetime of the reports of jobs on clusters, for as long as `deployer follow` finds them. No run lasts that long.
RUN_DAYS = 90
RUN_VERSION_DAYS = 7  #: for older versions of a report, which is overwritten every few seconds
ACCESS_LOG_DAYS = 365
#: S3 accepts 1,000 rules. Tables of further databases fall under the general rule.
MOST_DATABASES = 900


class DataBucket(pulumi.ComponentResource):
    """A bucket with versions, encryption, no public access, access by TLS only, and a lifecycle that removes expired
    objects."""

    name: pulumi.Output[str]
    arn: pulumi.Output[str]

    def __init__(self, name: str, args: LakeContext, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declares the bucket `name`."""
        super().__init__("deployer:aws:DataBucket", name, None, opts)
        self._args, self._instance, self._tags = args, args.instance, args.tags
        settings, key_arn = args.instance.aws, args.key_arn
        lock = settings.object_lock
        bucket = aws.s3.Bucket(f"bucket/{name}", bucket=name, tags=args.tags, opts=below(self, KEPT))
        self.name, self.arn = bucket.bucket, bucket.arn
        self._guard = guard = below(self, GUARD)
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
        prefix = _prefix(args.instance)
        aws.s3.BucketPolicy(
            f"tls-only/{name}",
            bucket=self.name,
            policy=pulumi.Output.all(self.arn, key_arn).apply(
                lambda arns: json.dumps(bucket_policy(arns[0], prefix, arns[1], settings.only_from))
            ),
            # AWS refuses concurrent changes of a bucket's access
            opts=after(guard, closed),
        )
        aws.s3.BucketLifecycleConfiguration(
            f"lifecycle/{name}", bucket=self.name, rules=_lifecycle(args.lake), opts=after(guard, versions)
        )
        if lock:
            aws.s3.BucketObjectLockConfiguration(
                f"object-lock/{name}",
                bucket=self.name,
                rule={"default_retention": {"mode": lock.mode.upper(), "days": lock.days}},
                opts=after(guard, versions),
            )
        if settings.access_logs != "none":
            self._access_logs(name, settings.access_logs)
        if settings.replicate_to:
            self._copies(name, prefix, settings.replicate_to, versions)
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
        """Logs the requests to S3, into a bucket of the stack or into an existing folder."""
        needed: list[pulumi.Resource] = []
        folder = place.removeprefix("s3://").rstrip("/")
        target, _, prefix = folder.partition("/")
        bucket: Any = target
        if place == "managed":
            target, prefix = log_bucket_name(self._instance.root, self._instance.name), name
            logs = aws.s3.Bucket(f"access-logs/{name}", bucket=target, tags=self._tags, opts=below(self, GUARD))
            bucket = logs.bucket
            closed = self._closed(f"access-logs-closed/{name}", bucket)
            policy = aws.s3.BucketPolicy(
                f"access-logs-policy/{name}",
                bucket=bucket,
                policy=pulumi.Output.all(logs.arn, self.arn).apply(lambda arns: json.dumps(log_bucket_policy(*arns))),
                opts=after(self._guard, closed),
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
            opts=after(self._guard, *needed),
        )

    def _copies(self, name: str, prefix: str, copies: ReplicateTo, versions: pulumi.Resource) -> None:
        """Copies each new object to another bucket, by S3, in a role for this purpose."""
        about = f"Copies of the lake {self._instance.name}"
        role = LakeRole(
            f"role/{self._args.prefix}copies",
            LakeRoleArgs(self._instance, "/copies", about, copies_trust(), self._tags),
            below(self),
        )
        rights = aws.iam.RolePolicy(
            f"{self._args.prefix}copies",
            name="copies",
            role=role.name,
            policy=pulumi.Output.all(self.arn, self._args.key_arn).apply(
                lambda arns: json.dumps(copies_policy(arns[0], prefix, copies, arns[1]))
            ),
            opts=below(self),
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
                    "filter": {"prefix": prefix},
                    "delete_marker_replication": {"status": "Enabled"},
                    "destination": {"bucket": copies.bucket, **encrypted},
                    "source_selection_criteria": chosen,
                }
            ],
            opts=after(self._guard, versions, rights),
        )


def _prefix(instance: InstanceSpec) -> str:
    """Returns the prefix of the lake's objects, with a slash at the end."""
    return "".join(f"{part}/" for part in instance.root.removeprefix("s3://").split("/")[1:] if part)


def _encryption(key_arn: Any) -> dict[str, object]:
    """Returns the encryption: with S3's keys, or with the lake's key. With a bucket key, S3 requests the lake's key
    once for many objects."""
    if key_arn is None:
        return {"apply_server_side_encryption_by_default": {"sse_algorithm": "AES256"}}
    return {
        "apply_server_side_encryption_by_default": {"sse_algorithm": "aws:kms", "kms_master_key_id": key_arn},
        "bucket_key_enabled": True,
    }


def _expired(rule: str, prefix: str, days: int, old_days: int | None) -> dict[str, object]:
    """Returns a rule that removes objects after `days`, and replaced versions after `old_days`."""
    old = {"noncurrent_version_expiration": {"noncurrent_days": old_days}} if old_days else {}
    return {"id": rule, "status": "Enabled", "filter": {"prefix": prefix}, **old, "expiration": {"days": days}}


_UNFINISHED: dict[str, object] = {
    "id": "unfinished-uploads",
    "status": "Enabled",
    "filter": {"prefix": ""},
    "abort_incomplete_multipart_upload": {"days_after_initiation": UNFINISHED_UPLOAD_DAYS},
}


def _lifecycle(lake: Lake) -> list[dict[str, object]]:
    """Returns the lifecycle rules. Where several rules match, S3 uses the earliest day: files of removed tables expire
    by the general rule."""
    prefix = _prefix(lake.instance)
    databases = sorted({table.database for table in lake.tables})[:MOST_DATABASES]
    tables: list[dict[str, object]] = [
        {
            "id": f"tables-of-{database}",
            "status": "Enabled",
            "filter": {"prefix": f"{prefix}{database}/"},
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
        _expired("job-logs", f"{prefix}{JOB_LOGS}/", JOB_LOG_DAYS, JOB_LOG_DAYS),
        _expired("runs", f"{prefix}{RUNS}/", RUN_DAYS, RUN_VERSION_DAYS),
        *tables,
    ]
