"""Alarms for failed jobs, for missing successes, for failed starts, and for the costs.

AWS stores descriptions and message templates: rewording them here would change every stack.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from deployer.components.clusters.emr import EmrCluster
from deployer.components.clusters.serverless import ServerlessCluster
from deployer.components.context import LakeContext, after
from deployer.components.roles import LakeRole, LakeRoleArgs
from deployer.components.schedules import Schedules, encrypted_queue
from deployer.compute.schedules.alarms import (
    HOUR,
    EventRule,
    budget_filter,
    events_policy,
    events_trust,
    failed_clusters,
    failed_runs,
    failed_steps,
    hours_without_success,
    succeeded_runs,
    succeeded_steps,
    topic_policy,
)
from deployer.compute.schedules.schedules import tls_only_queue
from deployer.cost.estimate import monthly_budget
from deployer.platform.aws.names import own_name, own_names

ALARM_SECONDS = 300
COUNTED_SECONDS = 60  #: how long the queue of successes keeps what it counts: the minimum of SQS
#: Percentages of the budget that trigger a notification: of the actual costs, and of the costs that AWS forecasts.
SPENT, EXPECTED = 80, 100

Clusters = Mapping[str, ServerlessCluster | EmrCluster]


@dataclass(frozen=True, slots=True)
class AlarmsArgs:
    """The arguments of Alarms. `schedules` are the schedules of the lake's services; None where no service has one."""

    context: LakeContext
    clusters: Clusters
    state_table: str
    schedules: Schedules | None = None


class Alarms(pulumi.ComponentResource):
    """A topic for notifications, and everything that publishes to it: rules for events of jobs, alarms, and a
    budget."""

    topic: aws.sns.Topic

    def __init__(self, name: str, args: AlarmsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("deployer:aws:Alarms", name, None, opts)
        context, clusters, schedules = args.context, args.clusters, args.schedules
        instance, tags, key_arn = context.instance, context.tags, context.key_arn
        self._own, self._instance, self._tags = pulumi.ResourceOptions(parent=self), instance, tags
        self._prefix, self._label = context.prefix, context.label
        owned = own_names(instance.root, instance.name)
        self.topic = aws.sns.Topic(
            f"alarms/{self._label}", name=self._called("alarms"), kms_master_key_id=key_arn, tags=tags, opts=self._own
        )
        self._allowed = aws.sns.TopicPolicy(
            f"alarms-from/{self._label}",
            arn=self.topic.arn,
            policy=self.topic.arn.apply(lambda arn: json.dumps(topic_policy(arn, owned))),
            opts=self._own,
        )
        for address in instance.notify:
            aws.sns.TopicSubscription(
                f"notify/{self._label}/{address}",
                topic=self.topic.arn,
                protocol="email",
                endpoint=address,
                opts=self._own,
            )
        used = {each.cluster.name for each in schedules.services} if schedules else set()
        hours = hours_without_success(each.schedule for each in schedules.services) if schedules else None
        self._counted = self._queue_of_successes(key_arn) if hours else None
        self._events_role(owned, key_arn)
        for cluster_name, cluster in clusters.items():
            self._failures(cluster_name, cluster)
            if self._counted is not None and cluster_name in used:
                self._successes(cluster_name, cluster, self._counted)
        if hours and self._counted is not None:
            self._alarm(
                f"no-success/{instance.name}",
                f"No service of the lake {instance.name} has succeeded for {hours} hours: are they started?",
                "NumberOfMessagesSent",
                self._counted,
                "Sum",
                least=1,
                hours=hours,
            )
        if schedules is not None:
            self._alarm(
                f"not-started/{instance.name}",
                f"A service of the lake {instance.name} could not be started; the queue has what was asked, and why",
                "ApproximateNumberOfMessagesVisible",
                schedules.queue,
                "Maximum",
            )
        self._throttled(args.state_table)
        self._budget(context)
        self.register_outputs({"topic": self.topic.arn})

    def _called(self, what: str) -> str:
        return own_name(self._instance.root, self._instance.name, what)

    def _events_role(self, owned: str, key_arn: Any) -> None:
        """Declares the role in which EventBridge publishes events; only rules of this lake may use it."""
        instance = self._instance
        about, trust = (
            f"Tells of jobs of the lake {instance.name}",
            self.topic.arn.apply(lambda arn: events_trust(arn, owned)),
        )
        self._role = LakeRole(
            f"role/{self._label}/events", LakeRoleArgs(instance, "/events", about, trust, self._tags), self._own
        )
        queue = None if self._counted is None else self._counted.arn
        self._rights = aws.iam.RolePolicy(
            f"tell/{self._label}/events",
            name="tell",
            role=self._role.name,
            policy=pulumi.Output.all(self.topic.arn, queue, key_arn).apply(
                lambda arns: json.dumps(events_policy(*arns))
            ),
            opts=self._own,
        )

    def _queue_of_successes(self, key_arn: Any) -> aws.sqs.Queue:
        """Declares a queue without readers for events of success. SQS counts the events, and CloudWatch has the
        number."""
        name = self._label
        queue = aws.sqs.Queue(
            f"successes/{name}",
            name=self._called("/successes"),
            message_retention_seconds=COUNTED_SECONDS,
            **encrypted_queue(key_arn),
            tags=self._tags,
            opts=self._own,
        )
        aws.sqs.QueuePolicy(
            f"successes-tls-only/{name}",
            queue_url=queue.url,
            policy=queue.arn.apply(_json(tls_only_queue)),
            opts=self._own,
        )
        return queue

    def _failures(self, name: str, cluster: ServerlessCluster | EmrCluster) -> None:
        lake = self._instance.name
        if isinstance(cluster, ServerlessCluster):
            self._rule(f"failed-runs/{name}", cluster.application.id.apply(lambda id_: failed_runs(id_, name, lake)))
            return
        of_runs = cluster.cluster_arn is None
        self._rule(f"failed-cluster/{name}", failed_clusters(cluster.name, of_runs, name, lake))
        if not of_runs:
            steps = cluster.exported["cluster"].apply(lambda cluster_id: failed_steps(cluster_id, name, lake))
            self._rule(f"failed-steps/{name}", steps)

    def _successes(self, name: str, cluster: ServerlessCluster | EmrCluster, queue: aws.sqs.Queue) -> None:
        if isinstance(cluster, ServerlessCluster):
            pattern = cluster.application.id.apply(succeeded_runs)
        else:
            pattern = cluster.exported["cluster"].apply(succeeded_steps)
        rule = self._event_rule(f"succeeded/{name}", pattern, "Counts what succeeded on a cluster")
        self._target(f"succeeded/{name}", rule, "successes", queue.arn)

    def _rule(self, name: str, rule: pulumi.Input[EventRule]) -> None:
        found = pulumi.Output.from_input(rule)
        rule = self._event_rule(name, found.apply(lambda each: each.pattern), "Tells of what failed on a cluster")
        message = {
            "input_paths": found.apply(lambda each: dict(each.paths)),
            "input_template": found.apply(lambda each: each.template),
        }
        self._target(name, rule, "alarms", self.topic.arn, message)

    def _event_rule(self, name: str, pattern: pulumi.Input[str], description: str) -> aws.cloudwatch.EventRule:
        return aws.cloudwatch.EventRule(
            f"rule/{self._prefix}{name}",
            name=self._called(name),
            description=f"{description} of the lake {self._instance.name}",
            event_pattern=pattern,
            tags=self._tags,
            opts=self._own,
        )

    def _target(self, name: str, rule: aws.cloudwatch.EventRule, target: str, arn: Any, message: Any = None) -> None:
        aws.cloudwatch.EventTarget(
            f"tells/{self._prefix}{name}",
            rule=rule.name,
            target_id=target,
            arn=arn,
            role_arn=self._role.arn,
            input_transformer=message,
            opts=after(self._own, self._rights),
        )

    def _alarm(
        self,
        name: str,
        description: str,
        metric: str,
        queue: aws.sqs.Queue,
        statistic: str,
        least: int | None = None,
        hours: int = 0,
    ) -> None:
        """Declares an alarm on a metric of a queue: above 0, or with `least` and `hours`, below `least` in each of so
        many hours. An hour without data then counts as 0."""
        above = least is None
        self._metric_alarm(
            name,
            description,
            "AWS/SQS",
            metric,
            {"QueueName": queue.name},
            statistic=statistic,
            period=ALARM_SECONDS if above else HOUR,
            evaluation_periods=1 if above else hours,
            threshold=0 if above else least,
            comparison_operator="GreaterThanThreshold" if above else "LessThanThreshold",
            treat_missing_data="notBreaching" if above else "breaching",
        )

    def _throttled(self, table: str) -> None:
        """Declares an alarm for writes that DynamoDB throttles in three periods in a row: commits are slow then, and a
        run may give up."""
        self._metric_alarm(
            f"throttled/{self._instance.name}",
            f"DynamoDB throttles writes of the state of the lake {self._instance.name}; see aws.state_ceiling",
            "AWS/DynamoDB",
            "WriteThrottleEvents",
            {"TableName": table},
            statistic="Sum",
            period=ALARM_SECONDS,
            evaluation_periods=3,
            threshold=0,
            comparison_operator="GreaterThanThreshold",
            treat_missing_data="notBreaching",
        )

    def _metric_alarm(
        self, name: str, description: str, namespace: str, metric: str, dimensions: Any, **settings: Any
    ) -> None:
        aws.cloudwatch.MetricAlarm(
            f"alarm/{self._prefix}{name}",
            name=self._called(name),
            alarm_description=description,
            namespace=namespace,
            metric_name=metric,
            dimensions=dimensions,
            alarm_actions=[self.topic.arn],
            ok_actions=[self.topic.arn],
            tags=self._tags,
            opts=self._own,
            **settings,
        )

    def _budget(self, context: LakeContext) -> None:
        """Declares a budget for all resources with the tag of the instance. AWS counts costs some hours late."""
        lake = context.lake
        if lake.instance.aws.budget == 0:
            return
        rule = {"comparison_operator": "GREATER_THAN", "threshold_type": "PERCENTAGE"}
        aws.budgets.Budget(
            f"budget/{self._label}",
            name=self._called("/budget"),
            budget_type="COST",
            limit_amount=self.topic.arn.apply(lambda arn: f"{monthly_budget(lake, arn.split(':')[3])}.0"),
            limit_unit="USD",
            time_unit="MONTHLY",
            cost_filters=[{"name": "TagKeyValue", "values": [budget_filter(lake.instance.name)]}],
            notifications=[
                {**rule, "notification_type": kind, "threshold": part, "subscriber_sns_topic_arns": [self.topic.arn]}
                for kind, part in (("ACTUAL", SPENT), ("FORECASTED", EXPECTED))
            ],
            tags=self._tags,
            # AWS Budgets checks access to the topic
            opts=after(self._own, self._allowed),
        )


def _json(document: Callable[[Any], Mapping[str, Any]]) -> Callable[[Any], str]:
    return lambda value: json.dumps(document(value))
