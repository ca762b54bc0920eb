"""The types of `aws:sns` and `aws:cloudwatch` that watch services: topics and subscriptions by ARN, alarms by name."""

from __future__ import annotations

from typing import Any

from tests.aws_provider import limits
from tests.aws_provider.kinds import Found, Kind, Values, tag_list, tags_of

_ALARM = {
    "alarmDescription": "AlarmDescription",
    "namespace": "Namespace",
    "metricName": "MetricName",
    "statistic": "Statistic",
    "period": "Period",
    "evaluationPeriods": "EvaluationPeriods",
    "threshold": "Threshold",
    "comparisonOperator": "ComparisonOperator",
    "treatMissingData": "TreatMissingData",
    "alarmActions": "AlarmActions",
    "okActions": "OKActions",
}


def _create_topic(sns: Any, inputs: Values) -> str:
    key = {"KmsMasterKeyId": inputs["kmsMasterKeyId"]} if "kmsMasterKeyId" in inputs else {}
    made = sns.create_topic(Name=inputs["name"], Tags=tag_list(inputs.get("tags", {})), Attributes=key)
    return str(made["TopicArn"])


def _read_topic(sns: Any, id: str, inputs: Values) -> Found | None:
    try:
        key = sns.get_topic_attributes(TopicArn=id)["Attributes"].get("KmsMasterKeyId")
    except sns.exceptions.NotFoundException:
        return None
    tags = tags_of(sns.list_tags_for_resource(ResourceArn=id)["Tags"])
    encrypted = {"kmsMasterKeyId": key} if key else {}
    return Found({"name": id.rpartition(":")[2], **encrypted, **tags}, {"arn": id})


def _update_topic(sns: Any, id: str, before: Values, inputs: Values) -> None:
    key = inputs.get("kmsMasterKeyId", "")
    if key != before.get("kmsMasterKeyId", ""):
        sns.set_topic_attributes(TopicArn=id, AttributeName="KmsMasterKeyId", AttributeValue=key)
    old, new = before.get("tags", {}), inputs.get("tags", {})
    if gone := sorted(old.keys() - new.keys()):
        sns.untag_resource(ResourceArn=id, TagKeys=gone)
    if new:
        sns.tag_resource(ResourceArn=id, Tags=tag_list(new))


def _subscribe(sns: Any, inputs: Values) -> str:
    made = sns.subscribe(
        TopicArn=inputs["topic"], Protocol=inputs["protocol"], Endpoint=inputs["endpoint"], ReturnSubscriptionArn=True
    )
    return str(made["SubscriptionArn"])


def _read_subscription(sns: Any, id: str, inputs: Values) -> Found | None:
    try:
        found = sns.get_subscription_attributes(SubscriptionArn=id)["Attributes"]
    except sns.exceptions.NotFoundException:
        return None
    return Found(
        {"topic": found["TopicArn"], "protocol": found["Protocol"], "endpoint": found["Endpoint"]}, {"arn": id}
    )


def _put_alarm(cloudwatch: Any, inputs: Values) -> str:
    limits.check_alarm(inputs)
    cloudwatch.put_metric_alarm(
        AlarmName=inputs["name"],
        Dimensions=[{"Name": name, "Value": value} for name, value in sorted(inputs.get("dimensions", {}).items())],
        Tags=tag_list(inputs.get("tags", {})),
        **{theirs: inputs[ours] for ours, theirs in _ALARM.items() if ours in inputs},
    )
    return str(inputs["name"])


def _read_alarm(cloudwatch: Any, id: str, inputs: Values) -> Found | None:
    listed = cloudwatch.describe_alarms(AlarmNames=[id])["MetricAlarms"]
    if not listed:
        return None
    [alarm] = listed
    values = {ours: alarm[theirs] for ours, theirs in _ALARM.items() if alarm.get(theirs) not in (None, [], "")}
    values |= {"name": id, "dimensions": {each["Name"]: each["Value"] for each in alarm["Dimensions"]}}
    if isinstance(values.get("threshold"), float) and values["threshold"].is_integer():
        values["threshold"] = int(values["threshold"])
    tags = tags_of(cloudwatch.list_tags_for_resource(ResourceARN=alarm["AlarmArn"])["Tags"])
    return Found({**values, **tags}, {"arn": alarm["AlarmArn"]})


def _update_alarm(cloudwatch: Any, id: str, before: Values, inputs: Values) -> None:
    _put_alarm(cloudwatch, inputs)
    arn = cloudwatch.describe_alarms(AlarmNames=[id])["MetricAlarms"][0]["AlarmArn"]
    old, new = before.get("tags", {}), inputs.get("tags", {})
    if gone := sorted(old.keys() - new.keys()):
        cloudwatch.untag_resource(ResourceARN=arn, TagKeys=gone)
    if new:
        cloudwatch.tag_resource(ResourceARN=arn, Tags=tag_list(new))


KINDS = {
    "aws:sns/topic:Topic": Kind(
        shape={"name": str, "kmsMasterKeyId": str, "tags": {"*": str}},
        needed=("name",),
        replaces=("name",),
        computed=("arn",),
        create=_create_topic,
        read=_read_topic,
        update=_update_topic,
        delete=lambda sns, id, inputs: sns.delete_topic(TopicArn=id),
        service="sns",
    ),
    "aws:sns/topicSubscription:TopicSubscription": Kind(
        shape={"topic": str, "protocol": str, "endpoint": str},
        needed=("topic", "protocol", "endpoint"),
        replaces=("topic", "protocol", "endpoint"),
        computed=("arn",),
        create=_subscribe,
        read=_read_subscription,
        update=lambda sns, id, before, inputs: None,
        delete=lambda sns, id, inputs: sns.unsubscribe(SubscriptionArn=id),
        service="sns",
    ),
    "aws:cloudwatch/metricAlarm:MetricAlarm": Kind(
        shape={
            "name": str,
            "alarmDescription": str,
            "namespace": str,
            "metricName": str,
            "dimensions": {"*": str},
            "statistic": str,
            "period": int,
            "evaluationPeriods": int,
            "threshold": int,
            "comparisonOperator": str,
            "treatMissingData": str,
            "alarmActions": [str],
            "okActions": [str],
            "tags": {"*": str},
        },
        needed=("name", "comparisonOperator", "evaluationPeriods"),
        replaces=("name",),
        computed=("arn",),
        create=_put_alarm,
        read=_read_alarm,
        update=_update_alarm,
        delete=lambda cloudwatch, id, inputs: cloudwatch.delete_alarms(AlarmNames=[id]),
        service="cloudwatch",
    ),
}
