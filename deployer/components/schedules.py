"""The resources that start table services on AWS: schedules, and the role that starts jobs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from deployer.components.clusters.emr import EmrCluster
from deployer.components.clusters.serverless import ServerlessCluster
from deployer.components.context import LakeContext, after
from deployer.components.roles import LakeRole, LakeRoleArgs
from deployer.compute.emr import settings as submission
from deployer.compute.jobs.code import JobCode, architecture_of
from deployer.compute.jobs.variables import VARIABLES, job_variables
from deployer.compute.schedules.cron import aws_expressions
from deployer.compute.schedules.schedules import (
    ScheduledService,
    add_steps,
    scheduler_policy,
    scheduler_trust,
    start_job_run,
    target_arn,
    tls_only_queue,
)
from deployer.platform.aws.arns import partition_of
from deployer.platform.aws.names import lake_id, own_name

RETRIES, RETRY_SECONDS = 5, 3600
SET_ASIDE_SECONDS = 14 * 24 * 3600  # the maximum of SQS

Clusters = Mapping[str, ServerlessCluster | EmrCluster]


@dataclass(frozen=True, slots=True)
class SchedulesArgs:
    """The arguments of Schedules. `places` has the addresses of the code of jobs, by architecture."""

    context: LakeContext
    services: Sequence[ScheduledService]
    clusters: Clusters
    places: Mapping[str, Any]


class Schedules(pulumi.ComponentResource):
    """A schedule for each service with a cron trigger, the role that starts its jobs, and a queue for failed starts."""

    services: Sequence[ScheduledService]
    queue: aws.sqs.Queue  #: requests that could not be started

    def __init__(self, name: str, args: SchedulesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("deployer:aws:Schedules", name, None, opts)
        context = args.context
        instance, tags, key_arn, label = context.instance, context.tags, context.key_arn, context.label
        services, clusters = args.services, args.clusters
        self._own, self._instance, self._prefix = pulumi.ResourceOptions(parent=self), instance, context.prefix
        self._clusters, self._places, self._key = clusters, args.places, key_arn
        self.services = services
        lake = lake_id(instance.root, instance.name)
        what = "/services"  # the name of a cluster has no slash
        on_aws = own_name(instance.root, instance.name, what)
        self._group = aws.scheduler.ScheduleGroup(f"schedules/{label}", name=on_aws, tags=tags, opts=self._own)
        self.queue = aws.sqs.Queue(
            f"not-started/{label}",
            name=on_aws,
            message_retention_seconds=SET_ASIDE_SECONDS,
            **encrypted_queue(key_arn),
            tags=tags,
            opts=self._own,
        )
        aws.sqs.QueuePolicy(
            f"not-started-tls-only/{label}",
            queue_url=self.queue.url,
            policy=self.queue.arn.apply(_json(tls_only_queue)),
            opts=self._own,
        )
        used = {each.cluster.name: clusters[each.cluster.name] for each in services}
        serverless = [each for each in used.values() if isinstance(each, ServerlessCluster)]
        about = f"Starts the table services of the lake {instance.name}"
        self._role = LakeRole(
            f"role/{label}/scheduler",
            LakeRoleArgs(instance, what, about, self._group.arn.apply(scheduler_trust), tags),
            self._own,
        )
        rights = aws.iam.RolePolicy(
            f"start/{label}/scheduler",
            name="start",
            role=self._role.name,
            policy=pulumi.Output.all(
                self.queue.arn,
                pulumi.Output.all(*(each.application.arn for each in serverless)),
                pulumi.Output.all(*(each.role_arn for each in serverless)),
                pulumi.Output.all(*(each.cluster_arn for each in used.values() if isinstance(each, EmrCluster))),
                pulumi.Output.from_input(key_arn).apply(lambda arn: (arn, lake) if arn else None),
            ).apply(lambda arns: json.dumps(scheduler_policy(*arns))),
            opts=self._own,
        )
        for each in services:
            for number, expression in enumerate(aws_expressions(each.schedule), 1):
                self._schedule(each, number, expression, rights)
        self.register_outputs({})

    def _schedule(self, each: ScheduledService, number: int, expression: str, rights: pulumi.Resource) -> None:
        """Declares the schedule of one of the AWS expressions that a cron expression needs."""
        label = each.name if number == 1 else f"{each.name}/{number}"
        aws.scheduler.Schedule(
            f"schedule/{self._prefix}{label}",
            name=own_name(self._instance.root, self._instance.name, label),
            group_name=self._group.name,
            description=f"{each.service.kind} of table {each.table.full_name}, by {each.schedule}"[:512],
            schedule_expression=expression,
            schedule_expression_timezone=each.timezone,
            flexible_time_window={"mode": "OFF"},
            target={
                "arn": self._group.arn.apply(lambda arn: target_arn(partition_of(arn), each.cluster.kind)),
                "role_arn": self._role.arn,
                "input": self._input(each),
                "dead_letter_config": {"arn": self.queue.arn},
                "retry_policy": {
                    "maximum_retry_attempts": RETRIES,
                    "maximum_event_age_in_seconds": RETRY_SECONDS,
                },
            },
            # Scheduler checks its role when a schedule is created
            opts=after(self._own, rights),
        )

    def _input(self, each: ScheduledService) -> pulumi.Output[str]:
        cluster, architecture = self._clusters[each.cluster.name], architecture_of(each.cluster)
        code = pulumi.Output.from_input(self._places[architecture]).apply(
            lambda places: JobCode.from_outputs({"jobs": {architecture: places}}, architecture)
        )
        options: Mapping[str, Any] = each.cluster.options
        config = pulumi.Config("deployer")
        variables = job_variables({name: config.get(name) or "" for name in VARIABLES})
        root = self._instance.root
        if isinstance(cluster, ServerlessCluster):

            def start(known: Sequence[Any]) -> str:
                application, arn, role, job_code, key = known
                sizes = submission.serverless_settings(options, arn.split(":")[3], variables)
                settings = submission.as_text({**sizes, **job_code.serverless_settings()})
                disk_key = (key, lake_id(root, self._instance.name)) if key else None
                return start_job_run(application, role, job_code, settings, root, each, disk_key)

            application = cluster.application
            known = pulumi.Output.all(application.id, application.arn, cluster.role_arn, code, self._key)
            return known.apply(start)

        def step(known: Sequence[Any]) -> str:
            cluster_id, arn, job_code = known
            limits = {name: options[name] for name in ("timeout_minutes",) if name in options}
            sizes = submission.step_settings(limits, arn.split(":")[3], variables)
            settings = submission.as_options({**sizes, **job_code.yarn_settings()})
            return add_steps(cluster_id, job_code, settings, root, each)

        return pulumi.Output.all(cluster.exported["cluster"], cluster.cluster_arn, code).apply(step)


def encrypted_queue(key_arn: pulumi.Input[str] | None) -> dict[str, Any]:
    """Returns the encryption of a queue: with the lake's key, or with SQS's own."""
    return {"sqs_managed_sse_enabled": True} if key_arn is None else {"kms_master_key_id": key_arn}


def _json(document: Callable[[Any], Mapping[str, Any]]) -> Callable[[Any], str]:
    return lambda value: json.dumps(document(value))
