"""The types of `aws:s3`: buckets, and their settings, each a resource whose id is the bucket's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from tests.aws_provider.kinds import (
    Found,
    Kind,
    Shape,
    Values,
    aws_form,
    pulumi_form,
    same_json,
    tag_list,
    tags_of,
    without_nothing,
)

_NAMES = {
    "id": "ID",
    "sseAlgorithm": "SSEAlgorithm",
    "kmsMasterKeyId": "KMSMasterKeyID",
    "replicaKmsKeyId": "ReplicaKmsKeyID",
}
_GONE = ("404", "NoSuchBucket", "NoSuchBucketPolicy", "NoSuchLifecycleConfiguration", "NoSuchTagSet")
_NO_SETTING = (
    "NoSuchPublicAccessBlockConfiguration",
    "OwnershipControlsNotFoundError",
    "ServerSideEncryptionConfigurationNotFoundError",
    "ObjectLockConfigurationNotFoundError",
    "ReplicationConfigurationNotFoundError",
)


def _asked(ask: Callable[..., Any], **arguments: Any) -> Any:
    """The answer, or None when the thing does not exist."""
    try:
        return ask(**arguments)
    except ClientError as error:
        if error.response["Error"]["Code"] in (*_GONE, *_NO_SETTING):
            return None
        raise


def _create_bucket(s3: Any, inputs: Values) -> str:
    name = str(inputs["bucket"])
    region = s3.meta.region_name
    place = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    s3.create_bucket(Bucket=name, **place)
    _tag(s3, name, inputs)
    return name


def _tag(s3: Any, name: str, inputs: Values) -> None:
    if tags := inputs.get("tags"):
        s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": tag_list(tags)})
    else:
        s3.delete_bucket_tagging(Bucket=name)


def _read_bucket(s3: Any, id: str, inputs: Values) -> Found | None:
    if _asked(s3.head_bucket, Bucket=id) is None:
        return None
    tags = _asked(s3.get_bucket_tagging, Bucket=id)
    declared = {name: inputs[name] for name in ("forceDestroy", "region") if name in inputs}
    return Found({"bucket": id, **declared, **tags_of(tags["TagSet"] if tags else [])}, {"arn": f"arn:aws:s3:::{id}"})


def _delete_bucket(s3: Any, id: str, inputs: Values) -> None:
    if inputs.get("forceDestroy"):
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=id):
            for each in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
                s3.delete_object(Bucket=id, Key=each["Key"], VersionId=each["VersionId"])
    _asked(s3.delete_bucket, Bucket=id)


def _setting(
    shape: dict[str, Shape],
    put: Callable[[Any, str, Values], None],
    get: Callable[[Any, str], dict[str, Any] | None],
    remove: Callable[[Any, str], None],
    canonical: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> Kind:
    """A bucket's setting; `get` answers the inputs besides the bucket, None when nothing is set."""

    def create(s3: Any, inputs: Values) -> str:
        put(s3, inputs["bucket"], inputs)
        return str(inputs["bucket"])

    def read(s3: Any, id: str, inputs: Values) -> Found | None:
        found = get(s3, id)
        where = {"region": inputs["region"]} if "region" in inputs else {}
        return None if found is None else Found({"bucket": id, **where, **canonical(found)}, {})

    return Kind(
        shape={"bucket": str, "region": str, **shape},
        needed=("bucket",),
        replaces=("bucket", "region"),
        computed=(),
        create=create,
        read=read,
        update=lambda s3, id, _, inputs: put(s3, id, inputs),
        delete=lambda s3, id, _: remove(s3, id),
        service="s3",
        canonical=canonical,
    )


def _versions(s3: Any, bucket: str) -> dict[str, Any] | None:
    found = _asked(s3.get_bucket_versioning, Bucket=bucket)
    return None if not found or "Status" not in found else {"versioningConfiguration": {"status": found["Status"]}}


def _encryption(s3: Any, bucket: str) -> dict[str, Any] | None:
    found = _asked(s3.get_bucket_encryption, Bucket=bucket)
    return found and {"rules": pulumi_form(found["ServerSideEncryptionConfiguration"]["Rules"], _NAMES)}


def _encryption_rules(values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "rules": [without_nothing(rule) for rule in values["rules"]]}


def _public_access(s3: Any, bucket: str) -> dict[str, Any] | None:
    found = _asked(s3.get_public_access_block, Bucket=bucket)
    return found and dict(pulumi_form(found["PublicAccessBlockConfiguration"], _NAMES))


def _ownership(s3: Any, bucket: str) -> dict[str, Any] | None:
    found = _asked(s3.get_bucket_ownership_controls, Bucket=bucket)
    return found and {"rule": pulumi_form(found["OwnershipControls"]["Rules"][0], _NAMES)}


def _policy(s3: Any, bucket: str) -> dict[str, Any] | None:
    found = _asked(s3.get_bucket_policy, Bucket=bucket)
    return found and {"policy": found["Policy"]}


def _lifecycle(s3: Any, bucket: str) -> dict[str, Any] | None:
    found = _asked(s3.get_bucket_lifecycle_configuration, Bucket=bucket)
    return found and {"rules": pulumi_form(found["Rules"], _NAMES)}


def _logging(s3: Any, bucket: str) -> dict[str, Any] | None:
    found = (_asked(s3.get_bucket_logging, Bucket=bucket) or {}).get("LoggingEnabled")
    return found and {"targetBucket": found["TargetBucket"], "targetPrefix": found.get("TargetPrefix", "")}


def _lock(s3: Any, bucket: str) -> dict[str, Any] | None:
    found = (_asked(s3.get_object_lock_configuration, Bucket=bucket) or {}).get("ObjectLockConfiguration", {})
    rule = found.get("Rule", {}).get("DefaultRetention")
    return rule and {"rule": {"defaultRetention": {"mode": rule["Mode"], "days": rule["Days"]}}}


def _replication(s3: Any, bucket: str) -> dict[str, Any] | None:
    found = (_asked(s3.get_bucket_replication, Bucket=bucket) or {}).get("ReplicationConfiguration")
    return found and {"role": found["Role"], "rules": pulumi_form(found["Rules"], _NAMES)}


def _only(name: str, values: Values) -> Any:
    return aws_form(values[name], _NAMES)


_ACCESS = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")

KINDS = {
    "aws:s3/bucket:Bucket": Kind(
        shape={"bucket": str, "forceDestroy": bool, "region": str, "tags": {"*": str}},
        needed=("bucket",),
        replaces=("bucket", "region"),
        computed=("arn",),
        create=_create_bucket,
        read=_read_bucket,
        update=lambda s3, id, _, inputs: _tag(s3, id, inputs),
        delete=_delete_bucket,
        service="s3",
        canonical=without_nothing,
    ),
    "aws:s3/bucketVersioning:BucketVersioning": _setting(
        {"versioningConfiguration": {"status": str}},
        lambda s3, bucket, inputs: s3.put_bucket_versioning(
            Bucket=bucket, VersioningConfiguration=_only("versioningConfiguration", inputs)
        ),
        _versions,
        lambda s3, bucket: s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"}),
    ),
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": _setting(
        {
            "rules": [
                {
                    "applyServerSideEncryptionByDefault": {"sseAlgorithm": str, "kmsMasterKeyId": str},
                    "bucketKeyEnabled": bool,
                }
            ]
        },
        lambda s3, bucket, inputs: s3.put_bucket_encryption(
            Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": _only("rules", inputs)}
        ),
        _encryption,
        lambda s3, bucket: s3.delete_bucket_encryption(Bucket=bucket),
        _encryption_rules,
    ),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": _setting(
        dict.fromkeys(_ACCESS, bool),
        lambda s3, bucket, inputs: s3.put_public_access_block(
            Bucket=bucket,
            PublicAccessBlockConfiguration=aws_form({name: inputs.get(name, False) for name in _ACCESS}, _NAMES),
        ),
        _public_access,
        lambda s3, bucket: s3.delete_public_access_block(Bucket=bucket),
        without_nothing,
    ),
    "aws:s3/bucketOwnershipControls:BucketOwnershipControls": _setting(
        {"rule": {"objectOwnership": str}},
        lambda s3, bucket, inputs: s3.put_bucket_ownership_controls(
            Bucket=bucket, OwnershipControls={"Rules": [_only("rule", inputs)]}
        ),
        _ownership,
        lambda s3, bucket: s3.delete_bucket_ownership_controls(Bucket=bucket),
    ),
    "aws:s3/bucketPolicy:BucketPolicy": _setting(
        {"policy": str},
        lambda s3, bucket, inputs: s3.put_bucket_policy(Bucket=bucket, Policy=inputs["policy"]),
        _policy,
        lambda s3, bucket: s3.delete_bucket_policy(Bucket=bucket),
        lambda values: {**values, "policy": same_json(values["policy"])},
    ),
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": _setting(
        {
            "rules": [
                {
                    "id": str,
                    "status": str,
                    "filter": {"prefix": str},
                    "abortIncompleteMultipartUpload": {"daysAfterInitiation": int},
                    "noncurrentVersionExpiration": {"noncurrentDays": int},
                    "expiration": {"expiredObjectDeleteMarker": bool, "days": int},
                }
            ]
        },
        lambda s3, bucket, inputs: s3.put_bucket_lifecycle_configuration(
            Bucket=bucket, LifecycleConfiguration={"Rules": _only("rules", inputs)}
        ),
        _lifecycle,
        lambda s3, bucket: s3.delete_bucket_lifecycle(Bucket=bucket),
    ),
    "aws:s3/bucketLogging:BucketLogging": _setting(
        {"targetBucket": str, "targetPrefix": str},
        lambda s3, bucket, inputs: s3.put_bucket_logging(
            Bucket=bucket,
            BucketLoggingStatus={
                "LoggingEnabled": {"TargetBucket": inputs["targetBucket"], "TargetPrefix": inputs["targetPrefix"]}
            },
        ),
        _logging,
        lambda s3, bucket: s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus={}),
    ),
    "aws:s3/bucketObjectLockConfiguration:BucketObjectLockConfiguration": _setting(
        {"rule": {"defaultRetention": {"mode": str, "days": int}}},
        lambda s3, bucket, inputs: s3.put_object_lock_configuration(
            Bucket=bucket, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": _only("rule", inputs)}
        ),
        _lock,
        lambda s3, bucket: s3.put_object_lock_configuration(
            Bucket=bucket, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled"}
        ),
    ),
    "aws:s3/bucketReplicationConfig:BucketReplicationConfig": _setting(
        {
            "role": str,
            "rules": [
                {
                    "id": str,
                    "status": str,
                    "priority": int,
                    "filter": {"prefix": str},
                    "deleteMarkerReplication": {"status": str},
                    "destination": {"bucket": str, "encryptionConfiguration": {"replicaKmsKeyId": str}},
                    "sourceSelectionCriteria": {"sseKmsEncryptedObjects": {"status": str}},
                }
            ],
        },
        lambda s3, bucket, inputs: s3.put_bucket_replication(
            Bucket=bucket, ReplicationConfiguration={"Role": inputs["role"], "Rules": _only("rules", inputs)}
        ),
        _replication,
        lambda s3, bucket: s3.delete_bucket_replication(Bucket=bucket),
    ),
}
