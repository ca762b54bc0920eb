"""Converts the declaration of an EMR cluster to the arguments of EMR's `RunJobFlow`. All functions are pure.

https://docs.aws.amazon.com/emr/latest/APIReference/API_RunJobFlow.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployer.platform.aws.names import EMR_TAG

APPLICATIONS = ("Spark",)
ON_DEMAND_STRATEGY, SPOT_STRATEGY = "lowest-price", "price-capacity-optimized"
#: After this many minutes without spot instances, EMR takes on-demand instances: a late job is worse than a dear job.
SPOT_MINUTES, WITHOUT_SPOT = 10, "SWITCH_TO_ON_DEMAND"

IDLE_MINUTES = 60  #: minutes without a step after which a cluster ends

Json = dict[str, Any]

_CRYPTO = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
#: The settings that encrypt the traffic between Spark's processes, also without certificates for TLS, and the files
#: that they spill. YARN makes a secret for each job, and its shuffle service reads these settings from `yarn-site`
#: (https://spark.apache.org/docs/latest/security.html).
CONFIGURATIONS: tuple[Json, ...] = (
    {"Classification": "spark-defaults", "Properties": {**_CRYPTO, "spark.io.encryption.enabled": "true"}},
    {"Classification": "yarn-site", "Properties": _CRYPTO},
)


def security_configuration(key_arn: str | None, certificates: str | None) -> Json:
    """Returns the content of EMR's security configuration.

    Instance metadata needs version 2 and is available over one hop. The key encrypts disks and volumes. `certificates`,
    the s3:// address of a zip file of PEM files, enable TLS between nodes. EMR encrypts disks only with a key of the
    account, and has TLS only with certificates
    (https://docs.aws.amazon.com/emr/latest/ManagementGuide/emr-create-security-configuration.html).
    """
    at_rest: Json = {"S3EncryptionConfiguration": {"EncryptionMode": "SSE-S3"}}
    if key_arn:
        at_rest = {
            "S3EncryptionConfiguration": {"EncryptionMode": "SSE-KMS", "AwsKmsKey": key_arn},
            "LocalDiskEncryptionConfiguration": {
                "EncryptionKeyProviderType": "AwsKms",
                "AwsKmsKey": key_arn,
                "EnableEbsEncryption": True,
            },
        }
    encryption: Json = {
        "EnableAtRestEncryption": True,
        "EnableInTransitEncryption": certificates is not None,
        "AtRestEncryptionConfiguration": at_rest,
    }
    if certificates is not None:
        encryption["InTransitEncryptionConfiguration"] = {
            "TLSCertificateConfiguration": {"CertificateProviderType": "PEM", "S3Object": certificates}
        }
    metadata = {"MinimumInstanceMetadataServiceVersion": 2, "HttpPutResponseHopLimit": 1}
    return {"EncryptionConfiguration": encryption, "InstanceMetadataServiceConfiguration": metadata}


@dataclass(frozen=True, slots=True)
class Shape:
    """The instances of a cluster: one primary instance, and core instances. In fleets, EMR chooses among the types;
    otherwise there is one type."""

    fleets: bool
    primary: tuple[str, ...]
    core: tuple[str, ...]
    on_demand: int
    spot: int
    most: int | None  #: most core and task instances of managed scaling; None: no scaling


def shape_of(options: Mapping[str, Any]) -> Shape:
    """Returns the shape that the options of a cluster of kind emr declare."""
    fleets = options.get("fleets")
    core = tuple(fleets["types"]) if fleets else (options["instance_type"],)
    primary = (options["primary_type"],) if "primary_type" in options else core
    on_demand = fleets.get("on_demand", 0) if fleets else options.get("instances", 1)
    spot = fleets.get("spot", 0) if fleets else 0
    return Shape(fleets is not None, primary, core, on_demand, spot, options.get("max_instances"))


def scaling_limits(shape: Shape) -> Json | None:
    """Returns the `ComputeLimits` of managed scaling; None for a cluster of a fixed size.

    A cluster with spot instances grows only by spot instances.
    """
    if shape.most is None:
        return None
    limits: Json = {
        "UnitType": "InstanceFleetUnits" if shape.fleets else "Instances",
        "MinimumCapacityUnits": shape.on_demand + shape.spot,
        "MaximumCapacityUnits": shape.most,
    }
    if shape.spot:
        limits["MaximumOnDemandCapacityUnits"] = shape.on_demand
    return limits


def idle_minutes(options: Mapping[str, Any], scheduled: bool = False) -> int | None:
    """Returns the minutes without a step after which EMR ends the cluster; None for never. `scheduled` states that
    schedules start jobs on the cluster, which must exist then."""
    declared = options.get("idle_minutes")
    return int(declared) if declared is not None else None if scheduled else IDLE_MINUTES


def job_flow(
    name: str,
    options: Mapping[str, Any],
    service_role: str,
    instance_profile: str,
    log_uri: str,
    tags: Mapping[str, str],
    security: str,
    key_arn: str | None = None,
) -> Json:
    """Returns the arguments of `RunJobFlow` for a cluster that ends after its steps; the caller adds `Steps`.

    `service_role` and `instance_profile` are names or ARNs, `security` is the name of a security configuration, and
    `key_arn` is the ARN of the key that encrypts logs. A cluster that does not end after its steps ends when it is
    idle.
    """
    shape = shape_of(options)
    flow: Json = {
        "Name": name,
        "ReleaseLabel": options["release"],
        "Applications": [{"Name": each} for each in APPLICATIONS],
        "LogUri": log_uri,
        "ServiceRole": service_role,
        "JobFlowRole": instance_profile,
        "VisibleToAllUsers": True,
        "Instances": {
            **(_fleets(shape) if shape.fleets else _groups(shape)),
            **_network(options, shape.fleets),
            "KeepJobFlowAliveWhenNoSteps": False,
            "TerminationProtected": False,
        },
        "SecurityConfiguration": security,
        "Configurations": [
            {"Classification": each["Classification"], "Properties": dict(each["Properties"])}
            for each in CONFIGURATIONS
        ],
        "AutoTerminationPolicy": {"IdleTimeout": IDLE_MINUTES * 60},
        **({"LogEncryptionKmsKeyId": key_arn} if key_arn else {}),
        "Tags": [{"Key": key, "Value": value} for key, value in sorted({**tags, **EMR_TAG}.items())],
    }
    limits = scaling_limits(shape)
    return {**flow, "ManagedScalingPolicy": {"ComputeLimits": limits}} if limits else flow


def _groups(shape: Shape) -> Json:
    sizes = (("MASTER", shape.primary[0], 1), ("CORE", shape.core[0], shape.on_demand))
    return {
        "InstanceGroups": [
            {"InstanceRole": role, "InstanceType": type_, "InstanceCount": number, "Market": "ON_DEMAND"}
            for role, type_, number in sizes
        ]
    }


def _fleets(shape: Shape) -> Json:
    sizes = (("MASTER", shape.primary, 1, 0), ("CORE", shape.core, shape.on_demand, shape.spot))
    return {"InstanceFleets": [_fleet(*each) for each in sizes]}


def _fleet(role: str, types: tuple[str, ...], on_demand: int, spot: int) -> Json:
    launch: Json = {"OnDemandSpecification": {"AllocationStrategy": ON_DEMAND_STRATEGY}}
    if spot:
        launch["SpotSpecification"] = {
            "AllocationStrategy": SPOT_STRATEGY,
            "TimeoutDurationMinutes": SPOT_MINUTES,
            "TimeoutAction": WITHOUT_SPOT,
        }
    return {
        "InstanceFleetType": role,
        "TargetOnDemandCapacity": on_demand,
        "TargetSpotCapacity": spot,
        "InstanceTypeConfigs": [{"InstanceType": each, "WeightedCapacity": 1} for each in types],
        "LaunchSpecifications": launch,
    }


def _network(options: Mapping[str, Any], fleets: bool) -> Json:
    found: Json = {}
    if subnets := options.get("subnets"):
        found = {"Ec2SubnetIds": subnets} if fleets else {"Ec2SubnetId": subnets[0]}
    if groups := options.get("security_groups"):
        found |= {"AdditionalMasterSecurityGroups": groups, "AdditionalSlaveSecurityGroups": groups}
    return found
