"""The types of `aws:kms`: keys and their policies, by the key's id, and aliases, by name."""

from __future__ import annotations

from typing import Any

from tests.aws_provider.kinds import Found, Kind, Values, same_json

_GONE = "PendingDeletion"


def _tags(tags: Values) -> list[dict[str, str]]:
    return [{"TagKey": key, "TagValue": value} for key, value in sorted(tags.items())]


def _create(kms: Any, inputs: Values) -> str:
    made = kms.create_key(Description=inputs.get("description", ""), Tags=_tags(inputs.get("tags", {})))
    id_ = str(made["KeyMetadata"]["KeyId"])
    _rotate(kms, id_, inputs)
    return id_


def _rotate(kms: Any, id: str, inputs: Values) -> None:
    (kms.enable_key_rotation if inputs.get("enableKeyRotation") else kms.disable_key_rotation)(KeyId=id)


def _live(kms: Any, id: str) -> Any:
    try:
        found = kms.describe_key(KeyId=id)["KeyMetadata"]
    except kms.exceptions.NotFoundException:
        return None
    return None if found["KeyState"] == _GONE else found


def _read(kms: Any, id: str, inputs: Values) -> Found | None:
    key = _live(kms, id)
    if key is None:
        return None
    tags = {each["TagKey"]: each["TagValue"] for each in kms.list_resource_tags(KeyId=id)["Tags"]}
    window = {name: inputs[name] for name in ("deletionWindowInDays",) if name in inputs}  # AWS asks for it at the end
    found = {
        **({"description": key["Description"]} if key["Description"] else {}),
        **({"enableKeyRotation": True} if kms.get_key_rotation_status(KeyId=id)["KeyRotationEnabled"] else {}),
        **({"tags": tags} if tags else {}),
        **window,
    }
    return Found(found, {"arn": key["Arn"], "keyId": id})


def _update(kms: Any, id: str, before: Values, inputs: Values) -> None:
    kms.update_key_description(KeyId=id, Description=inputs.get("description", ""))
    _rotate(kms, id, inputs)
    old, new = before.get("tags", {}), inputs.get("tags", {})
    if gone := sorted(old.keys() - new.keys()):
        kms.untag_resource(KeyId=id, TagKeys=gone)
    if new:
        kms.tag_resource(KeyId=id, Tags=_tags(new))


def _delete(kms: Any, id: str, inputs: Values) -> None:
    if _live(kms, id) is not None:
        kms.schedule_key_deletion(KeyId=id, PendingWindowInDays=inputs.get("deletionWindowInDays", 30))


def _put_policy(kms: Any, inputs: Values) -> str:
    kms.put_key_policy(KeyId=inputs["keyId"], PolicyName="default", Policy=inputs["policy"])
    return str(inputs["keyId"])


def _update_policy(kms: Any, id: str, before: Values, inputs: Values) -> None:
    _put_policy(kms, inputs)


def _read_policy(kms: Any, id: str, inputs: Values) -> Found | None:
    if _live(kms, id) is None:
        return None
    policy = kms.get_key_policy(KeyId=id, PolicyName="default")["Policy"]
    return Found({"keyId": id, "policy": same_json(policy)}, {})


def _create_alias(kms: Any, inputs: Values) -> str:
    kms.create_alias(AliasName=inputs["name"], TargetKeyId=inputs["targetKeyId"])
    return str(inputs["name"])


def _read_alias(kms: Any, id: str, inputs: Values) -> Found | None:
    pages = kms.get_paginator("list_aliases").paginate()
    aliases = {each["AliasName"]: each for page in pages for each in page["Aliases"]}
    if id not in aliases:
        return None
    return Found({"name": id, "targetKeyId": aliases[id]["TargetKeyId"]}, {"arn": aliases[id]["AliasArn"]})


def _update_alias(kms: Any, id: str, before: Values, inputs: Values) -> None:
    kms.update_alias(AliasName=id, TargetKeyId=inputs["targetKeyId"])


def _delete_alias(kms: Any, id: str, inputs: Values) -> None:
    try:
        kms.delete_alias(AliasName=id)
    except kms.exceptions.NotFoundException:
        return


KINDS = {
    "aws:kms/key:Key": Kind(
        shape={"description": str, "enableKeyRotation": bool, "deletionWindowInDays": int, "tags": {"*": str}},
        needed=(),
        replaces=(),
        computed=("arn", "keyId"),
        create=_create,
        read=_read,
        update=_update,
        delete=_delete,
        service="kms",
    ),
    "aws:kms/keyPolicy:KeyPolicy": Kind(
        shape={"keyId": str, "policy": str},
        needed=("keyId", "policy"),
        replaces=("keyId",),
        computed=(),
        create=_put_policy,
        read=_read_policy,
        update=_update_policy,
        delete=lambda kms, id, inputs: None,  # the stack never lets go of it
        service="kms",
        canonical=lambda values: {**values, "policy": same_json(values["policy"])},
    ),
    "aws:kms/alias:Alias": Kind(
        shape={"name": str, "targetKeyId": str},
        needed=("name", "targetKeyId"),
        replaces=("name",),
        computed=("arn",),
        create=_create_alias,
        read=_read_alias,
        update=_update_alias,
        delete=_delete_alias,
        service="kms",
    ),
}
