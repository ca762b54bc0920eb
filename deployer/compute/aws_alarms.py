"""Who is told when a job fails on EMR: the events that say so, in words, and who may publish to the topic. Pure.

EMR has no metric of failed steps, so EventBridge's events are it
(https://docs.aws.amazon.com/ElasticMapReduce/latest/ManagementGuide/emr-manage-cloudwatch-events.html).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from deployer.compute.aws_access import POLICY_VERSION, Policy


@dataclass(frozen=True, slots=True)
class Told:
    """Which events are told of, and what is said: `pattern` and `template` are JSON, `paths` where its words are."""

    pattern: str
    paths: Mapping[str, str]
    template: str


def failed_steps(cluster_id: str, cluster: str, instance: str) -> Told:
    """Of one cluster that stays; `cluster` and `instance` are the names in the specs."""
    pattern = {
        "source": ["aws.emr"],
        "detail-type": ["EMR Step Status Change"],
        "detail": {"clusterId": [cluster_id], "state": ["FAILED"]},
    }
    said = f"A job failed on the cluster {cluster} of the lake {instance}: step <step>, <name>. <message>"
    return _told(pattern, {"step": "stepId", "name": "name", "message": "message"}, said)


def failed_clusters(name: str, of_runs: bool, cluster: str, instance: str) -> Told:
    """Of a cluster called `name`, or of all that runs start: `name` and a dash begin theirs.

    One of a run ends with errors when its job fails.
    """
    called = {"prefix": f"{name}-"} if of_runs else name
    pattern = {
        "source": ["aws.emr"],
        "detail-type": ["EMR Cluster State Change"],
        "detail": {"name": [called], "state": ["TERMINATED_WITH_ERRORS"]},
    }
    what = "A job failed on a cluster of its own, or the cluster" if of_runs else "The cluster"
    said = f"{what} ended with errors: {cluster} of the lake {instance}, <id>. <message>"
    return _told(pattern, {"id": "clusterId", "message": "message"}, said)


def _told(pattern: Mapping[str, object], words: Mapping[str, str], said: str) -> Told:
    return Told(json.dumps(pattern), {name: f"$.detail.{key}" for name, key in words.items()}, json.dumps(said))


def topic_policy(topic_arn: str) -> Policy:
    """Lets the account's alarms publish, as they may to a topic without a policy, and EventBridge.

    EventBridge's statement names no rule: its own page on topics has none either, and a message that is not let through
    would be missed by nobody.
    """
    _, partition, _, region, account, _ = topic_arn.split(":", 5)
    alarms = f"arn:{partition}:cloudwatch:{region}:{account}:alarm:*"

    def publish(sid: str, service: str, **condition: object) -> dict[str, object]:
        return {
            "Sid": sid,
            "Effect": "Allow",
            "Principal": {"Service": f"{service}.amazonaws.com"},
            "Action": "sns:Publish",
            "Resource": topic_arn,
            **condition,
        }

    own = {"ArnLike": {"aws:SourceArn": alarms}, "StringEquals": {"aws:SourceAccount": account}}
    return {
        "Version": POLICY_VERSION,
        "Statement": [publish("Alarms", "cloudwatch", Condition=own), publish("Events", "events")],
    }
