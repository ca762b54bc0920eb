"""The clusters of a lake on S3 that run on EMR: their roles, and the cluster, or what a job starts its own from."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_aws as aws

from deployer.components.roles import declare_role
from deployer.compute import emr_flow
from deployer.compute.aws_names import name_on_aws, own_name
from deployer.compute.emr_access import (
    emr_service_policy_arn,
    emr_trust,
    instance_policy,
    instance_trust,
    pass_policy,
    volumes_policy,
)
from deployer.specs.model import Cluster, InstanceSpec


class EmrCluster(pulumi.ComponentResource):
    """Roles for EMR and for the instances. A `long` cluster is there; of another, `exported` has the template."""

    def __init__(
        self,
        instance: InstanceSpec,
        cluster: Cluster,
        table_arn: Any,
        tags: Mapping[str, str],
        key_arn: Any,
        scheduled: bool,
    ) -> None:
        super().__init__("deployer:aws:EmrCluster", cluster.name)
        self.own = pulumi.ResourceOptions(parent=self)
        self.spec, self.tags, self.key_arn, self.scheduled = cluster, tags, key_arn, scheduled
        self.name = name_on_aws(instance.root, instance.name, cluster.name)
        self.options: Mapping[str, Any] = cluster.options
        logs = str(self.options.get("log_uri") or f"{instance.root.rstrip('/')}/_job-logs/{cluster.name}")
        self.log_uri = f"{logs.rstrip('/')}/"  # as EMR tells it
        about = f"clusters {cluster.name} of the lake {instance.name}"
        needed = [self._instances_role(instance, table_arn, key_arn, f"Instances of the {about}")]
        needed += self._service_role(instance, table_arn, f"EMR for the {about}")
        self.security = self._security(instance)
        found = {"kind": "emr", "role": self.role_arn, "service_role": self.service_role.arn, "logs": self.log_uri}
        self.cluster_arn: Any = None  # of one that is there for a run alone nobody knows it yet
        if self.options.get("lifetime", "run") == "long":
            long = self._cluster(needed)
            self.cluster_arn = long.arn
            self.exported = {**found, "lifetime": "long", "cluster": long.id}
        else:
            self.exported = {**found, "lifetime": "run", "template": self._template()}
        self.register_outputs(self.exported)

    def _instances_role(
        self, instance: InstanceSpec, table_arn: Any, key_arn: Any, description: str
    ) -> pulumi.Resource:
        """Jobs act in this role. One that is declared gets a profile alone."""
        cluster = self.spec.name
        self.own_role: aws.iam.Role | None = None
        role_name: Any = None
        needed: pulumi.Resource | None = None
        if (declared := self.options.get("execution_role")) is not None:
            self.role_arn: Any = declared
            role_name = declared.rpartition("/")[2]
        else:
            role = self.own_role = declare_role(
                f"role/{cluster}",
                instance,
                cluster,
                description,
                pulumi.Output.from_input(table_arn).apply(instance_trust),
                self.tags,
                self.own,
            )
            self.role_arn, role_name = role.arn, role.name
            needed = aws.iam.RolePolicy(
                f"lake/{cluster}",
                name="lake",
                role=role.name,
                policy=pulumi.Output.all(table_arn, key_arn).apply(
                    lambda arns: json.dumps(
                        instance_policy(instance.root, arns[0], self.log_uri, arns[1], instance.aws.emr_certificates)
                    )
                ),
                opts=self.own,
            )
        self.profile = aws.iam.InstanceProfile(
            f"instances/{cluster}",
            name=own_name(instance.root, instance.name, cluster),
            role=role_name,
            tags=self.tags,
            opts=self.own,
        )
        return needed or self.profile

    def _service_role(self, instance: InstanceSpec, table_arn: Any, description: str) -> list[pulumi.Resource]:
        cluster = self.spec.name
        self.service_role = declare_role(
            f"emr-role/{cluster}",
            instance,
            f"{cluster}/emr",  # no cluster's name has a slash
            description,
            pulumi.Output.from_input(table_arn).apply(emr_trust),
            self.tags,
            self.own,
        )
        volumes = None
        if self.key_arn is not None:
            volumes = aws.iam.RolePolicy(
                f"volumes/{cluster}",
                name="volumes",
                role=self.service_role.name,
                policy=pulumi.Output.from_input(self.key_arn).apply(_json(volumes_policy)),
                opts=self.own,
            )
        return [
            *([volumes] if volumes else []),
            aws.iam.RolePolicyAttachment(
                f"emr/{cluster}",
                role=self.service_role.name,
                policy_arn=pulumi.Output.from_input(table_arn).apply(emr_service_policy_arn),
                opts=self.own,
            ),
            aws.iam.RolePolicy(
                f"instances-role/{cluster}",
                name="instances-role",
                role=self.service_role.name,
                policy=pulumi.Output.from_input(self.role_arn).apply(_json(pass_policy)),
                opts=self.own,
            ),
        ]

    def _security(self, instance: InstanceSpec) -> aws.emr.SecurityConfiguration:
        """What is encrypted, and how instances tell of themselves. EMR changes none: another text has another name."""
        text = pulumi.Output.from_input(self.key_arn).apply(
            lambda key: json.dumps(emr_flow.security_configuration(key, instance.aws.emr_certificates), sort_keys=True)
        )
        return aws.emr.SecurityConfiguration(
            f"security/{self.spec.name}",
            name=text.apply(lambda each: own_name(instance.root, instance.name, f"{self.spec.name}/{each}")),
            configuration=text,
            opts=self.own,
        )

    def _cluster(self, needed: Sequence[pulumi.Resource]) -> aws.emr.Cluster:
        shape = emr_flow.shape_of(self.options)
        instances = _fleets(shape) if shape.fleets else _groups(shape)
        limits = emr_flow.scaling_limits(shape)
        idle = emr_flow.idle_minutes(self.options, self.scheduled)
        cluster = aws.emr.Cluster(
            f"cluster/{self.spec.name}",
            name=self.name,
            release_label=self.options["release"],
            applications=list(emr_flow.APPLICATIONS),
            service_role=self.service_role.arn,
            ec2_attributes={"instance_profile": self.profile.arn, **_network(self.options, shape.fleets)},
            log_uri=self.log_uri,
            log_encryption_kms_key_id=self.key_arn,
            security_configuration=self.security.name,
            configurations_json=json.dumps(emr_flow.CONFIGURATIONS),
            auto_termination_policy={"idle_timeout": idle * 60} if idle else None,
            keep_job_flow_alive_when_no_steps=True,
            tags={**self.tags, **emr_flow.EMR_TAG},
            opts=pulumi.ResourceOptions.merge(
                self.own,
                # EMR changes these as it scales
                pulumi.ResourceOptions(depends_on=[*needed], ignore_changes=_SCALED if limits else None),
            ),
            **instances,
        )
        if limits:
            aws.emr.ManagedScalingPolicy(
                f"scaling/{self.spec.name}",
                cluster_id=cluster.id,
                compute_limits=[
                    {
                        "unit_type": limits["UnitType"],
                        "minimum_capacity_units": limits["MinimumCapacityUnits"],
                        "maximum_capacity_units": limits["MaximumCapacityUnits"],
                        "maximum_ondemand_capacity_units": limits.get("MaximumOnDemandCapacityUnits"),
                    }
                ],
                # A policy changes by another, and taking the old one away later would take the new one
                opts=pulumi.ResourceOptions.merge(self.own, pulumi.ResourceOptions(delete_before_replace=True)),
            )
        return cluster

    def _template(self) -> Any:
        known = pulumi.Output.all(self.service_role.arn, self.profile.arn, self.security.name, self.key_arn)
        return known.apply(
            lambda each: emr_flow.job_flow(
                self.name, self.options, each[0], each[1], self.log_uri, self.tags, each[2], each[3]
            )
        )


_SCALED = [
    "coreInstanceGroup.instanceCount",
    "coreInstanceFleet.targetOnDemandCapacity",
    "coreInstanceFleet.targetSpotCapacity",
]


def _groups(shape: emr_flow.Shape) -> dict[str, Any]:
    return {
        "master_instance_group": {"instance_type": shape.primary[0]},
        "core_instance_group": {"instance_type": shape.core[0], "instance_count": shape.on_demand},
    }


def _fleets(shape: emr_flow.Shape) -> dict[str, Any]:
    return {
        "master_instance_fleet": _fleet(shape.primary, 1, 0),
        "core_instance_fleet": _fleet(shape.core, shape.on_demand, shape.spot),
    }


def _fleet(types: tuple[str, ...], on_demand: int, spot: int) -> dict[str, Any]:
    launch: dict[str, Any] = {"on_demand_specifications": [{"allocation_strategy": emr_flow.ON_DEMAND_STRATEGY}]}
    if spot:
        launch["spot_specifications"] = [
            {
                "allocation_strategy": emr_flow.SPOT_STRATEGY,
                "timeout_duration_minutes": emr_flow.SPOT_MINUTES,
                "timeout_action": emr_flow.WITHOUT_SPOT,
            }
        ]
    return {
        "instance_type_configs": [{"instance_type": each, "weighted_capacity": 1} for each in types],
        "launch_specifications": launch,
        "target_on_demand_capacity": on_demand,
        "target_spot_capacity": spot,
    }


def _network(options: Mapping[str, Any], fleets: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if subnets := options.get("subnets"):
        found = {"subnet_ids": subnets} if fleets else {"subnet_id": subnets[0]}
    if groups := options.get("security_groups"):
        joined = ",".join(groups)
        found |= {"additional_master_security_groups": joined, "additional_slave_security_groups": joined}
    return found


def _json(policy: Any) -> Any:
    return lambda arn: json.dumps(policy(arn))
