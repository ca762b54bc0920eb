"""The services that AWS starts: their schedules, the requests that start their jobs, and the policies for these. All
functions are pure; the inputs of targets are JSON texts.

The target of a schedule is an AWS operation by its name. The names of its parameters begin with capitals
(https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-targets-universal.html).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from deployer.compute.clusters import DEFAULT, timeout_minutes
from deployer.compute.iam.jobs import POLICY_VERSION, Policy
from deployer.compute.iam.key_use import disk_configuration, submitting_statements, use_through
from deployer.compute.jobs.code import REMOTE_KINDS, JobCode
from deployer.errors import InvalidInput
from deployer.platform.aws.arns import account_of
from deployer.specs.model import Cluster, Lake, ServiceSpec, TableSpec
from deployer.specs.values.glue import own_glue_databases

#: The placeholders that Scheduler replaces: by the scheduled time of a start, and by the id of the start.
SCHEDULED_TIME, EXECUTION_ID = "<aws.scheduler.scheduled-time>", "<aws.scheduler.execution-id>"
PROGRAM = "service"  #: the program of the job code that runs a service


@dataclass(frozen=True, slots=True)
class ScheduledService:
    """A service with a cron trigger, and the cluster on AWS that runs it."""

    table: TableSpec
    service: ServiceSpec
    cluster: Cluster

    @property
    def name(self) -> str:
        """The title of the service, such as `air.flights/compact`."""
        return f"{self.table.full_name}/{self.service.name}"

    @property
    def schedule(self) -> str:
        """The cron expression of the service's trigger."""
        assert self.service.trigger is not None and self.service.trigger.schedule is not None  # noqa: S101
        return self.service.trigger.schedule

    @property
    def timezone(self) -> str:
        assert self.service.trigger is not None  # noqa: S101
        return self.service.trigger.timezone


def scheduled_services(lake: Lake) -> tuple[ScheduledService, ...]:
    """Returns the services that AWS starts: AUTOMATIC services with a cron schedule, on a cluster on AWS.

    Raises InvalidInput where the cluster is ambiguous, or exists only during a run.
    """
    return tuple(_scheduled(lake))


def declares_services(lake: Lake) -> bool:
    """Returns whether a stack may declare anything for the lake's services: schedules, alarms, or databases in Glue."""
    services = [service for table in lake.tables for service in table.services]
    return (
        bool(lake.instance.notify)
        or any(service.trigger is not None and service.trigger.schedule is not None for service in services)
        or bool(own_glue_databases(lake))
    )


def _scheduled(lake: Lake) -> Iterator[ScheduledService]:
    clusters = {cluster.name: cluster for cluster in lake.instance.clusters}
    remote = [cluster for cluster in clusters.values() if cluster.kind in REMOTE_KINDS]
    for table in sorted(lake.tables, key=lambda each: each.full_name):
        for service in table.services:
            if service.trigger is None or service.trigger.schedule is None:
                continue
            cluster = clusters.get(service.cluster) if service.cluster else default_cluster(remote)
            if cluster is None and not service.cluster and remote:
                raise _ambiguous(remote, table, service)
            if cluster is None or cluster.kind not in REMOTE_KINDS:
                continue
            if cluster.kind == "emr" and cluster.options.get("lifetime", "run") == "run":
                raise InvalidInput(
                    f"service {service.name} has a schedule, and its cluster {cluster.name} exists only during a run",
                    where=table.address,
                    remedy="give the cluster `lifetime: long`, or use one of kind emr-serverless",
                )
            yield ScheduledService(table, service, cluster)


def default_cluster(clusters: Iterable[Cluster]) -> Cluster | None:
    """Returns the cluster for services that name no cluster: the only cluster on AWS, or the one of several that is
    called `default`; None where neither exists."""
    remote = [cluster for cluster in clusters if cluster.kind in REMOTE_KINDS]
    if len(remote) == 1:
        return remote[0]
    return next((cluster for cluster in remote if cluster.name == DEFAULT), None)


def _ambiguous(remote: Sequence[Cluster], table: TableSpec, service: ServiceSpec) -> InvalidInput:
    return InvalidInput(
        f"service {service.name} has a schedule and names no cluster, and there are {len(remote)} on AWS",
        where=table.address,
        remedy=f"write `cluster:` and one of {', '.join(cluster.name for cluster in remote)}",
    )


def job_arguments(root: str, each: ScheduledService) -> list[str]:
    """Returns the arguments with which the program `service` is started."""
    return [
        f"--root={root}",
        f"--table={each.table.full_name}",
        f"--service={each.service.kind}",
        f"--cluster={each.cluster.name}",
        f"--scheduled={SCHEDULED_TIME}",
    ]


def start_job_run(
    application: str,
    role_arn: str,
    code: JobCode,
    settings: str,
    root: str,
    each: ScheduledService,
    disk_key: tuple[str, str] | None = None,
) -> str:
    """Returns the input of EMR Serverless's StartJobRun. `settings` are spark-submit's options, and `disk_key` has the
    ARN of the disks' key and the lake's id.

    A start that Scheduler repeats has the same token, and AWS answers it with the run of the first start. A failed run
    is not repeated: an alarm reports it, and the next run follows at the next scheduled time.
    """
    overrides = {"ConfigurationOverrides": _capitals(disk_configuration(*disk_key))} if disk_key else {}
    return json.dumps(
        {
            "ApplicationId": application,
            "ClientToken": EXECUTION_ID,
            "ExecutionRoleArn": role_arn,
            "ExecutionTimeoutMinutes": timeout_minutes(each.cluster.options),
            "JobDriver": {
                "SparkSubmit": {
                    "EntryPoint": code.script(PROGRAM),
                    "EntryPointArguments": job_arguments(root, each),
                    "SparkSubmitParameters": settings,
                }
            },
            "Name": each.name[:256],
            "RetryPolicy": {"MaxAttempts": 1},
            **overrides,
        }
    )


def _capitals(value: Any) -> Any:
    """Returns a request with the names that Scheduler uses, which begin with capitals. The keys of an encryption
    context stay unchanged."""
    return {
        name[0].upper() + name[1:]: item
        if name == "encryptionContext" or not isinstance(item, dict)
        else _capitals(item)
        for name, item in value.items()
    }


def add_steps(cluster_id: str, code: JobCode, settings: Sequence[str], root: str, each: ScheduledService) -> str:
    """Returns the input of EMR's AddJobFlowSteps. EMR has no tokens: the job detects a repeated start by its scheduled
    time."""
    step = {
        "Name": each.name[:256],
        "ActionOnFailure": "CONTINUE",
        "HadoopJarStep": {
            "Jar": "command-runner.jar",
            "Args": [
                "spark-submit",
                "--deploy-mode=cluster",
                *settings,
                code.script(PROGRAM),
                *job_arguments(root, each),
            ],
        },
    }
    return json.dumps({"JobFlowId": cluster_id, "Steps": [step]})


def target_arn(partition: str, kind: str) -> str:
    """Returns the ARN of the operation that starts a job on a cluster of that kind."""
    operation = "emrserverless:startJobRun" if kind == "emr-serverless" else "emr:addJobFlowSteps"
    return f"arn:{partition}:scheduler:::aws-sdk:{operation}"


def scheduler_trust(group_arn: str) -> Policy:
    """Returns the trust policy that allows Scheduler to assume a role, only for the schedules of one group."""
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "scheduler.amazonaws.com"},
        "Action": "sts:AssumeRole",
        "Condition": {
            "StringEquals": {"aws:SourceAccount": account_of(group_arn), "aws:SourceArn": group_arn},
        },
    }
    return {"Version": POLICY_VERSION, "Statement": [statement]}


def scheduler_policy(
    queue_arn: str,
    applications: Iterable[str],
    role_arns: Iterable[str],
    clusters: Iterable[str],
    key: tuple[str, str] | None = None,
) -> Policy:
    """Returns the permissions of Scheduler's role: to start jobs in these roles on these applications, to add steps to
    these clusters (all are ARNs), and to send failed starts to the queue. `key` has the ARN of the lake's KMS key and
    the lake's id."""
    found: list[dict[str, object]] = [
        {"Sid": "SetAside", "Effect": "Allow", "Action": "sqs:SendMessage", "Resource": queue_arn}
    ]
    if applications := sorted(applications):
        found += [
            {
                "Sid": "StartJobs",
                "Effect": "Allow",
                "Action": "emr-serverless:StartJobRun",
                "Resource": applications,
            },
            {
                "Sid": "GiveJobsTheirRole",
                "Effect": "Allow",
                "Action": "iam:PassRole",
                "Resource": sorted(set(role_arns)),
                "Condition": {"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}},
            },
        ]
    if clusters := sorted(clusters):
        found.append(
            {
                "Sid": "AddSteps",
                "Effect": "Allow",
                "Action": "elasticmapreduce:AddJobFlowSteps",
                "Resource": clusters,
            }
        )
    if key is not None:
        found += [use_through("sqs", key[0], "KeyOfQueue"), *(submitting_statements(*key) if applications else [])]
    return {"Version": POLICY_VERSION, "Statement": found}


def tls_only_queue(queue_arn: str) -> Policy:
    """Returns the policy that denies requests to a queue without TLS."""
    statement = {
        "Sid": "TlsOnly",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "sqs:*",
        "Resource": queue_arn,
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return {"Version": POLICY_VERSION, "Statement": [statement]}


def glue_policy(database_arns: Iterable[str]) -> Policy:
    """Returns the permissions that METASYNC needs in Glue: to read and write tables in these databases."""
    resources: set[str] = set()
    for arn in database_arns:
        start, _, name = arn.rpartition(":database/")
        resources |= {f"{start}:catalog", arn, f"{start}:table/{name}/*"}
    statement = {
        "Sid": "PublishTables",
        "Effect": "Allow",
        "Action": [
            "glue:CreateTable",
            "glue:DeleteTable",
            "glue:GetTable",
            "glue:UpdateTable",
        ],
        "Resource": sorted(resources),
    }
    return {"Version": POLICY_VERSION, "Statement": [statement]}
