"""The permissions of jobs on AWS, and the sizes of their workers. All functions are pure, and policies are JSON values.

The actions are those of `docs/state-format.md` (Access), without those for making and removing an instance, and those
that EMR Serverless requires for writing logs
(https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/logging.html).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from deployer.compute.iam.key_use import disk_statements, key_statements
from deployer.compute.jobs.code import PREFIX
from deployer.compute.jobs.status import FOLDER as RUNS
from deployer.platform.aws.arns import partition_of
from deployer.platform.aws.names import lake_id

Policy = Mapping[str, Any]

POLICY_VERSION = "2012-10-17"

#: The size of a worker without a declared size: the default of EMR Serverless.
CORES, MEMORY = 4, "14g"


JOB_LOGS = "_job-logs"  #: the folder below the root where EMR writes its logs
LOG_DAYS = 30  #: days for which the logs of jobs are kept

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
    root: str, instance: str, table_arn: str, log_group_arn: str, log_uri: str | None = None, key_arn: str | None = None
) -> Policy:
    """Returns the permissions of jobs on EMR Serverless: to read and write one lake, and to write logs to one group.

    EMR Serverless must be able to list all groups. `log_uri` is a folder on S3 that gets logs too, and `key_arn` is the
    KMS key of the lake.
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
        "Action": ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
        "Resource": f"{log_group_arn}:*",
    }
    kept = log_statements(log_uri, root, table_arn) if log_uri else []
    disks = disk_statements(key_arn, lake_id(root, instance)) if key_arn else []
    statements = [*lake_statements(root, table_arn), find_logs, write_logs, *kept]
    return {"Version": POLICY_VERSION, "Statement": [*statements, *key_statements(key_arn, root, table_arn), *disks]}


def lake_statements(root: str, table_arn: str) -> list[dict[str, Any]]:
    """Returns the statements for reading and writing one lake: the objects below `root` (s3://…), and the items of its
    state's table.

    Jobs may only read the code of jobs, so that a job cannot change the code of other jobs. Logs and statuses of runs
    may be written but not deleted; overwritten objects stay as old versions.
    """
    parts = urlsplit(root)
    prefix = parts.path.strip("/")
    bucket = f"arn:{partition_of(table_arn)}:s3:::{parts.netloc}"
    below = f"{bucket}/{prefix}/" if prefix else f"{bucket}/"
    listing: dict[str, Any] = {"Sid": "ListLake", "Effect": "Allow", "Action": "s3:ListBucket", "Resource": bucket}
    if prefix:
        listing["Condition"] = {"StringLike": {"s3:prefix": f"{prefix}/*"}}
    objects = {
        "Sid": "ReadAndWriteLake",
        "Effect": "Allow",
        "Action": list(OBJECT_ACTIONS),
        "Resource": f"{below}*",
    }
    code = {
        "Sid": "KeepJobCode",
        "Effect": "Deny",
        "Action": [action for action in OBJECT_ACTIONS if action != "s3:GetObject"],
        "Resource": f"{below}{PREFIX}/*",
    }
    statuses = {
        "Sid": "KeepLogsAndRuns",
        "Effect": "Deny",
        "Action": "s3:DeleteObject",
        "Resource": [f"{below}{folder}/*" for folder in (JOB_LOGS, RUNS)],
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
    return [listing, objects, code, statuses, items, index]


def log_statements(log_uri: str, root: str, table_arn: str) -> list[dict[str, Any]]:
    """Returns the statements for writing logs to a folder on S3; an empty list for a folder below `root`."""
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


def trust_policy(application_arn: str) -> Policy:
    """Returns the trust policy that allows EMR Serverless to assume a role, only for the jobs of one application."""
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "emr-serverless.amazonaws.com"},
        "Action": "sts:AssumeRole",
        "Condition": {"ArnEquals": {"aws:SourceArn": application_arn}},
    }
    return {"Version": POLICY_VERSION, "Statement": [statement]}


def capacity(max_workers: int, cores: int, memory: str) -> Mapping[str, str]:
    """Returns the largest capacity of an application: all its workers and one driver. `memory` is that of a worker,
    such as `14g`."""
    number = max_workers + 1
    return {"cpu": f"{number * cores} vCPU", "memory": f"{number * worker_gigabytes(cores, memory)} GB"}


def worker_size(cores: int, memory: str) -> Mapping[str, str]:
    """Returns the capacity of one worker."""
    return {"cpu": f"{cores} vCPU", "memory": f"{worker_gigabytes(cores, memory)} GB"}


def worker_gigabytes(cores: int, memory: str) -> int:
    """Returns the memory of a worker in GB, with the 10% that Spark adds, rounded up to a size that EMR Serverless has
    for this number of vCPU.

    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/app-behavior.html#worker-configs
    """
    megabytes = int(memory[:-1]) * (1024 if memory.endswith("g") else 1)
    step = {8: 4, 16: 8}.get(cores, 1)
    return max(2 * cores, -(-megabytes * 11 // (10 * 1024 * step)) * step)
