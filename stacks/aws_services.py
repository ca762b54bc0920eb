"""What starts and watches table services on AWS: schedules, alarms, and the Glue databases that METASYNC fills."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pulumi
import pulumi_aws as aws
from aws_clusters import ServerlessCluster
from aws_emr import EmrCluster

from deployer.compute import submission
from deployer.compute.aws_access import name_on_aws
from deployer.compute.aws_alarms import Told, failed_clusters, failed_steps, topic_policy
from deployer.compute.aws_cron import aws_expressions
from deployer.compute.aws_schedules import (
    Scheduled,
    add_steps,
    glue_policy,
    partition,
    scheduled_services,
    scheduler_policy,
    scheduler_trust,
    start_job_run,
    target_arn,
    tls_only_queue,
)
from deployer.compute.job_code import JobCode, architecture_of
from deployer.errors import InvalidInput
from deployer.specs.glue import own_glue_databases
from deployer.specs.model import InstanceSpec, Lake

RETRIES, RETRY_SECONDS = 5, 3600
SET_ASIDE_SECONDS = 14 * 24 * 3600  # the most that SQS keeps
ALARM_SECONDS = 300

Clusters = Mapping[str, ServerlessCluster | EmrCluster]
Tags = Mapping[str, str]


class Schedules(pulumi.ComponentResource):
    """A schedule for each service with a cron trigger, the role that starts its jobs, and what could not be started."""

    def __init__(
        self, instance: InstanceSpec, services: Sequence[Scheduled], clusters: Clusters, places: Any, tags: Tags
    ) -> None:
        super().__init__("deployer:aws:Schedules", instance.name)
        self._own, self._root = pulumi.ResourceOptions(parent=self), instance.root
        self._clusters, self._places = clusters, places
        name = name_on_aws(instance.root, instance.name, "/services")  # no cluster is called so
        self._group = aws.scheduler.ScheduleGroup(f"schedules/{instance.name}", name=name, tags=tags, opts=self._own)
        self.queue = aws.sqs.Queue(
            f"not-started/{instance.name}",
            name=name,
            message_retention_seconds=SET_ASIDE_SECONDS,
            sqs_managed_sse_enabled=True,
            tags=tags,
            opts=self._own,
        )
        aws.sqs.QueuePolicy(
            f"not-started-tls-only/{instance.name}",
            queue_url=self.queue.url,
            policy=self.queue.arn.apply(_json(tls_only_queue)),
            opts=self._own,
        )
        used = {each.cluster.name: clusters[each.cluster.name] for each in services}
        serverless = [each for each in used.values() if isinstance(each, ServerlessCluster)]
        self._role = aws.iam.Role(
            f"role/{instance.name}/scheduler",
            name=name,
            description=f"Starts the table services of the lake {instance.name}",
            assume_role_policy=self._group.arn.apply(_json(scheduler_trust)),
            tags=tags,
            opts=self._own,
        )
        rights = aws.iam.RolePolicy(
            f"start/{instance.name}/scheduler",
            name="start",
            role=self._role.name,
            policy=pulumi.Output.all(
                self.queue.arn,
                pulumi.Output.all(*(each.application.arn for each in serverless)),
                pulumi.Output.all(*(each.role_arn for each in serverless)),
                pulumi.Output.all(*(each.cluster_arn for each in used.values() if isinstance(each, EmrCluster))),
            ).apply(lambda arns: json.dumps(scheduler_policy(*arns))),
            opts=self._own,
        )
        for each in services:
            for number, expression in enumerate(aws_expressions(each.schedule), 1):
                self._schedule(each, number, expression, rights)
        self.register_outputs({})

    def _schedule(self, each: Scheduled, number: int, expression: str, rights: pulumi.Resource) -> None:
        """One of the expressions that a cron expression takes on AWS."""
        label = each.name if number == 1 else f"{each.name}/{number}"
        aws.scheduler.Schedule(
            f"schedule/{label}",
            name=name_on_aws(self._root, label, ""),
            group_name=self._group.name,
            description=f"{each.service.kind} of table {each.table.full_name}, by {each.schedule}"[:512],
            schedule_expression=expression,
            schedule_expression_timezone=each.timezone,
            flexible_time_window={"mode": "OFF"},
            target={
                "arn": self._group.arn.apply(lambda arn: target_arn(partition(arn), each.cluster.kind)),
                "role_arn": self._role.arn,
                "input": self._input(each),
                "dead_letter_config": {"arn": self.queue.arn},
                "retry_policy": {
                    "maximum_retry_attempts": RETRIES,
                    "maximum_event_age_in_seconds": RETRY_SECONDS,
                },
            },
            # Scheduler tries its role when a schedule is made
            opts=pulumi.ResourceOptions.merge(self._own, pulumi.ResourceOptions(depends_on=[rights])),
        )

    def _input(self, each: Scheduled) -> pulumi.Output[str]:
        cluster, architecture = self._clusters[each.cluster.name], architecture_of(each.cluster)
        code = pulumi.Output.from_input(self._places[architecture]).apply(
            lambda places: JobCode.from_outputs({"jobs": {architecture: places}}, architecture)
        )
        options: Mapping[str, Any] = each.cluster.options
        hosts = pulumi.Config("deployer").get("target_hosts") or ""
        if isinstance(cluster, ServerlessCluster):

            def start(known: Sequence[Any]) -> str:
                application, arn, role, job_code = known
                sizes = submission.settings(options, arn.split(":")[3], "spark.emr-serverless.driverEnv.", hosts)
                settings = submission.as_text({**sizes, **job_code.serverless_settings()})
                return start_job_run(application, role, job_code, settings, self._root, each)

            return pulumi.Output.all(cluster.application.id, cluster.application.arn, cluster.role_arn, code).apply(
                start
            )

        def step(known: Sequence[Any]) -> str:
            cluster_id, arn, job_code = known
            sizes = submission.settings({}, arn.split(":")[3], "spark.yarn.appMasterEnv.", hosts)
            settings = submission.as_options({**sizes, **job_code.yarn_settings()})
            return add_steps(cluster_id, job_code, settings, self._root, each)

        return pulumi.Output.all(cluster.exported["cluster"], cluster.cluster_arn, code).apply(step)


class Alarms(pulumi.ComponentResource):
    """Alarms on jobs that fail and on services that were not started, and a topic for who is told.

    Jobs on EMR have no metric that an alarm could watch: rules tell the topic of their events.
    """

    def __init__(self, instance: InstanceSpec, clusters: Clusters, schedules: Schedules | None, tags: Tags) -> None:
        super().__init__("deployer:aws:Alarms", instance.name)
        self._own, self._instance, self._tags = pulumi.ResourceOptions(parent=self), instance, tags
        self.topic = aws.sns.Topic(
            f"alarms/{instance.name}",
            name=name_on_aws(instance.root, instance.name, "alarms"),
            tags=tags,
            opts=self._own,
        )
        for address in instance.notify:
            aws.sns.TopicSubscription(
                f"notify/{instance.name}/{address}",
                topic=self.topic.arn,
                protocol="email",
                endpoint=address,
                opts=self._own,
            )
        for name, cluster in clusters.items():
            if isinstance(cluster, ServerlessCluster):
                self._alarm(
                    f"failed-jobs/{name}",
                    f"A job failed on the cluster {name} of the lake {instance.name}; `deployer service runs` says why",
                    "AWS/EMRServerless",
                    "FailedJobs",
                    {"ApplicationId": cluster.application.id},
                )
            else:
                self._rules(name, cluster)
        if any(isinstance(cluster, EmrCluster) for cluster in clusters.values()):
            aws.sns.TopicPolicy(
                f"alarms-from/{instance.name}",
                arn=self.topic.arn,
                policy=self.topic.arn.apply(_json(topic_policy)),
                opts=self._own,
            )
        if schedules is not None:
            self._alarm(
                f"not-started/{instance.name}",
                f"A service of the lake {instance.name} could not be started; the queue has what was asked, and why",
                "AWS/SQS",
                "ApproximateNumberOfMessagesVisible",
                {"QueueName": schedules.queue.name},
                "Maximum",
            )
        self.register_outputs({"topic": self.topic.arn})

    def _rules(self, name: str, cluster: EmrCluster) -> None:
        lake, of_runs = self._instance.name, cluster.cluster_arn is None
        self._rule(f"failed-cluster/{name}", failed_clusters(cluster.name, of_runs, name, lake))
        if not of_runs:
            steps = cluster.exported["cluster"].apply(lambda cluster_id: failed_steps(cluster_id, name, lake))
            self._rule(f"failed-steps/{name}", steps)

    def _rule(self, name: str, told: pulumi.Input[Told]) -> None:
        found = pulumi.Output.from_input(told)
        rule = aws.cloudwatch.EventRule(
            f"rule/{name}",
            name=name_on_aws(self._instance.root, self._instance.name, name),
            description=f"Tells of what failed on a cluster of the lake {self._instance.name}",
            event_pattern=found.apply(lambda each: each.pattern),
            tags=self._tags,
            opts=self._own,
        )
        aws.cloudwatch.EventTarget(
            f"tells/{name}",
            rule=rule.name,
            target_id="alarms",
            arn=self.topic.arn,
            input_transformer={
                "input_paths": found.apply(lambda each: dict(each.paths)),
                "input_template": found.apply(lambda each: each.template),
            },
            opts=self._own,
        )

    def _alarm(
        self, name: str, description: str, namespace: str, metric: str, dimensions: Any, statistic: str = "Sum"
    ) -> None:
        aws.cloudwatch.MetricAlarm(
            f"alarm/{name}",
            name=name_on_aws(self._instance.root, self._instance.name, name),
            alarm_description=description,
            namespace=namespace,
            metric_name=metric,
            dimensions=dimensions,
            statistic=statistic,
            period=ALARM_SECONDS,
            evaluation_periods=1,
            threshold=0,
            comparison_operator="GreaterThanThreshold",
            treat_missing_data="notBreaching",
            alarm_actions=[self.topic.arn],
            tags=self._tags,
            opts=self._own,
        )


def declare_services(lake: Lake, clusters: Clusters, places: Mapping[str, Any] | None, tags: Tags) -> None:
    """Declare what the tables' services need on AWS; nothing for a lake that has no clusters there.

    `places` is where the code of jobs is, by architecture; None when the stack has none.
    """
    instance = lake.instance
    services = scheduled_services(lake)
    if services and places is None:
        raise InvalidInput(
            f"service {services[0].name} has a schedule, and deployer:jobs is none",
            remedy="let the stack upload the code of jobs, or write `trigger_mode: ON_DEMAND`",
        )
    schedules = Schedules(instance, services, clusters, places, tags) if services else None
    if schedules is not None or (instance.notify and clusters):
        alarms = Alarms(instance, clusters, schedules, tags)
        pulumi.export("alarms", alarms.topic.arn)
    _declare_catalog(lake, clusters, tags)


def _declare_catalog(lake: Lake, clusters: Clusters, tags: Tags) -> None:
    """The databases of METASYNC's targets; every cluster's role may fill them, since any may run it after a load."""
    found = [
        aws.glue.CatalogDatabase(
            f"catalog/{name}",
            name=name,
            region=region,
            description=f"Tables of the lake {lake.instance.name}",
            tags=tags,
        )
        for name, region in own_glue_databases(lake).items()
    ]
    if not found:
        return
    policy = pulumi.Output.all(*(database.arn for database in found)).apply(_json(glue_policy))
    for name, cluster in clusters.items():
        if cluster.own_role is not None:
            aws.iam.RolePolicy(f"catalog/{name}", name="catalog", role=cluster.own_role.name, policy=policy)


def _json(document: Callable[[Any], Mapping[str, Any]]) -> Callable[[Any], str]:
    return lambda value: json.dumps(document(value))
