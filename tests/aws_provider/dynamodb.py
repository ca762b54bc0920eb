"""The type `aws:dynamodb:Table`. Its id is the table's name."""

from __future__ import annotations

from typing import Any

from tests.aws_provider.kinds import Found, Kind, Values, aws_form, pulumi_form, tag_list, tags_of

_PAYMENT = ("billingMode", "readCapacity", "writeCapacity", "onDemandThroughput")


def _create(dynamodb: Any, inputs: Values) -> str:
    keys = [{"AttributeName": inputs["hashKey"], "KeyType": "HASH"}]
    if "rangeKey" in inputs:
        keys.append({"AttributeName": inputs["rangeKey"], "KeyType": "RANGE"})
    indexes = [
        {
            "IndexName": index["name"],
            "KeySchema": [keys[0], {"AttributeName": index["rangeKey"], "KeyType": "RANGE"}],
            "Projection": {"ProjectionType": index["projectionType"]},
        }
        for index in inputs.get("localSecondaryIndexes", ())
    ]
    dynamodb.create_table(
        TableName=inputs["name"],
        BillingMode=inputs["billingMode"],
        KeySchema=keys,
        AttributeDefinitions=[
            {"AttributeName": each["name"], "AttributeType": each["type"]} for each in inputs["attributes"]
        ],
        **({"LocalSecondaryIndexes": indexes} if indexes else {}),
        **_throughput(inputs),
        **({"SSESpecification": _encryption(inputs)} if "serverSideEncryption" in inputs else {}),
        DeletionProtectionEnabled=inputs.get("deletionProtectionEnabled", False),
        Tags=tag_list(inputs.get("tags", {})),
    )
    dynamodb.get_waiter("table_exists").wait(TableName=inputs["name"])
    _set_recovery(dynamodb, inputs["name"], inputs)
    return str(inputs["name"])


def _throughput(inputs: Values) -> dict[str, Any]:
    if inputs["billingMode"] != "PROVISIONED":
        ceiling = inputs.get("onDemandThroughput")
        return {"OnDemandThroughput": aws_form(ceiling, {})} if ceiling else {}
    units = {"ReadCapacityUnits": inputs["readCapacity"], "WriteCapacityUnits": inputs["writeCapacity"]}
    return {"ProvisionedThroughput": units}


def _encryption(inputs: Values) -> dict[str, Any]:
    wanted = inputs.get("serverSideEncryption", {"enabled": False})
    key = {"SSEType": "KMS", "KMSMasterKeyId": wanted["kmsKeyArn"]} if "kmsKeyArn" in wanted else {}
    return {"Enabled": wanted["enabled"], **key}


def _set_recovery(dynamodb: Any, name: str, inputs: Values) -> None:
    wanted = inputs.get("pointInTimeRecovery", {"enabled": False})["enabled"]
    dynamodb.update_continuous_backups(
        TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": wanted}
    )


def _read(dynamodb: Any, id: str, inputs: Values) -> Found | None:
    try:
        table = dynamodb.describe_table(TableName=id)["Table"]
    except dynamodb.exceptions.ResourceNotFoundException:
        return None
    backups = dynamodb.describe_continuous_backups(TableName=id)["ContinuousBackupsDescription"]
    keys = {key["KeyType"]: key["AttributeName"] for key in table["KeySchema"]}
    found = {
        "name": id,
        "billingMode": table["BillingModeSummary"]["BillingMode"],
        "hashKey": keys["HASH"],
        "attributes": [
            {"name": each["AttributeName"], "type": each["AttributeType"]} for each in table["AttributeDefinitions"]
        ],
        "localSecondaryIndexes": [
            {
                "name": index["IndexName"],
                "rangeKey": index["KeySchema"][1]["AttributeName"],
                "projectionType": index["Projection"]["ProjectionType"],
            }
            for index in table.get("LocalSecondaryIndexes") or ()
        ],
        "deletionProtectionEnabled": table["DeletionProtectionEnabled"],
        "pointInTimeRecovery": {
            "enabled": backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
        },
        **tags_of(dynamodb.list_tags_of_resource(ResourceArn=table["TableArn"])["Tags"]),
    }
    if found["billingMode"] == "PROVISIONED":
        units = table["ProvisionedThroughput"]
        found |= {"readCapacity": units["ReadCapacityUnits"], "writeCapacity": units["WriteCapacityUnits"]}
    elif ceiling := table.get("OnDemandThroughput"):
        found["onDemandThroughput"] = pulumi_form(ceiling, {})
    encryption = table.get("SSEDescription", {})
    if encryption.get("Status") in ("ENABLED", "UPDATING", "ENABLING"):
        found["serverSideEncryption"] = {"enabled": True, "kmsKeyArn": encryption["KMSMasterKeyArn"]}
    if "RANGE" in keys:
        found["rangeKey"] = keys["RANGE"]
    if "region" in inputs:
        found["region"] = inputs["region"]
    return Found(_canonical(found), {"arn": table["TableArn"]})


def _update(dynamodb: Any, id: str, before: Values, inputs: Values) -> None:
    protected = inputs.get("deletionProtectionEnabled", False)
    if protected != before.get("deletionProtectionEnabled", False):
        dynamodb.update_table(TableName=id, DeletionProtectionEnabled=protected)
    if any(inputs.get(name) != before.get(name) for name in _PAYMENT):
        dynamodb.update_table(TableName=id, BillingMode=inputs["billingMode"], **_throughput(inputs))
    if inputs.get("serverSideEncryption") != before.get("serverSideEncryption"):
        dynamodb.update_table(TableName=id, SSESpecification=_encryption(inputs))
    _set_recovery(dynamodb, id, inputs)
    arn = dynamodb.describe_table(TableName=id)["Table"]["TableArn"]
    old, new = before.get("tags", {}), inputs.get("tags", {})
    if gone := sorted(old.keys() - new.keys()):
        dynamodb.untag_resource(ResourceArn=arn, TagKeys=gone)
    if new:
        dynamodb.tag_resource(ResourceArn=arn, Tags=tag_list(new))


def _delete(dynamodb: Any, id: str, inputs: Values) -> None:
    try:
        dynamodb.delete_table(TableName=id)
    except dynamodb.exceptions.ResourceNotFoundException:
        return


def _canonical(values: dict[str, Any]) -> dict[str, Any]:
    """Attributes and indexes are sets; protection that is off and recovery that is off are the defaults."""
    kept = dict(values)
    for name in ("attributes", "localSecondaryIndexes"):
        kept[name] = sorted(kept.get(name) or (), key=lambda each: str(each["name"]))
        if not kept[name]:
            del kept[name]
    if not kept.get("deletionProtectionEnabled"):
        kept.pop("deletionProtectionEnabled", None)
    if not kept.get("pointInTimeRecovery", {}).get("enabled"):
        kept.pop("pointInTimeRecovery", None)
    return kept


KINDS = {
    "aws:dynamodb/table:Table": Kind(
        shape={
            "name": str,
            "region": str,
            "billingMode": str,
            "readCapacity": int,
            "writeCapacity": int,
            "onDemandThroughput": {"maxReadRequestUnits": int, "maxWriteRequestUnits": int},
            "serverSideEncryption": {"enabled": bool, "kmsKeyArn": str},
            "hashKey": str,
            "rangeKey": str,
            "attributes": [{"name": str, "type": str}],
            "localSecondaryIndexes": [{"name": str, "rangeKey": str, "projectionType": str}],
            "pointInTimeRecovery": {"enabled": bool},
            "deletionProtectionEnabled": bool,
            "tags": {"*": str},
        },
        needed=("name", "hashKey", "attributes", "billingMode"),
        replaces=("name", "region", "hashKey", "rangeKey", "localSecondaryIndexes"),
        computed=("arn",),
        create=_create,
        read=_read,
        update=_update,
        delete=_delete,
        service="dynamodb",
        canonical=_canonical,
    )
}
