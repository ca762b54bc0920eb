"""The type `aws:cloudwatch:LogGroup`. Its id is the group's name."""

from __future__ import annotations

from typing import Any

from tests.aws_provider.kinds import Found, Kind, Values


def _create(logs: Any, inputs: Values) -> str:
    key = {"kmsKeyId": inputs["kmsKeyId"]} if "kmsKeyId" in inputs else {}
    logs.create_log_group(logGroupName=inputs["name"], tags=inputs.get("tags", {}), **key)
    _retain(logs, inputs["name"], inputs)
    return str(inputs["name"])


def _retain(logs: Any, name: str, inputs: Values) -> None:
    if "retentionInDays" in inputs:
        logs.put_retention_policy(logGroupName=name, retentionInDays=inputs["retentionInDays"])
    else:
        logs.delete_retention_policy(logGroupName=name)


def _group(logs: Any, name: str) -> Any:
    listed = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    return next((each for each in listed if each["logGroupName"] == name), None)


def _arn(group: Any) -> str:
    return str(group["arn"]).removesuffix(":*")


def _read(logs: Any, id: str, inputs: Values) -> Found | None:
    group = _group(logs, id)
    if group is None:
        return None
    tags = logs.list_tags_for_resource(resourceArn=_arn(group))["tags"]
    retention = {"retentionInDays": group["retentionInDays"]} if group.get("retentionInDays") else {}
    key = {"kmsKeyId": group["kmsKeyId"]} if group.get("kmsKeyId") else {}
    return Found({"name": id, **retention, **key, **({"tags": tags} if tags else {})}, {"arn": _arn(group)})


def _update(logs: Any, id: str, before: Values, inputs: Values) -> None:
    _retain(logs, id, inputs)
    if "kmsKeyId" in inputs:
        logs.associate_kms_key(logGroupName=id, kmsKeyId=inputs["kmsKeyId"])
    elif "kmsKeyId" in before:
        logs.disassociate_kms_key(logGroupName=id)
    arn, old, new = _arn(_group(logs, id)), before.get("tags", {}), inputs.get("tags", {})
    if gone := sorted(old.keys() - new.keys()):
        logs.untag_resource(resourceArn=arn, tagKeys=gone)
    if new:
        logs.tag_resource(resourceArn=arn, tags=dict(new))


def _delete(logs: Any, id: str, inputs: Values) -> None:
    try:
        logs.delete_log_group(logGroupName=id)
    except logs.exceptions.ResourceNotFoundException:
        return


KINDS = {
    "aws:cloudwatch/logGroup:LogGroup": Kind(
        shape={"name": str, "retentionInDays": int, "kmsKeyId": str, "tags": {"*": str}},
        needed=("name",),
        replaces=("name",),
        computed=("arn",),
        create=_create,
        read=_read,
        update=_update,
        delete=_delete,
        service="logs",
    )
}
