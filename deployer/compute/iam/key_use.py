"""Permissions on a lake's KMS key for jobs and for principals that start jobs. All functions are pure."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from deployer.platform.aws.arns import partition_of, through

#: The key of the encryption context that EMR Serverless uses for disks (https://docs.aws.amazon.com/emr/latest/
#: EMR-Serverless-UserGuide/disk-encryption-cmk.html); its value is the lake's id.
DISK_CONTEXT = "deployer-lake"
KEY_USE = ("kms:Decrypt", "kms:GenerateDataKey")


def key_statements(key_arn: str | None, root: str, table_arn: str) -> list[dict[str, Any]]:
    """Returns the permissions of a job on the key, to read and write the lake at `root` and its state; an empty list
    without a key.

    S3 and DynamoDB use the key for readers and writers. Therefore a request is allowed only if it comes through them
    and is for this bucket or table (https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html,
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html).
    """
    if key_arn is None:
        return []
    parts, partition = urlsplit(root), partition_of(table_arn)
    bucket = f"arn:{partition}:s3:::{parts.netloc}"
    below = f"{bucket}/{parts.path.strip('/')}".rstrip("/")
    via = {service: through(service, key_arn) for service in ("s3", "dynamodb")}
    objects = {
        "Sid": "KeyOfObjects",
        "Effect": "Allow",
        "Action": list(KEY_USE),
        "Resource": key_arn,
        # the context names the bucket where it has a bucket key, and the object for objects from before that
        "Condition": {
            "StringEquals": {"kms:ViaService": via["s3"]},
            "StringLike": {"kms:EncryptionContext:aws:s3:arn": [bucket, f"{below}/*"]},
        },
    }
    state = {
        "Sid": "KeyOfState",
        "Effect": "Allow",
        "Action": "kms:Decrypt",
        "Resource": key_arn,
        "Condition": {
            "StringEquals": {
                "kms:ViaService": via["dynamodb"],
                "kms:EncryptionContext:aws:dynamodb:tableName": table_arn.rpartition("/")[2],
            }
        },
    }
    return [objects, state]


def disk_configuration(key_arn: str, lake: str) -> dict[str, Any]:
    """Returns the configuration that a job run overrides in its application, so that the key encrypts its disks.
    `lake` is the lake's id."""
    return {
        "diskEncryptionConfiguration": {"encryptionKeyArn": key_arn, "encryptionContext": {DISK_CONTEXT: lake}},
    }


def disk_statements(key_arn: str, lake: str) -> list[dict[str, Any]]:
    """Returns the permissions of a job's role on the key, for the disks of EMR Serverless. `lake` is the lake's id."""
    return [
        {
            "Sid": "KeyOfDisks",
            "Effect": "Allow",
            "Action": list(KEY_USE),
            "Resource": key_arn,
            "Condition": {"StringEquals": {f"kms:EncryptionContext:{DISK_CONTEXT}": lake}},
        }
    ]


def submitting_statements(key_arn: str, lake: str) -> list[dict[str, Any]]:
    """Returns the permissions on the disks' key for the principal that starts a job on EMR Serverless. `lake` is the
    lake's id."""
    keys = {"kms:ViaService": through("emr-serverless", key_arn), f"kms:EncryptionContext:{DISK_CONTEXT}": lake}
    return [
        {"Sid": "LookAtKey", "Effect": "Allow", "Action": "kms:DescribeKey", "Resource": key_arn},
        {
            "Sid": "KeyOfDisks",
            "Effect": "Allow",
            "Action": list(KEY_USE),
            "Resource": key_arn,
            "Condition": {"StringEquals": keys},
        },
    ]


def use_through(service: str, key_arn: str, sid: str) -> dict[str, Any]:
    """Returns the statement that allows the use of the key only through a service, for the data that it stores, such as
    messages of `sqs` or `sns`."""
    return {
        "Sid": sid,
        "Effect": "Allow",
        "Action": list(KEY_USE),
        "Resource": key_arn,
        "Condition": {"StringEquals": {"kms:ViaService": through(service, key_arn)}},
    }
