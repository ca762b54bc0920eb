"""Clusters on EMR: their roles, and a long-running cluster or the template from which a job starts its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_aws as aws

from deployer.components.clusters.args import ClusterArgs
from deployer.components.context import after
from deployer.components.roles import LakeRole, LakeRoleArgs
from deployer.compute.emr import flow as emr_flow
from deployer.compute.iam.emr import (
    emr_service_policy_arn,
    emr_trust,
    instance_policy,
    instance_trust,
    pass_policy,
    volumes_policy,
)
from deployer.platform.aws.names import EMR_TAG, name_on_aws, own_name
from deployer.specs.model import InstanceSpec


class EmrCluster(pulumi.ComponentResource):
    """Roles for EMR and for the instances, and the cluster itself if its lifetime is `long`; otherwise `exported` has
    its template."""

    name: str  #: the cluster's name on AWS
    role_arn: pulumi.Input[str]
    own_role: LakeRole | None  #: None where the specs or the program name an existing role
    cluster_arn: pulumi.Output[str] | None  #: None for a cluster that a run starts
    exported: Mapping[str, Any]  #: the values that jobs are started with

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("deployer:aws:EmrCluster", name, None, opts)
        self._own, self._args, self._label = pulumi.ResourceOptions(parent=self), args, args.label
        self._tags, self._key_arn = args.context.tags, args.context.key_arn
        instance, cluster = args.context.instance, args.spec
        self.name = name_on_aws(instance.root, instance.name, cluster.name)
        self._options = args.options()
        logs = str(self._options.get("log_uri") or f"{instance.root.rstrip('/')}/_job-logs/{cluster.name}")
        self.log_uri = f"{logs.rstrip('/')}/"  # with the final slash, as EMR returns it
        about = f"clusters {cluster.name} of the lake {instance.name}"
        needed = [self._instances_role(instance, f"Instances of the {about}")]
        needed += self._service_role(instance, f"EMR for the {about}")
        self.security = self._security(instance)
        found = {"kind": "emr", "role": self.role_arn, "service_role": self.service_role.arn, "logs": self.log_uri}
        self.cluster_arn = None
        if self._options.get("lifetime", "run") == "long":
            long = self._cluster(needed)
            self.cluster_arn = long.arn
            self.exported = {**found, "lifetime": "long", "cluster": long.id}
        else:
            self.exported = {**found, "lifetime": "run", "template": self._template()}
        self.register_outputs(self.exported)

    def _instances_role(self, instance: InstanceSpec, description: str) -> pulumi.Resource:
        """Declares the role of jobs, if no role is given, and the instance profile; returns what the cluster waits
        for."""
        label = self._label
        table_arn = pulumi.Output.from_input(self._args.table_arn)
        self.own_role = None
        role_name: pulumi.Input[str]
        needed: pulumi.Resource | None = None
        if (declared := self._options.get("execution_role")) is not None:
            self.role_arn = declared
            role_name = pulumi.Output.from_input(declared).apply(lambda arn: str(arn).rpartition("/")[2])
        else:
            trust = table_arn.apply(instance_trust)
            role = self.own_role = LakeRole(
                f"role/{label}",
                LakeRoleArgs(instance, self._args.spec.name, description, trust, self._tags),
                self._own,
            )
            self.role_arn, role_name = role.arn, role.name
            needed = aws.iam.RolePolicy(
                f"lake/{label}",
                name="lake",
                role=role.name,
                policy=pulumi.Output.all(table_arn, self._key_arn).apply(
                    lambda arns: json.dumps(
                        instance_policy(instance.root, arns[0], self.log_uri, arns[1], instance.aws.emr_certificates)
                    )
                ),
                opts=self._own,
            )
        self.profile = aws.iam.InstanceProfile(
            f"instances/{label}",
            name=own_name(instance.root, instance.name, self._args.spec.name),
            role=role_name,
            tags=self._tags,
            opts=self._own,
        )
        return needed or self.profile

    def _service_role(self, instance: InstanceSpec, description: str) -> list[pulumi.Resource]:
        label = self._label
        table_arn = pulumi.Output.from_input(self._args.table_arn)
        what = f"{self._args.spec.name}/emr"  # the name of a cluster has no slash
        self.service_role = LakeRole(
            f"emr-role/{label}",
            LakeRoleArgs(instance, what, description, table_arn.apply(emr_trust), self._tags),
            self._own,
        )
        volumes = None
        if self._key_arn is not None:
            volumes = aws.iam.RolePolicy(
                f"volumes/{label}",
                name="volumes",
                role=self.service_role.name,
                policy=pulumi.Output.from_input(self._key_arn).apply(_json(volumes_policy)),
                opts=self._own,
            )
        return [
            *([volumes] if volumes else []),
            aws.iam.RolePolicyAttachment(
                f"emr/{label}",
                role=self.service_role.name,
                policy_arn=table_arn.apply(emr_service_policy_arn),
                opts=self._own,
            ),
            aws.iam.RolePolicy(
                f"instances-role/{label}",
                name="instances-role",
                role=self.service_role.name,
                policy=pulumi.Output.from_input(self.role_arn).apply(_json(pass_policy)),
                opts=self._own,
            ),
        ]

    def _security(self, instance: InstanceSpec) -> aws.emr.SecurityConfiguration:
        """Returns the settings of encryption and of instance metadata. EMR cannot change a configuration, so the name
        depends on its text: a changed text makes a new configuration."""
        text = pulumi.Output.from_input(self._key_arn).apply(
            lambda key: json.dumps(emr_flow.security_configuration(key, instance.aws.emr_certificates), sort_keys=True)
        )
        return aws.emr.SecurityConfiguration(
            f"security/{self._label}",
            name=text.apply(lambda each: own_name(instance.root, instance.name, f"{self._args.spec.name}/{each}")),
            configuration=text,
            opts=self._own,
        )

    def _cluster(self, needed: Sequence[pulumi.Resource]) -> aws.emr.Cluster:
        shape = emr_flow.shape_of(self._options)
        instances = _fleets(shape) if shape.fleets else _groups(shape)
        limits = emr_flow.scaling_limits(shape)
        idle = emr_flow.idle_minutes(self._options, self._args.scheduled)
        cluster = aws.emr.Cluster(
            f"cluster/{self._label}",
            name=self.name,
            release_label=self._options["release"],
            applications=list(emr_flow.APPLICATIONS),
            service_role=self.service_role.arn,
            ec2_attributes={"instance_profile": self.profile.arn, **_network(self._options, shape.fleets)},
            log_uri=self.log_uri,
            log_encryption_kms_key_id=self._key_arn,
            security_configuration=self.security.name,
            configurations_json=json.dumps(emr_flow.CONFIGURATIONS),
            auto_termination_policy={"idle_timeout": idle * 60} if idle else None,
            keep_job_flow_alive_when_no_steps=True,
            tags={**self._tags, **EMR_TAG},
            # EMR changes these values as it scales
            opts=pulumi.ResourceOptions.merge(
                after(self._own, *needed), pulumi.ResourceOptions(ignore_changes=_SCALED if limits else None)
            ),
            **instances,
        )
        if limits:
            aws.emr.ManagedScalingPolicy(
                f"scaling/{self._label}",
                cluster_id=cluster.id,
                compute_limits=[
                    {
                        "unit_type": limits["UnitType"],
                        "minimum_capacity_units": limits["MinimumCapacityUnits"],
                        "maximum_capacity_units": limits["MaximumCapacityUnits"],
                        "maximum_ondemand_capacity_units": limits.get("MaximumOnDemandCapacityUnits"),
                    }
                ],
                # A changed policy replaces the old one. If the old one were deleted later, that would delete the new
                # one.
                opts=pulumi.ResourceOptions.merge(self._own, pulumi.ResourceOptions(delete_before_replace=True)),
            )
        return cluster

    def _template(self) -> Any:
        known = pulumi.Output.all(
            self.service_role.arn, self.profile.arn, self.security.name, self._key_arn, self._options
        )
        return known.apply(
            lambda each: emr_flow.job_flow(
                self.name, each[4], each[0], each[1], self.log_uri, self._tags, each[2], each[3]
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
        joined = pulumi.Output.all(*groups).apply(",".join)
        found |= {"additional_master_security_groups": joined, "additional_slave_security_groups": joined}
    return found


def _json(policy: Any) -> Any:
    return lambda arn: json.dumps(policy(arn))
