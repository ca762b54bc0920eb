"""The permissions of jobs on AWS, and the names of the resources that they need. Pure; policies are JSON.

The actions are those of `docs/state-format.md` (Access), less what only making and removing an instance needs, and
those that EMR Serverless asks for to write logs
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

#: Of a worker whose size is not declared: EMR Serverless's own.
CORES, MEMORY = 4, "14g"


JOB_LOGS = "_job-logs"  #: the folder below the root where EMR writes its logs
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
    root: str, instance: str, table_arn: str, log_group_arn: str, log_uri: str | None = None, key_arn: str | None = None
) -> Policy:
    """Returns what jobs on EMR Serverless may do: reading and writing one lake, and logging to one group.

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
        "Action": ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
        "Resource": f"{log_group_arn}:*",
    }
    kept = log_statements(log_uri, root, table_arn) if log_uri else []
    disks = disk_statements(key_arn, lake_id(root, instance)) if key_arn else []
    statements = [*lake_statements(root, table_arn), find_logs, write_logs, *kept]
    return {"Version": POLICY_VERSION, "Statement": [*statements, *key_statements(key_arn, root, table_arn), *disks]}


def lake_statements(root: str, table_arn: str) -> list[dict[str, Any]]:
    """Rights to read and write one lake: the objects below `root` (s3://…), and the items of its state's table.

    The code of jobs is read only, so that no job changes what others run. Logs and statuses of runs may be
    written and not deleted; what is written over stays as an old version.
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
    """Rights to write logs to a folder on S3; none are needed below `root`."""
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
    """Allows EMR Serverless to use a role, for the jobs of this one application alone."""
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "emr-serverless.amazonaws.com"},
        "Action": "sts:AssumeRole",
        "Condition": {"ArnEquals": {"aws:SourceArn": application_arn}},
    }
    return {"Version": POLICY_VERSION, "Statement": [statement]}


def capacity(max_workers: int, cores: int, memory: str) -> Mapping[str, str]:
    """Returns the most that an application takes at a time: its workers and one driver."""
    number = max_workers + 1
    return {"cpu": f"{number * cores} vCPU", "memory": f"{number * worker_gigabytes(cores, memory)} GB"}


def worker_size(cores: int, memory: str) -> Mapping[str, str]:
    """Returns what one worker takes."""
    return {"cpu": f"{cores} vCPU", "memory": f"{worker_gigabytes(cores, memory)} GB"}


def worker_gigabytes(cores: int, memory: str) -> int:
    """Returns the memory of a worker with the tenth more that Spark takes, as EMR Serverless has it for this many vCPU.

    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/app-behavior.html#worker-configs
    """
    megabytes = int(memory[:-1]) * (1024 if memory.endswith("g") else 1)
    step = {8: 4, 16: 8}.get(cores, 1)
    return max(2 * cores, -(-megabytes * 11 // (10 * 1024 * step)) * step)
