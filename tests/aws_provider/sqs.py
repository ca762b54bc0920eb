"""The types of `aws:sqs`: queues, by URL, and their policies."""

from __future__ import annotations

from typing import Any

from tests.aws_provider.kinds import Found, Kind, Values, same_json

_RETENTION = 345_600  #: seconds, SQS's own


def _attributes(inputs: Values) -> dict[str, str]:
    key = inputs.get("kmsMasterKeyId", "")
    own = {"SqsManagedSseEnabled": str(inputs.get("sqsManagedSseEnabled", True)).lower()}
    return {
        "MessageRetentionPeriod": str(inputs.get("messageRetentionSeconds", _RETENTION)),
        **({"KmsMasterKeyId": key} if key else own),
    }


def _create(sqs: Any, inputs: Values) -> str:
    made = sqs.create_queue(QueueName=inputs["name"], Attributes=_attributes(inputs), tags=inputs.get("tags", {}))
    return str(made["QueueUrl"])


def _known(sqs: Any, url: str) -> dict[str, str] | None:
    try:
        found: dict[str, str] = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    except sqs.exceptions.QueueDoesNotExist:
        return None
    return found


def _read(sqs: Any, id: str, inputs: Values) -> Found | None:
    found = _known(sqs, id)
    if found is None:
        return None
    tags = sqs.list_queue_tags(QueueUrl=id).get("Tags", {})
    values = {
        "name": id.rpartition("/")[2],
        "messageRetentionSeconds": int(found["MessageRetentionPeriod"]),
        **(
            {"kmsMasterKeyId": found["KmsMasterKeyId"]}
            if found.get("KmsMasterKeyId")
            else {"sqsManagedSseEnabled": found.get("SqsManagedSseEnabled", "true") == "true"}
        ),
        **({"tags": tags} if tags else {}),
    }
    return Found(values, {"arn": found["QueueArn"], "url": id})


def _update(sqs: Any, id: str, before: Values, inputs: Values) -> None:
    sqs.set_queue_attributes(QueueUrl=id, Attributes=_attributes(inputs))
    old, new = before.get("tags", {}), inputs.get("tags", {})
    if gone := sorted(old.keys() - new.keys()):
        sqs.untag_queue(QueueUrl=id, TagKeys=gone)
    if new:
        sqs.tag_queue(QueueUrl=id, Tags=dict(new))


def _delete(sqs: Any, id: str, inputs: Values) -> None:
    if _known(sqs, id) is not None:
        sqs.delete_queue(QueueUrl=id)


def _put_policy(sqs: Any, inputs: Values) -> str:
    sqs.set_queue_attributes(QueueUrl=inputs["queueUrl"], Attributes={"Policy": inputs["policy"]})
    return str(inputs["queueUrl"])


def _update_policy(sqs: Any, id: str, before: Values, inputs: Values) -> None:
    _put_policy(sqs, inputs)


def _read_policy(sqs: Any, id: str, inputs: Values) -> Found | None:
    found = _known(sqs, id)
    if not found or not found.get("Policy"):
        return None
    return Found({"queueUrl": id, "policy": same_json(found["Policy"])}, {})


def _delete_policy(sqs: Any, id: str, inputs: Values) -> None:
    if _known(sqs, id) is not None:
        sqs.set_queue_attributes(QueueUrl=id, Attributes={"Policy": ""})


KINDS = {
    "aws:sqs/queue:Queue": Kind(
        shape={
            "name": str,
            "messageRetentionSeconds": int,
            "sqsManagedSseEnabled": bool,
            "kmsMasterKeyId": str,
            "tags": {"*": str},
        },
        needed=("name",),
        replaces=("name",),
        computed=("arn", "url"),
        create=_create,
        read=_read,
        update=_update,
        delete=_delete,
        service="sqs",
    ),
    "aws:sqs/queuePolicy:QueuePolicy": Kind(
        shape={"queueUrl": str, "policy": str},
        needed=("queueUrl", "policy"),
        replaces=("queueUrl",),
        computed=(),
        create=_put_policy,
        read=_read_policy,
        update=_update_policy,
        delete=_delete_policy,
        service="sqs",
        canonical=lambda values: {**values, "policy": same_json(values["policy"])},
    ),
}
