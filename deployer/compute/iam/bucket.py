"""The policies of a lake's buckets, and the permissions of S3 to replicate the lake. All functions are pure, and return
values that can be written as JSON.

Condition keys: https://docs.aws.amazon.com/AmazonS3/latest/userguide/amazon-s3-policy-keys.html
"""

from __future__ import annotations

from typing import Any

from deployer.compute.iam.jobs import POLICY_VERSION, Policy
from deployer.platform.aws.arns import through
from deployer.specs.model import AccessOnlyFrom, ReplicateTo

LEAST_TLS = "1.2"
_ENCRYPTION, _KEY = "s3:x-amz-server-side-encryption", "s3:x-amz-server-side-encryption-aws-kms-key-id"
_OWN_KEY = "s3:x-amz-server-side-encryption-customer-algorithm"


def bucket_policy(bucket_arn: str, below: str, key_arn: str | None, only_from: AccessOnlyFrom) -> Policy:
    """Returns the policy of a lake's bucket, which only denies access.

    It denies requests without TLS or with a version below `LEAST_TLS`. It denies writes below the lake's prefix with
    another encryption than the bucket's; a request that names no encryption gets the bucket's. `below` is the prefix
    with a slash at its end, or empty. `only_from` limits access to an organization or to VPC endpoints.
    """
    everything, objects = [bucket_arn, f"{bucket_arn}/*"], f"{bucket_arn}/{below}*"

    def deny(sid: str, action: str | list[str], resource: str | list[str], condition: dict[str, Any]) -> dict[str, Any]:
        return {
            "Sid": sid,
            "Effect": "Deny",
            "Principal": "*",
            "Action": action,
            "Resource": resource,
            "Condition": condition,
        }

    def foreign(sid: str, key: str, value: str) -> dict[str, Any]:
        return deny(sid, "s3:PutObject", objects, {"Null": {key: "false"}, "StringNotEquals": {key: value}})

    statements = [
        deny("TlsOnly", "s3:*", everything, {"Bool": {"aws:SecureTransport": "false"}}),
        deny("TlsOfToday", "s3:*", everything, {"NumericLessThan": {"s3:TlsVersion": LEAST_TLS}}),
        foreign("NoOtherEncryption", _ENCRYPTION, "aws:kms" if key_arn else "AES256"),
        deny("NoKeysOfCallers", "s3:PutObject", objects, {"Null": {_OWN_KEY: "false"}}),
    ]
    if key_arn:
        statements.append(foreign("NoOtherKey", _KEY, key_arn))
    condition: dict[str, Any]
    if only_from.organization:
        condition = {
            "StringNotEquals": {"aws:PrincipalOrgID": only_from.organization},
            "BoolIfExists": {"aws:PrincipalIsAWSService": "false"},
        }
        statements.append(deny("OwnOrganization", "s3:*", everything, condition))
    if only_from.vpc_endpoints:
        condition = {
            "StringNotEquals": {"aws:SourceVpce": list(only_from.vpc_endpoints)},
            "BoolIfExists": {"aws:PrincipalIsAWSService": "false", "aws:ViaAWSService": "false"},
        }
        statements.append(deny("OwnEndpoints", ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], objects, condition))
    return {"Version": POLICY_VERSION, "Statement": statements}


def log_bucket_policy(log_bucket_arn: str, bucket_arn: str) -> Policy:
    """Returns the policy that allows S3 to write the access logs of one bucket, and denies access without TLS.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/enable-server-access-logging.html
    """
    write = {
        "Sid": "AccessLogs",
        "Effect": "Allow",
        "Principal": {"Service": "logging.s3.amazonaws.com"},
        "Action": "s3:PutObject",
        "Resource": f"{log_bucket_arn}/*",
        "Condition": {"ArnEquals": {"aws:SourceArn": bucket_arn}},
    }
    tls = {
        "Sid": "TlsOnly",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [log_bucket_arn, f"{log_bucket_arn}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return {"Version": POLICY_VERSION, "Statement": [write, tls]}


def copies_trust() -> Policy:
    """Returns the trust policy that allows S3 to assume a role. Only buckets of the role's own account can use the
    role."""
    statement = {"Effect": "Allow", "Principal": {"Service": "s3.amazonaws.com"}, "Action": "sts:AssumeRole"}
    return {"Version": POLICY_VERSION, "Statement": [statement]}


def copies_policy(bucket_arn: str, below: str, copies: ReplicateTo, key_arn: str | None) -> Policy:
    """Returns the permissions of S3 to copy the objects below the lake's prefix to another bucket and encrypt them
    there.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/setting-repl-config-perm-overview.html
    """
    statements: list[dict[str, Any]] = [
        {
            "Sid": "FindObjects",
            "Effect": "Allow",
            "Action": ["s3:GetReplicationConfiguration", "s3:ListBucket"],
            "Resource": bucket_arn,
        },
        {
            "Sid": "ReadVersions",
            "Effect": "Allow",
            "Action": [f"s3:GetObjectVersion{what}" for what in ("ForReplication", "Acl", "Tagging")],
            "Resource": f"{bucket_arn}/{below}*",
        },
        {
            "Sid": "WriteCopies",
            "Effect": "Allow",
            "Action": [f"s3:Replicate{what}" for what in ("Delete", "Object", "Tags")],
            "Resource": f"{copies.bucket}/*",
        },
    ]
    if key_arn:
        statements.append(
            {
                "Sid": "Decrypt",
                "Effect": "Allow",
                "Action": "kms:Decrypt",
                "Resource": key_arn,
                "Condition": {
                    "StringEquals": {"kms:ViaService": through("s3", key_arn)},
                    "StringLike": {"kms:EncryptionContext:aws:s3:arn": [bucket_arn, f"{bucket_arn}/{below}*"]},
                },
            }
        )
    if copies.kms_key:
        statements.append(
            {
                "Sid": "Encrypt",
                "Effect": "Allow",
                "Action": ["kms:Encrypt", "kms:GenerateDataKey"],
                "Resource": copies.kms_key,
                "Condition": {
                    "StringEquals": {"kms:ViaService": through("s3", copies.kms_key)},
                    "StringLike": {"kms:EncryptionContext:aws:s3:arn": [copies.bucket, f"{copies.bucket}/{below}*"]},
                },
            }
        )
    return {"Version": POLICY_VERSION, "Statement": statements}
