"""The types of `aws:emr`: clusters, by id, and their managed scaling, whose id is the cluster's."""

from __future__ import annotations

import json
from typing import Any

from tests.aws_provider.kinds import Found, Kind, Shape, Values, aws_form, pulumi_form, same_json, tag_list, tags_of

_LIMITS = {"maximumOndemandCapacityUnits": "MaximumOnDemandCapacityUnits"}
_PLACE = {
    "instanceProfile": "IamInstanceProfile",
    "subnetId": "Ec2SubnetId",
    "subnetIds": "RequestedEc2SubnetIds",
}
_KEPT = {
    "logUri": "LogUri",
    "logEncryptionKmsKeyId": "LogEncryptionKmsKeyId",
    "securityConfiguration": "SecurityConfiguration",
}
_GROUPS = ("additionalMasterSecurityGroups", "additionalSlaveSecurityGroups")


def _create(emr: Any, inputs: Values) -> str:
    place = dict(inputs["ec2Attributes"])
    instances: dict[str, Any] = {
        "KeepJobFlowAliveWhenNoSteps": inputs.get("keepJobFlowAliveWhenNoSteps", True),
        "TerminationProtected": False,
        **{name[0].upper() + name[1:]: place[name].split(",") for name in _GROUPS if name in place},
        **({"Ec2SubnetId": place["subnetId"]} if "subnetId" in place else {}),
        **({"Ec2SubnetIds": place["subnetIds"]} if "subnetIds" in place else {}),
    }
    if "coreInstanceFleet" in inputs:
        roles = (("MASTER", inputs["masterInstanceFleet"]), ("CORE", inputs["coreInstanceFleet"]))
        instances["InstanceFleets"] = [_fleet(role, fleet) for role, fleet in roles]
    else:
        groups = (("MASTER", inputs["masterInstanceGroup"]), ("CORE", inputs["coreInstanceGroup"]))
        instances["InstanceGroups"] = [
            {
                "InstanceRole": role,
                "InstanceType": group["instanceType"],
                "InstanceCount": group.get("instanceCount", 1),
                "Market": "ON_DEMAND",
            }
            for role, group in groups
        ]
    idle = inputs.get("autoTerminationPolicy")
    made = emr.run_job_flow(
        Name=inputs["name"],
        ReleaseLabel=inputs["releaseLabel"],
        Applications=[{"Name": name} for name in inputs.get("applications", ())],
        ServiceRole=inputs["serviceRole"],
        JobFlowRole=place["instanceProfile"],
        Instances=instances,
        Tags=tag_list(inputs.get("tags", {})),
        VisibleToAllUsers=True,
        **({"LogUri": inputs["logUri"]} if "logUri" in inputs else {}),
        **({"LogEncryptionKmsKeyId": inputs["logEncryptionKmsKeyId"]} if "logEncryptionKmsKeyId" in inputs else {}),
        **({"SecurityConfiguration": inputs["securityConfiguration"]} if "securityConfiguration" in inputs else {}),
        **({"Configurations": json.loads(inputs["configurationsJson"])} if "configurationsJson" in inputs else {}),
        **({"AutoTerminationPolicy": {"IdleTimeout": idle["idleTimeout"]}} if idle else {}),
    )
    return str(made["JobFlowId"])


def _fleet(role: str, fleet: Values) -> dict[str, Any]:
    launch = {
        name: aws_form(fleet["launchSpecifications"][theirs][0], {})
        for name, theirs in (
            ("OnDemandSpecification", "onDemandSpecifications"),
            ("SpotSpecification", "spotSpecifications"),
        )
        if theirs in fleet["launchSpecifications"]
    }
    return {
        "InstanceFleetType": role,
        "TargetOnDemandCapacity": fleet.get("targetOnDemandCapacity", 0),
        "TargetSpotCapacity": fleet.get("targetSpotCapacity", 0),
        "InstanceTypeConfigs": aws_form(fleet["instanceTypeConfigs"], {}),
        "LaunchSpecifications": launch,
    }


def _live(emr: Any, id: str) -> Any:
    try:
        found = emr.describe_cluster(ClusterId=id)["Cluster"]
    except emr.exceptions.InvalidRequestException:
        return None
    return None if found["Status"]["State"].startswith("TERMINAT") else found


def _read(emr: Any, id: str, inputs: Values) -> Found | None:
    cluster = _live(emr, id)
    if cluster is None:
        return None
    attributes = cluster["Ec2InstanceAttributes"]
    place = {ours: attributes[theirs] for ours, theirs in _PLACE.items() if attributes.get(theirs)}
    if "subnetIds" in place:
        place.pop("subnetId", None)  # the one of them that EMR chose
    place |= {
        name: ",".join(attributes[name[0].upper() + name[1:]])
        for name in _GROUPS
        if attributes.get(name[0].upper() + name[1:])
    }
    found = {
        "name": cluster["Name"],
        "releaseLabel": cluster["ReleaseLabel"],
        "applications": [each["Name"] for each in cluster["Applications"]],
        "serviceRole": cluster["ServiceRole"],
        "ec2Attributes": place,
        "keepJobFlowAliveWhenNoSteps": not cluster["AutoTerminate"],
        **{ours: cluster[theirs] for ours, theirs in _KEPT.items() if cluster.get(theirs)},
        **tags_of(cluster["Tags"]),
        **_instances(emr, id),
    }
    if cluster.get("Configurations"):
        found["configurationsJson"] = same_json(json.dumps(cluster["Configurations"]))
    idle = emr.get_auto_termination_policy(ClusterId=id).get("AutoTerminationPolicy")
    if idle:
        found["autoTerminationPolicy"] = {"idleTimeout": idle["IdleTimeout"]}
    return Found(found, {"arn": cluster["ClusterArn"]})


def _instances(emr: Any, id: str) -> dict[str, Any]:
    fleets = {each["InstanceFleetType"]: each for each in emr.list_instance_fleets(ClusterId=id)["InstanceFleets"]}
    if fleets:
        return {
            "masterInstanceFleet": _found_fleet(fleets["MASTER"]),
            "coreInstanceFleet": _found_fleet(fleets["CORE"]),
        }
    groups = {each["InstanceGroupType"]: each for each in emr.list_instance_groups(ClusterId=id)["InstanceGroups"]}
    return {
        "masterInstanceGroup": {"instanceType": groups["MASTER"]["InstanceType"]},
        "coreInstanceGroup": {
            "instanceType": groups["CORE"]["InstanceType"],
            "instanceCount": groups["CORE"]["RequestedInstanceCount"],
        },
    }


def _found_fleet(fleet: Values) -> dict[str, Any]:
    launch = {
        f"{name[0].lower()}{name[1:]}s": [pulumi_form(specification, {})]
        for name, specification in fleet["LaunchSpecifications"].items()
    }
    return {
        "targetOnDemandCapacity": fleet["TargetOnDemandCapacity"],
        "targetSpotCapacity": fleet["TargetSpotCapacity"],
        "instanceTypeConfigs": [
            {"instanceType": each["InstanceType"], "weightedCapacity": each["WeightedCapacity"]}
            for each in fleet["InstanceTypeSpecifications"]
        ],
        "launchSpecifications": launch,
    }


def _update(emr: Any, id: str, before: Values, inputs: Values) -> None:
    count = inputs.get("coreInstanceGroup", {}).get("instanceCount")
    if count is not None and count != before["coreInstanceGroup"].get("instanceCount"):
        groups = emr.list_instance_groups(ClusterId=id)["InstanceGroups"]
        core = next(each for each in groups if each["InstanceGroupType"] == "CORE")
        emr.modify_instance_groups(
            ClusterId=id, InstanceGroups=[{"InstanceGroupId": core["Id"], "InstanceCount": count}]
        )
    if idle := inputs.get("autoTerminationPolicy"):
        emr.put_auto_termination_policy(ClusterId=id, AutoTerminationPolicy={"IdleTimeout": idle["idleTimeout"]})
    elif "autoTerminationPolicy" in before:
        emr.remove_auto_termination_policy(ClusterId=id)
    old, new = before.get("tags", {}), inputs.get("tags", {})
    if gone := sorted(old.keys() - new.keys()):
        emr.remove_tags(ResourceId=id, TagKeys=gone)
    if new != old:
        emr.add_tags(ResourceId=id, Tags=tag_list(new))


def _delete(emr: Any, id: str, inputs: Values) -> None:
    if _live(emr, id) is not None:
        emr.terminate_job_flows(JobFlowIds=[id])


def _put_scaling(emr: Any, inputs: Values) -> str:
    limits = aws_form(inputs["computeLimits"][0], _LIMITS)
    emr.put_managed_scaling_policy(ClusterId=inputs["clusterId"], ManagedScalingPolicy={"ComputeLimits": limits})
    return str(inputs["clusterId"])


def _read_scaling(emr: Any, id: str, inputs: Values) -> Found | None:
    if _live(emr, id) is None:
        return None
    policy = emr.get_managed_scaling_policy(ClusterId=id).get("ManagedScalingPolicy")
    if not policy:
        return None
    return Found({"clusterId": id, "computeLimits": [pulumi_form(policy["ComputeLimits"], _LIMITS)]}, {})


def _delete_scaling(emr: Any, id: str, inputs: Values) -> None:
    if _live(emr, id) is not None:
        emr.remove_managed_scaling_policy(ClusterId=id)


def _canonical(values: dict[str, Any]) -> dict[str, Any]:
    text = values.get("configurationsJson")
    return {**values, "configurationsJson": same_json(text)} if text else values


def _create_security(emr: Any, inputs: Values) -> str:
    emr.create_security_configuration(Name=inputs["name"], SecurityConfiguration=inputs["configuration"])
    return str(inputs["name"])


def _read_security(emr: Any, id: str, inputs: Values) -> Found | None:
    try:
        found = emr.describe_security_configuration(Name=id)
    except emr.exceptions.InvalidRequestException:
        return None
    return Found({"name": id, "configuration": same_json(found["SecurityConfiguration"])}, {})


_FLEET: Shape = {
    "targetOnDemandCapacity": int,
    "targetSpotCapacity": int,
    "instanceTypeConfigs": [{"instanceType": str, "weightedCapacity": int}],
    "launchSpecifications": {
        "onDemandSpecifications": [{"allocationStrategy": str}],
        "spotSpecifications": [{"allocationStrategy": str, "timeoutDurationMinutes": int, "timeoutAction": str}],
    },
}

KINDS = {
    "aws:emr/cluster:Cluster": Kind(
        shape={
            "name": str,
            "releaseLabel": str,
            "applications": [str],
            "serviceRole": str,
            "ec2Attributes": {
                "instanceProfile": str,
                "subnetId": str,
                "subnetIds": [str],
                **dict.fromkeys(_GROUPS, str),
            },
            "masterInstanceGroup": {"instanceType": str},
            "coreInstanceGroup": {"instanceType": str, "instanceCount": int},
            "masterInstanceFleet": _FLEET,
            "coreInstanceFleet": _FLEET,
            "logUri": str,
            "logEncryptionKmsKeyId": str,
            "securityConfiguration": str,
            "configurationsJson": str,
            "autoTerminationPolicy": {"idleTimeout": int},
            "keepJobFlowAliveWhenNoSteps": bool,
            "tags": {"*": str},
        },
        needed=("name", "releaseLabel", "serviceRole", "ec2Attributes"),
        replaces=(
            "name",
            "releaseLabel",
            "applications",
            "serviceRole",
            "ec2Attributes",
            "masterInstanceGroup",
            "coreInstanceGroup.instanceType",
            "masterInstanceFleet",
            "coreInstanceFleet",
            "logUri",
            "logEncryptionKmsKeyId",
            "securityConfiguration",
            "configurationsJson",
            "keepJobFlowAliveWhenNoSteps",
        ),
        computed=("arn",),
        create=_create,
        read=_read,
        update=_update,
        delete=_delete,
        service="emr",
        canonical=_canonical,
    ),
    "aws:emr/securityConfiguration:SecurityConfiguration": Kind(
        shape={"name": str, "configuration": str},
        needed=("name", "configuration"),
        replaces=("name", "configuration"),
        computed=(),
        create=_create_security,
        read=_read_security,
        update=lambda emr, id, before, inputs: None,
        delete=lambda emr, id, inputs: emr.delete_security_configuration(Name=id),
        service="emr",
        canonical=lambda values: {**values, "configuration": same_json(values["configuration"])},
    ),
    "aws:emr/managedScalingPolicy:ManagedScalingPolicy": Kind(
        shape={
            "clusterId": str,
            "computeLimits": [
                {
                    "unitType": str,
                    "minimumCapacityUnits": int,
                    "maximumCapacityUnits": int,
                    "maximumOndemandCapacityUnits": int,
                }
            ],
        },
        needed=("clusterId", "computeLimits"),
        replaces=("clusterId", "computeLimits"),
        computed=(),
        create=_put_scaling,
        read=_read_scaling,
        update=lambda emr, id, before, inputs: None,
        delete=_delete_scaling,
        service="emr",
    ),
}
