"""The type `aws:emrserverless:Application`. Its id is the application's."""

from __future__ import annotations

from typing import Any

from tests.aws_provider.kinds import Found, Kind, Values

_SETTINGS = {
    "releaseLabel": "releaseLabel",
    "architecture": "architecture",
    "autoStartConfiguration": "autoStartConfiguration",
    "autoStopConfiguration": "autoStopConfiguration",
    "maximumCapacity": "maximumCapacity",
    "networkConfiguration": "networkConfiguration",
    "monitoringConfiguration": "monitoringConfiguration",
}


def _settings(inputs: Values) -> dict[str, Any]:
    """What create and update take alike."""
    found = {theirs: inputs[ours] for ours, theirs in _SETTINGS.items() if ours in inputs}
    if "autoStopConfiguration" in found:
        stop = inputs["autoStopConfiguration"]
        found["autoStopConfiguration"] = {
            "enabled": stop["enabled"],
            "idleTimeoutMinutes": stop["idleTimeoutMinutes"],
        }
    if "monitoringConfiguration" in found:
        monitoring = dict(inputs["monitoringConfiguration"])
        logging = monitoring.pop("cloudwatchLoggingConfiguration")
        found["monitoringConfiguration"] = {"cloudWatchLoggingConfiguration": dict(logging), **monitoring}
    found["initialCapacity"] = {
        each["initialCapacityType"]: {
            "workerCount": each["initialCapacityConfig"]["workerCount"],
            "workerConfiguration": dict(each["initialCapacityConfig"]["workerConfiguration"]),
        }
        for each in inputs.get("initialCapacities", ())
    }
    return found


def _create(emr: Any, inputs: Values) -> str:
    made = emr.create_application(
        name=inputs["name"], type=inputs["type"].upper(), tags=inputs.get("tags", {}), **_settings(inputs)
    )
    emr.stop_application(applicationId=made["applicationId"])  # moto starts it at once, AWS with its first job
    return str(made["applicationId"])


def _read(emr: Any, id: str, inputs: Values) -> Found | None:
    try:
        found = emr.get_application(applicationId=id)["application"]
    except emr.exceptions.ResourceNotFoundException:
        return None
    if found["state"] == "TERMINATED":
        return None
    values = {ours: found[theirs] for ours, theirs in _SETTINGS.items() if found.get(theirs)}
    values |= {"name": found["name"], "type": found["type"].lower()}
    if "monitoringConfiguration" in values:
        monitoring = dict(values["monitoringConfiguration"])
        if "cloudWatchLoggingConfiguration" in monitoring:
            monitoring["cloudwatchLoggingConfiguration"] = monitoring.pop("cloudWatchLoggingConfiguration")
        values["monitoringConfiguration"] = monitoring
    if found.get("initialCapacity"):
        values["initialCapacities"] = [
            {
                "initialCapacityType": kind,
                "initialCapacityConfig": {
                    "workerCount": each["workerCount"],
                    "workerConfiguration": {
                        name: item for name, item in each["workerConfiguration"].items() if name in ("cpu", "memory")
                    },
                },
            }
            for kind, each in sorted(found["initialCapacity"].items())
        ]
    if found.get("tags"):
        values["tags"] = found["tags"]
    return Found(values, {"arn": found["arn"]})


def _update(emr: Any, id: str, before: Values, inputs: Values) -> None:
    """As the official provider does: AWS refuses to change an application that is started, but for its tags."""
    if any(before.get(name) != inputs.get(name) for name in (*_SETTINGS, "initialCapacities")):
        emr.update_application(applicationId=id, **_settings(inputs))
    arn = emr.get_application(applicationId=id)["application"]["arn"]
    old, new = before.get("tags", {}), inputs.get("tags", {})
    if gone := sorted(old.keys() - new.keys()):
        emr.untag_resource(resourceArn=arn, tagKeys=gone)
    if new and new != old:
        emr.tag_resource(resourceArn=arn, tags=dict(new))


def _delete(emr: Any, id: str, inputs: Values) -> None:
    try:
        emr.stop_application(applicationId=id)
        emr.delete_application(applicationId=id)
    except emr.exceptions.ResourceNotFoundException:
        return


KINDS = {
    "aws:emrserverless/application:Application": Kind(
        shape={
            "name": str,
            "type": str,
            "releaseLabel": str,
            "architecture": str,
            "autoStartConfiguration": {"enabled": bool},
            "autoStopConfiguration": {"enabled": bool, "idleTimeoutMinutes": int},
            "maximumCapacity": {"cpu": str, "memory": str},
            "networkConfiguration": {"subnetIds": [str], "securityGroupIds": [str]},
            "monitoringConfiguration": {
                "cloudwatchLoggingConfiguration": {"enabled": bool, "logGroupName": str},
                "s3MonitoringConfiguration": {"logUri": str},
            },
            "initialCapacities": [
                {
                    "initialCapacityType": str,
                    "initialCapacityConfig": {
                        "workerCount": int,
                        "workerConfiguration": {"cpu": str, "memory": str},
                    },
                }
            ],
            "tags": {"*": str},
        },
        needed=("name", "type", "releaseLabel"),
        replaces=("name", "type"),
        computed=("arn",),
        create=_create,
        read=_read,
        update=_update,
        delete=_delete,
        service="emr-serverless",
    )
}
