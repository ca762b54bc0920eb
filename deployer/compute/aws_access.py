"""What jobs are allowed to do on AWS, and what the things that they need are called there. Pure; policies are JSON.

The actions are those of `docs/state-format.md` (Access), less what only making and removing an instance needs, and
those that EMR Serverless asks for to write logs
(https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/logging.html).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from deployer.compute.job_code import PREFIX

Policy = Mapping[str, Any]

POLICY_VERSION = "2012-10-17"

#: Of a worker whose size is not declared: EMR Serverless's own.
CORES, MEMORY = 4, "14g"

LOG_DAYS = 30  #: for which the logs of jobs are kept

OBJECT_ACTIONS = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
ITEM_ACTIONS = (
    "dynamodb:BatchGetItem",
    "dynamodb:BatchWriteItem",
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
)


def job_policy(
    root: str, table_arn: str, log_group_arn: str, log_uri: str | None = None, key_arn: str | None = None
) -> Policy:
    """What jobs on EMR Serverless may do: reading and writing one lake, and logging to one group.

    EMR Serverless wants to look for that group among all. `log_uri` is where logs are kept too, `key_arn` the KMS key
    of the lake.
    """
    find_logs = {
        "Sid": "FindLogs",
        "Effect": "Allow",
        "Action": "logs:DescribeLogGroups",
        "Resource": f"{log_group_arn.rpartition(':log-group:')[0]}:*",
    }
    write_logs = {
        "Sid": "WriteLogs",
        "Effect": "Allow",
        "Action": ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
        "Resource": f"{log_group_arn}:*",
    }
    kept = log_statements(log_uri, root, table_arn) if log_uri else []
    statements = [*lake_statements(root, table_arn), find_logs, write_logs, *kept]
    return {"Version": POLICY_VERSION, "Statement": [*statements, *key_statements(key_arn, root, table_arn)]}


def lake_statements(root: str, table_arn: str) -> list[dict[str, Any]]:
    """Reading and writing one lake: the objects below `root` (s3://…), and the items of its state's table.

    The code of jobs is read only, so that no job changes what others run.
    """
    parts = urlsplit(root)
    prefix = parts.path.strip("/")
    bucket = f"arn:{partition_of(table_arn)}:s3:::{parts.netloc}"
    listing: dict[str, Any] = {"Sid": "ListLake", "Effect": "Allow", "Action": "s3:ListBucket", "Resource": bucket}
    if prefix:
        listing["Condition"] = {"StringLike": {"s3:prefix": f"{prefix}/*"}}
    objects = {
        "Sid": "ReadAndWriteLake",
        "Effect": "Allow",
        "Action": list(OBJECT_ACTIONS),
        "Resource": f"{bucket}/{prefix}/*" if prefix else f"{bucket}/*",
    }
    code = {
        "Sid": "KeepJobCode",
        "Effect": "Deny",
        "Action": [action for action in OBJECT_ACTIONS if action != "s3:GetObject"],
        "Resource": f"{bucket}/{prefix}/{PREFIX}/*" if prefix else f"{bucket}/{PREFIX}/*",
    }
    items = {
        "Sid": "ReadAndWriteState",
        "Effect": "Allow",
        "Action": list(ITEM_ACTIONS),
        "Resource": table_arn,
    }
    index = {
        "Sid": "FindTransactions",
        "Effect": "Allow",
        "Action": "dynamodb:Query",
        "Resource": f"{table_arn}/index/*",
    }
    return [listing, objects, code, items, index]


def log_statements(log_uri: str, root: str, table_arn: str) -> list[dict[str, Any]]:
    """Writing logs to a folder on S3; none is needed below `root`."""
    if f"{log_uri}/".startswith(f"{root.rstrip('/')}/"):
        return []
    parts = urlsplit(log_uri)
    folder = f"{parts.netloc}/{parts.path.strip('/')}".rstrip("/")
    keep = {
        "Sid": "KeepLogs",
        "Effect": "Allow",
        "Action": ["s3:GetObject", "s3:PutObject"],
        "Resource": f"arn:{partition_of(table_arn)}:s3:::{folder}/*",
    }
    return [keep]


def key_statements(key_arn: str | None, root: str, table_arn: str) -> list[dict[str, Any]]:
    """What a job needs of the key to read and write the lake at `root`, and its state; nothing without a key.

    S3 and DynamoDB use the key for whoever reads and writes, so a request counts only when it comes through them and
    is for this bucket or table (https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html,
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html).
    """
    if key_arn is None:
        return []
    parts, partition = urlsplit(root), partition_of(table_arn)
    bucket = f"arn:{partition}:s3:::{parts.netloc}"
    below = f"{bucket}/{parts.path.strip('/')}".rstrip("/")
    through = {service: _through(service, key_arn) for service in ("s3", "dynamodb")}
    objects = {
        "Sid": "KeyOfObjects",
        "Effect": "Allow",
        "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
        "Resource": key_arn,
        # with bucket keys S3 asks for the bucket, and for objects from before them for the object
        "Condition": {
            "StringEquals": {"kms:ViaService": through["s3"]},
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
                "kms:ViaService": through["dynamodb"],
                "kms:EncryptionContext:aws:dynamodb:tableName": table_arn.rpartition("/")[2],
            }
        },
    }
    return [objects, state]


def _through(service: str, key_arn: str) -> str:
    _, partition, _, region, _, _ = key_arn.split(":", 5)
    return f"{service}.{region}.{service_domain(partition)}"


def trust_policy(application_arn: str) -> Policy:
    """Lets EMR Serverless act in a role, for the jobs of this one application alone."""
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "emr-serverless.amazonaws.com"},
        "Action": "sts:AssumeRole",
        "Condition": {"ArnEquals": {"aws:SourceArn": application_arn}},
    }
    return {"Version": POLICY_VERSION, "Statement": [statement]}


def partition_of(arn: str) -> str:
    return arn.split(":")[1]


def service_domain(partition: str) -> str:
    """What the names of AWS's services end with."""
    return "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"


def name_on_aws(root: str, instance: str, what: str) -> str:
    """A name of at most 64 of a-z, A-Z, 0-9 and -, for roles and applications; no two of different roots are equal."""
    digest = hashlib.blake2b(f"{root.rstrip('/')}\0{instance}\0{what}".encode(), digest_size=4).hexdigest()
    return f"deployer-{readable(f'{instance}-{what}')}-{digest}"


def readable(text: str) -> str:
    """The part of a name that people read: at most 45 of a-z, A-Z, 0-9 and -."""
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:45]


def capacity(max_workers: int, cores: int, memory: str) -> Mapping[str, str]:
    """The most that an application takes at a time: its workers and one driver."""
    number = max_workers + 1
    return {"cpu": f"{number * cores} vCPU", "memory": f"{number * worker_gigabytes(cores, memory)} GB"}


def worker_size(cores: int, memory: str) -> Mapping[str, str]:
    """What one worker takes."""
    return {"cpu": f"{cores} vCPU", "memory": f"{worker_gigabytes(cores, memory)} GB"}


def worker_gigabytes(cores: int, memory: str) -> int:
    """The memory of a worker with the tenth more that Spark takes, as EMR Serverless has it for so many vCPU.

    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/app-behavior.html#worker-configs
    """
    megabytes = int(memory[:-1]) * (1024 if memory.endswith("g") else 1)
    step = {8: 4, 16: 8}.get(cores, 1)
    return max(2 * cores, -(-megabytes * 11 // (10 * 1024 * step)) * step)
