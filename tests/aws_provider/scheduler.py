"""The types of `aws:scheduler`: groups by name, schedules by `GROUP/NAME`."""

from __future__ import annotations

from typing import Any

from tests.aws_provider.kinds import Found, Kind, Values, tag_list, tags_of

_TARGET = {
    "arn": "Arn",
    "roleArn": "RoleArn",
    "input": "Input",
    "deadLetterConfig": "DeadLetterConfig",
    "retryPolicy": "RetryPolicy",
}


def _create_group(scheduler: Any, inputs: Values) -> str:
    scheduler.create_schedule_group(Name=inputs["name"], Tags=tag_list(inputs.get("tags", {})))
    return str(inputs["name"])


def _read_group(scheduler: Any, id: str, inputs: Values) -> Found | None:
    try:
        arn = scheduler.get_schedule_group(Name=id)["Arn"]
    except scheduler.exceptions.ResourceNotFoundException:
        return None
    tags = tags_of(scheduler.list_tags_for_resource(ResourceArn=arn)["Tags"])
    return Found({"name": id, **tags}, {"arn": arn})


def _update_group(scheduler: Any, id: str, before: Values, inputs: Values) -> None:
    arn = scheduler.get_schedule_group(Name=id)["Arn"]
    old, new = before.get("tags", {}), inputs.get("tags", {})
    if gone := sorted(old.keys() - new.keys()):
        scheduler.untag_resource(ResourceArn=arn, TagKeys=gone)
    if new:
        scheduler.tag_resource(ResourceArn=arn, Tags=tag_list(new))


def _delete_group(scheduler: Any, id: str, inputs: Values) -> None:
    try:
        scheduler.delete_schedule_group(Name=id)
    except scheduler.exceptions.ResourceNotFoundException:
        return


def _arguments(inputs: Values) -> dict[str, Any]:
    """What create and update take alike; an update without a value gives it up."""
    target = {theirs: inputs["target"][ours] for ours, theirs in _TARGET.items() if ours in inputs["target"]}
    if letters := target.get("DeadLetterConfig"):
        target["DeadLetterConfig"] = {"Arn": letters["arn"]}
    if retries := target.get("RetryPolicy"):
        target["RetryPolicy"] = {
            "MaximumEventAgeInSeconds": retries["maximumEventAgeInSeconds"],
            "MaximumRetryAttempts": retries["maximumRetryAttempts"],
        }
    return {
        "Name": inputs["name"],
        "GroupName": inputs["groupName"],
        "Description": inputs.get("description", ""),
        "ScheduleExpression": inputs["scheduleExpression"],
        "ScheduleExpressionTimezone": inputs.get("scheduleExpressionTimezone", "UTC"),
        "FlexibleTimeWindow": {"Mode": inputs["flexibleTimeWindow"]["mode"]},
        "Target": target,
    }


def _create(scheduler: Any, inputs: Values) -> str:
    scheduler.create_schedule(**_arguments(inputs))
    return f"{inputs['groupName']}/{inputs['name']}"


def _read(scheduler: Any, id: str, inputs: Values) -> Found | None:
    group, _, name = id.partition("/")
    try:
        found = scheduler.get_schedule(GroupName=group, Name=name)
    except scheduler.exceptions.ResourceNotFoundException:
        return None
    target = {ours: found["Target"][theirs] for ours, theirs in _TARGET.items() if theirs in found["Target"]}
    if letters := target.get("deadLetterConfig"):
        target["deadLetterConfig"] = {"arn": letters["Arn"]}
    if retries := target.get("retryPolicy"):
        target["retryPolicy"] = {
            "maximumEventAgeInSeconds": retries["MaximumEventAgeInSeconds"],
            "maximumRetryAttempts": retries["MaximumRetryAttempts"],
        }
    values = {
        "name": name,
        "groupName": group,
        "scheduleExpression": found["ScheduleExpression"],
        "scheduleExpressionTimezone": found.get("ScheduleExpressionTimezone") or "UTC",
        "flexibleTimeWindow": {"mode": found["FlexibleTimeWindow"]["Mode"]},
        "target": target,
        **({"description": found["Description"]} if found.get("Description") else {}),
    }
    if found.get("State", "ENABLED") != "ENABLED":
        values["state"] = found["State"]
    return Found(values, {"arn": found["Arn"]})


def _update(scheduler: Any, id: str, before: Values, inputs: Values) -> None:
    scheduler.update_schedule(**_arguments(inputs), State=inputs.get("state", "ENABLED"))


def _delete(scheduler: Any, id: str, inputs: Values) -> None:
    group, _, name = id.partition("/")
    try:
        scheduler.delete_schedule(GroupName=group, Name=name)
    except scheduler.exceptions.ResourceNotFoundException:
        return


KINDS = {
    "aws:scheduler/scheduleGroup:ScheduleGroup": Kind(
        shape={"name": str, "tags": {"*": str}},
        needed=("name",),
        replaces=("name",),
        computed=("arn",),
        create=_create_group,
        read=_read_group,
        update=_update_group,
        delete=_delete_group,
        service="scheduler",
    ),
    "aws:scheduler/schedule:Schedule": Kind(
        shape={
            "name": str,
            "groupName": str,
            "description": str,
            "scheduleExpression": str,
            "scheduleExpressionTimezone": str,
            "flexibleTimeWindow": {"mode": str},
            "state": str,
            "target": {
                "arn": str,
                "roleArn": str,
                "input": str,
                "deadLetterConfig": {"arn": str},
                "retryPolicy": {"maximumEventAgeInSeconds": int, "maximumRetryAttempts": int},
            },
        },
        needed=("name", "groupName", "scheduleExpression", "flexibleTimeWindow", "target"),
        replaces=("name", "groupName"),
        computed=("arn",),
        create=_create,
        read=_read,
        update=_update,
        delete=_delete,
        service="scheduler",
    ),
}
