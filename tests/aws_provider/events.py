"""The types of `aws:cloudwatch` and `aws:sns` that tell of events of EMR: rules, their targets, policies of topics."""

from __future__ import annotations

import json
from typing import Any

from tests.aws_provider import limits
from tests.aws_provider.kinds import Found, Kind, Values, same_json, tag_list, tags_of


def _put_rule(events: Any, inputs: Values) -> str:
    limits.check_pattern(inputs["eventPattern"])
    about = {"Description": inputs["description"]} if "description" in inputs else {}
    events.put_rule(
        Name=inputs["name"], EventPattern=inputs["eventPattern"], Tags=tag_list(inputs.get("tags", {})), **about
    )
    return str(inputs["name"])


def _read_rule(events: Any, id: str, inputs: Values) -> Found | None:
    try:
        rule = events.describe_rule(Name=id)
    except events.exceptions.ResourceNotFoundException:
        return None
    found = {"name": id, "eventPattern": same_json(rule["EventPattern"])}
    if rule.get("Description"):
        found["description"] = rule["Description"]
    tags = tags_of(events.list_tags_for_resource(ResourceARN=rule["Arn"])["Tags"])
    return Found({**found, **tags}, {"arn": rule["Arn"]})


def _update_rule(events: Any, id: str, before: Values, inputs: Values) -> None:
    old, new = before.get("tags", {}), inputs.get("tags", {})
    arn = events.describe_rule(Name=id)["Arn"]
    limits.check_pattern(inputs["eventPattern"])
    events.put_rule(Name=id, EventPattern=inputs["eventPattern"], Description=inputs.get("description", ""))
    if gone := sorted(old.keys() - new.keys()):
        events.untag_resource(ResourceARN=arn, TagKeys=gone)
    if new:
        events.tag_resource(ResourceARN=arn, Tags=tag_list(new))


def _put_target(events: Any, inputs: Values) -> str:
    target: dict[str, Any] = {"Id": inputs["targetId"], "Arn": inputs["arn"]}
    if role := inputs.get("roleArn"):
        target["RoleArn"] = role
    if said := inputs.get("inputTransformer"):
        limits.check_words(said["inputPaths"])
        target["InputTransformer"] = {"InputPathsMap": said["inputPaths"], "InputTemplate": said["inputTemplate"]}
    events.put_targets(Rule=inputs["rule"], Targets=[target])
    return f"{inputs['rule']}/{inputs['targetId']}"


def _update_target(events: Any, id: str, before: Values, inputs: Values) -> None:
    _put_target(events, inputs)


def _read_target(events: Any, id: str, inputs: Values) -> Found | None:
    rule, _, target_id = id.partition("/")
    try:
        listed = events.list_targets_by_rule(Rule=rule)["Targets"]
    except events.exceptions.ResourceNotFoundException:
        return None
    for target in listed:
        if target["Id"] == target_id:
            found = {"rule": rule, "targetId": target_id, "arn": target["Arn"]}
            if role := target.get("RoleArn"):
                found["roleArn"] = role
            if said := target.get("InputTransformer"):
                found["inputTransformer"] = {
                    "inputPaths": said["InputPathsMap"],
                    "inputTemplate": said["InputTemplate"],
                }
            return Found(found, {})
    return None


def _remove_target(events: Any, id: str, inputs: Values) -> None:
    rule, _, target_id = id.partition("/")
    events.remove_targets(Rule=rule, Ids=[target_id])


def _put_policy(sns: Any, inputs: Values) -> str:
    sns.set_topic_attributes(TopicArn=inputs["arn"], AttributeName="Policy", AttributeValue=inputs["policy"])
    return str(inputs["arn"])


def _update_policy(sns: Any, id: str, before: Values, inputs: Values) -> None:
    _put_policy(sns, inputs)


def _read_policy(sns: Any, id: str, inputs: Values) -> Found | None:
    try:
        policy = sns.get_topic_attributes(TopicArn=id)["Attributes"]["Policy"]
    except sns.exceptions.NotFoundException:
        return None
    return Found({"arn": id, "policy": same_json(policy)}, {})


def _default_policy(sns: Any, id: str, inputs: Values) -> None:
    """As the official provider takes a policy away: the topic gets the one that AWS gives to each."""
    statement = {
        "Sid": "__default_statement_ID",
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": "sns:Publish",
        "Resource": id,
        "Condition": {"StringEquals": {"AWS:SourceOwner": id.split(":")[4]}},
    }
    _put_policy(sns, {"arn": id, "policy": json.dumps({"Version": "2008-10-17", "Statement": [statement]})})


KINDS = {
    "aws:cloudwatch/eventRule:EventRule": Kind(
        shape={"name": str, "description": str, "eventPattern": str, "tags": {"*": str}},
        needed=("name", "eventPattern"),
        replaces=("name",),
        computed=("arn",),
        create=_put_rule,
        read=_read_rule,
        update=_update_rule,
        delete=lambda events, id, inputs: events.delete_rule(Name=id),
        service="events",
        canonical=lambda inputs: {**inputs, "eventPattern": same_json(inputs["eventPattern"])},
    ),
    "aws:cloudwatch/eventTarget:EventTarget": Kind(
        shape={
            "rule": str,
            "targetId": str,
            "arn": str,
            "roleArn": str,
            "inputTransformer": {"inputPaths": {"*": str}, "inputTemplate": str},
        },
        needed=("rule", "targetId", "arn"),
        replaces=("rule", "targetId"),
        computed=(),
        create=_put_target,
        read=_read_target,
        update=_update_target,
        delete=_remove_target,
        service="events",
    ),
    "aws:sns/topicPolicy:TopicPolicy": Kind(
        shape={"arn": str, "policy": str},
        needed=("arn", "policy"),
        replaces=("arn",),
        computed=(),
        create=_put_policy,
        read=_read_policy,
        update=_update_policy,
        delete=_default_policy,
        service="sns",
        canonical=lambda inputs: {**inputs, "policy": same_json(inputs["policy"])},
    ),
}
