"""What AWS takes and moto does not look at: sizes and names of IAM, metrics of CloudWatch, patterns of EventBridge.

Each table is of facts that AWS documents, with the page. What is not in them fails, so that a test cannot pass with an
alarm on a metric that nobody sends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

#: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
ROLE_NAME, ROLE_PATH, TRUST_POLICY, INLINE_POLICIES = 64, 512, 2_048, 10_240

#: Namespace, metric and the names of its dimensions, which an alarm has to name exactly.
METRICS: frozenset[tuple[str, str, frozenset[str]]] = frozenset(
    {
        # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
        ("AWS/SQS", "ApproximateNumberOfMessagesVisible", frozenset({"QueueName"})),
        ("AWS/SQS", "NumberOfMessagesSent", frozenset({"QueueName"})),
        # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/metrics-dimensions.html
        ("AWS/DynamoDB", "WriteThrottleEvents", frozenset({"TableName"})),
    }
)
#: Seconds over which an alarm may look, by periods of less than an hour and of an hour or more
#: (https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html).
LOOK_BACK = {False: 86_400, True: 604_800}

#: Source and detail-type of an event, the fields of its detail that a pattern or a message may name, and its states.
#: https://docs.aws.amazon.com/emr/latest/ManagementGuide/emr-manage-cloudwatch-events.html
#: https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html
EVENTS: Mapping[tuple[str, str], tuple[frozenset[str], frozenset[str]]] = {
    ("aws.emr-serverless", "EMR Serverless Job Run State Change"): (
        frozenset({"applicationId", "jobRunId", "state", "previousState", "releaseLabel", "arn", "createdBy"}),
        frozenset({"SUBMITTED", "PENDING", "SCHEDULED", "RUNNING", "SUCCESS", "FAILED", "CANCELLING", "CANCELLED"}),
    ),
    ("aws.emr", "EMR Step Status Change"): (
        frozenset({"clusterId", "stepId", "name", "message", "state", "severity", "actionOnFailure"}),
        frozenset({"PENDING", "RUNNING", "COMPLETED", "CANCELLED", "FAILED", "INTERRUPTED"}),
    ),
    ("aws.emr", "EMR Cluster State Change"): (
        frozenset({"clusterId", "name", "message", "state", "severity", "stateChangeReason"}),
        frozenset({"STARTING", "RUNNING", "WAITING", "TERMINATING", "TERMINATED", "TERMINATED_WITH_ERRORS"}),
    ),
}


def check_role(name: str, path: str, trust: str) -> None:
    """Raises ValueError for a role that IAM would not take."""
    _at_most("a role's name", name, ROLE_NAME)
    _at_most("a role's path", path, ROLE_PATH)
    _at_most("a trust policy", _compact(trust), TRUST_POLICY)
    if not re.fullmatch(r"[\w+=,.@-]+", name) or not re.fullmatch(r"/|/[\x21-\x7f]+/", path):
        raise ValueError(f"ValidationError: IAM takes no role {path}{name}")


def check_inline_policies(documents: Iterable[str]) -> None:
    """Raises ValueError where the policies within a role are larger together than IAM takes."""
    size = sum(len(_compact(each)) for each in documents)
    if size > INLINE_POLICIES:
        raise ValueError(f"LimitExceeded: the policies have {size} characters, and IAM takes {INLINE_POLICIES}")


def check_alarm(alarm: Mapping[str, Any]) -> None:
    """Raises ValueError for an alarm that would never ring, or that CloudWatch would not take."""
    metric = (alarm["namespace"], alarm["metricName"], frozenset(alarm.get("dimensions", ())))
    if metric not in METRICS:
        raise ValueError(f"nobody sends the metric {metric[1]} of {metric[0]} with the dimensions {sorted(metric[2])}")
    look = alarm["period"] * alarm["evaluationPeriods"]
    if look > LOOK_BACK[alarm["period"] >= 3_600]:
        raise ValueError(f"ValidationError: an alarm cannot look back over {look} seconds")


def check_pattern(text: str) -> None:
    """Raises ValueError for a pattern that fits no event that is sent."""
    pattern = json.loads(text)
    for source in pattern["source"]:
        for kind in pattern["detail-type"]:
            if (source, kind) not in EVENTS:
                raise ValueError(f"{source} sends no event {kind!r}")
            fields, states = EVENTS[source, kind]
            detail = pattern.get("detail", {})
            if unknown := detail.keys() - fields:
                raise ValueError(f"an event {kind!r} has no {sorted(unknown)}")
            if unknown := set(detail.get("state", ())) - states:
                raise ValueError(f"an event {kind!r} has no state {sorted(unknown)}")


def check_words(paths: Mapping[str, str]) -> None:
    """Raises ValueError for a message that names a field which no event has."""
    known = frozenset().union(*(fields for fields, _ in EVENTS.values()))
    for path in paths.values():
        if path.removeprefix("$.detail.") not in known:
            raise ValueError(f"no event has {path}")


def _compact(document: str) -> str:
    return json.dumps(json.loads(document), separators=(",", ":"))


def _at_most(what: str, text: str, most: int) -> None:
    if len(text) > most:
        raise ValueError(f"ValidationError: {what} has {len(text)} characters, and IAM takes {most}")
