"""What is asked of EMR's `RunJobFlow`, checked against the API's own description."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from deployer.compute.emr.flow import idle_minutes, job_flow, scaling_limits, security_configuration, shape_of

GROUPS = {"release": "emr-7.12.0", "instance_type": "r7g.xlarge", "instances": 2}
FLEETS = {"release": "emr-7.12.0", "fleets": {"types": ["r7g.xlarge", "r6g.xlarge"], "on_demand": 1, "spot": 3}}
ON_DEMAND = {"release": "emr-7.12.0", "fleets": {"types": ["r7g.xlarge"], "on_demand": 2}}
NETWORK = {"subnets": ["subnet-1"], "security_groups": ["sg-1"]}


def flow(options: dict[str, Any]) -> dict[str, Any]:
    return job_flow("demo", options, "service", "profile", "s3://logs/", {"team": "data"}, "security", "key")


@pytest.mark.parametrize(
    "options",
    [
        GROUPS,
        {**GROUPS, **NETWORK, "max_instances": 9, "primary_type": "m7g.large"},
        FLEETS,
        {**FLEETS, **NETWORK, "max_instances": 9},
        ON_DEMAND,
    ],
)
def test_the_api_takes_it(options: dict[str, Any]) -> None:
    shape = botocore.session.get_session().get_service_model("emr").operation_model("RunJobFlow").input_shape
    assert shape is not None
    report = ParamValidator().validate(flow(options), shape)
    assert not report.has_errors(), report.generate_report()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (GROUPS, None),
        ({**GROUPS, "max_instances": 9}, ("Instances", 2, 9, None)),
        ({**FLEETS, "max_instances": 9}, ("InstanceFleetUnits", 4, 9, 1)),
        ({**ON_DEMAND, "max_instances": 9}, ("InstanceFleetUnits", 2, 9, None)),
    ],
)
def test_limits_of_scaling(options: dict[str, Any], expected: tuple[str, int, int, int | None] | None) -> None:
    limits = scaling_limits(shape_of(options))
    names = ("UnitType", "MinimumCapacityUnits", "MaximumCapacityUnits", "MaximumOnDemandCapacityUnits")
    assert (limits and tuple(limits.get(name) for name in names)) == expected


def test_what_spark_says_to_itself_is_encrypted_and_an_idle_cluster_ends() -> None:
    found = flow(GROUPS)
    settings = {each["Classification"]: each["Properties"] for each in found["Configurations"]}
    assert settings["spark-defaults"]["spark.network.crypto.enabled"] == "true"
    assert settings["spark-defaults"]["spark.authenticate"] == settings["yarn-site"]["spark.authenticate"] == "true"
    assert found["AutoTerminationPolicy"] == {"IdleTimeout": 3600}
    assert (found["SecurityConfiguration"], found["LogEncryptionKmsKeyId"]) == ("security", "key")


@pytest.mark.parametrize("key", [None, "arn:aws:kms:eu-central-1:123456789012:key/1"])
@pytest.mark.parametrize("certificates", [None, "s3://lakes/certificates.zip"])
def test_security(key: str | None, certificates: str | None) -> None:
    found = security_configuration(key, certificates)
    metadata = {"MinimumInstanceMetadataServiceVersion": 2, "HttpPutResponseHopLimit": 1}
    assert found["InstanceMetadataServiceConfiguration"] == metadata
    encryption = found["EncryptionConfiguration"]
    disks = encryption["AtRestEncryptionConfiguration"].get("LocalDiskEncryptionConfiguration")
    assert (disks and (disks["AwsKmsKey"], disks["EnableEbsEncryption"])) == (key and (key, True))
    assert encryption["EnableInTransitEncryption"] is (certificates is not None)
    assert ("InTransitEncryptionConfiguration" in encryption) is (certificates is not None)


@pytest.mark.parametrize(
    ("options", "scheduled", "expected"),
    [({}, False, 60), ({}, True, None), ({"idle_minutes": 5}, True, 5), ({"idle_minutes": 5}, False, 5)],
)
def test_when_an_idle_cluster_ends(options: dict[str, Any], scheduled: bool, expected: int | None) -> None:
    assert idle_minutes(options, scheduled) == expected


def test_the_primary_instance_may_be_of_another_type() -> None:
    groups = flow({**GROUPS, "primary_type": "m7g.large"})["Instances"]["InstanceGroups"]
    assert {each["InstanceRole"]: each["InstanceType"] for each in groups} == {
        "MASTER": "m7g.large",
        "CORE": "r7g.xlarge",
    }


def test_spot_instances_have_others_in_their_place_when_there_are_none() -> None:
    primary, core = flow(FLEETS)["Instances"]["InstanceFleets"]
    assert "SpotSpecification" not in primary["LaunchSpecifications"]
    assert core["LaunchSpecifications"]["SpotSpecification"]["TimeoutAction"] == "SWITCH_TO_ON_DEMAND"


def test_a_cluster_of_a_run_ends_with_its_steps() -> None:
    assert flow(GROUPS)["Instances"]["KeepJobFlowAliveWhenNoSteps"] is False
