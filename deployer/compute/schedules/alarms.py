"""Alarms for jobs that fail or do not succeed: the events, their fields, and the policies for publishing. All functions
are pure.

EMR and EMR Serverless send an event of each change of state to EventBridge, without a guarantee
(https://docs.aws.amazon.com/emr/latest/ManagementGuide/emr-manage-cloudwatch-events.html,
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html). A lost event is not reported.
Therefore another alarm reports the absence of success.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from cronsim import CronSim

from deployer.compute.iam.jobs import POLICY_VERSION, Policy
from deployer.compute.iam.key_use import use_through

HOUR = 3600
#: The longest time, in seconds, that an alarm can evaluate: seven days with periods of an hour
#: (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/AlarmThatSendsEmail.html).
LONGEST_LOOK = 7 * 24 * HOUR
#: Hours for the delay and the duration of a run, before the absence of success is an alarm.
SLACK_HOURS = 6


@dataclass(frozen=True, slots=True)
class EventRule:
    """A rule for reported events. `pattern` selects the events and `template` is the message, both as JSON. `paths` has
    the JSON paths of the message's fields."""

    pattern: str
    paths: Mapping[str, str]
    template: str


def failed_runs(application: str, cluster: str, instance: str) -> EventRule:
    """Returns the rule for failed runs of an application of EMR Serverless. It includes cancelled runs, because a run
    that takes too long is cancelled. `cluster` and `instance` are names in the specs."""
    pattern = {
        "source": ["aws.emr-serverless"],
        "detail-type": ["EMR Serverless Job Run State Change"],
        "detail": {"applicationId": [application], "state": ["FAILED", "CANCELLED"]},
    }
    message = f"A job did not succeed on the cluster {cluster} of the lake {instance}: job run <run> is <state>. "
    return _event_rule(pattern, {"run": "jobRunId", "state": "state"}, message + "`deployer service runs` shows why.")


def failed_steps(cluster_id: str, cluster: str, instance: str) -> EventRule:
    """Returns the rule for failed steps of a long-lived cluster. `cluster` and `instance` are names in the specs."""
    pattern = {
        "source": ["aws.emr"],
        "detail-type": ["EMR Step Status Change"],
        "detail": {"clusterId": [cluster_id], "state": ["FAILED"]},
    }
    message = f"A job failed on the cluster {cluster} of the lake {instance}: step <step>, <name>. <message>"
    return _event_rule(pattern, {"step": "stepId", "name": "name", "message": "message"}, message)


def failed_clusters(name: str, of_runs: bool, cluster: str, instance: str) -> EventRule:
    """Returns the rule for a cluster with the name `name`, or (`of_runs`) for all clusters that runs start, whose names
    begin with `name` and a dash.

    The cluster of a run ends with errors when its job fails. `cluster` and `instance` are names in the specs.
    """
    called = {"prefix": f"{name}-"} if of_runs else name
    pattern = {
        "source": ["aws.emr"],
        "detail-type": ["EMR Cluster State Change"],
        "detail": {"name": [called], "state": ["TERMINATED_WITH_ERRORS"]},
    }
    what = "A job failed on a cluster of its own, or the cluster" if of_runs else "The cluster"
    message = f"{what} ended with errors: {cluster} of the lake {instance}, <id>. <message>"
    return _event_rule(pattern, {"id": "clusterId", "message": "message"}, message)


def succeeded_runs(application: str) -> str:
    """Returns the event pattern of jobs that succeed on an application of EMR Serverless."""
    detail = {"applicationId": [application], "state": ["SUCCESS"]}
    return json.dumps(
        {"source": ["aws.emr-serverless"], "detail-type": ["EMR Serverless Job Run State Change"], "detail": detail}
    )


def succeeded_steps(cluster_id: str) -> str:
    """Returns the event pattern of jobs that succeed on a long-lived EMR cluster."""
    detail = {"clusterId": [cluster_id], "state": ["COMPLETED"]}
    return json.dumps({"source": ["aws.emr"], "detail-type": ["EMR Step Status Change"], "detail": detail})


def _event_rule(pattern: Mapping[str, object], fields: Mapping[str, str], message: str) -> EventRule:
    return EventRule(
        json.dumps(pattern), {name: f"$.detail.{key}" for name, key in fields.items()}, json.dumps(message)
    )


def hours_without_success(schedules: Iterable[str]) -> int | None:
    """Returns the hours without success after which an alarm is raised: the longest pause of the most frequent cron
    expression, and `SLACK_HOURS`. Returns None where an alarm cannot evaluate such a time, or without a schedule."""
    pauses = [_longest_pause(schedule) for schedule in schedules]
    hours = min((-(-int(pause.total_seconds()) // HOUR) for pause in pauses), default=LONGEST_LOOK) + SLACK_HOURS
    return hours if hours * HOUR <= LONGEST_LOOK else None


def _longest_pause(schedule: str) -> timedelta:
    """Returns the longest time between two firings, among 70 firings or the firings of two years, whichever is
    fewer."""
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    times, cron = [begin], CronSim(schedule, begin)
    for time in cron:
        times.append(time)
        if len(times) > 70 or time - begin > timedelta(days=731):
            break
    later = times[1:]
    return max((after - before for before, after in pairwise(later)), default=timedelta(days=731))


def topic_policy(topic_arn: str, owned: str) -> Policy:
    """Returns the topic's policy, which allows the lake's alarms and the account's budgets to publish with TLS. `owned`
    is the prefix of the alarms' names.

    EventBridge does not support conditions in the policy of a topic
    (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-resource-based.html). A statement for EventBridge
    would allow the rules of all accounts. Therefore EventBridge uses a role (`events_trust` and `events_policy`).
    """
    _, partition, _, region, account, _ = topic_arn.split(":", 5)

    def publish(sid: str, service: str, source: str) -> dict[str, object]:
        return {
            "Sid": sid,
            "Effect": "Allow",
            "Principal": {"Service": f"{service}.amazonaws.com"},
            "Action": "sns:Publish",
            "Resource": topic_arn,
            "Condition": {
                "ArnLike": {"aws:SourceArn": f"arn:{partition}:{source}"},
                "StringEquals": {"aws:SourceAccount": account},
            },
        }

    tls = {
        "Sid": "TlsOnly",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "sns:Publish",
        "Resource": topic_arn,
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    statements = [
        publish("Alarms", "cloudwatch", f"cloudwatch:{region}:{account}:alarm:{owned}*"),
        publish("Budgets", "budgets", f"budgets::{account}:*"),
        tls,
    ]
    return {"Version": POLICY_VERSION, "Statement": statements}


def events_trust(topic_arn: str, owned: str) -> Policy:
    """Returns the trust policy that allows EventBridge to assume a role, only for rules of this lake. `owned` is the
    prefix of their names."""
    _, partition, _, region, account, _ = topic_arn.split(":", 5)
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sts:AssumeRole",
        "Condition": {
            "StringEquals": {"aws:SourceAccount": account},
            "ArnLike": {"aws:SourceArn": f"arn:{partition}:events:{region}:{account}:rule/{owned}*"},
        },
    }
    return {"Version": POLICY_VERSION, "Statement": [statement]}


def events_policy(topic_arn: str, queue_arn: str | None = None, key_arn: str | None = None) -> Policy:
    """Returns the permissions of EventBridge's role: to publish to the topic, to send to the queue that counts
    successes, and to use the key for both."""
    found: list[dict[str, Any]] = [
        {"Sid": "Tell", "Effect": "Allow", "Action": "sns:Publish", "Resource": topic_arn},
    ]
    if queue_arn:
        found.append({"Sid": "Count", "Effect": "Allow", "Action": "sqs:SendMessage", "Resource": queue_arn})
    if key_arn:
        found.append(use_through("sns", key_arn, "KeyOfTopic"))
        found += [use_through("sqs", key_arn, "KeyOfQueue")] if queue_arn else []
    return {"Version": POLICY_VERSION, "Statement": found}


def budget_filter(instance: str) -> str:
    """Returns the cost filter for resources with the tag of the lake's instance."""
    return f"user:deployer:instance${instance}"
