"""Clusters on EMR Serverless: for each an application, its logs, and the role of its jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws

from deployer.components.clusters.args import ClusterArgs
from deployer.components.roles import LakeRole, LakeRoleArgs
from deployer.compute.clusters import most_workers
from deployer.compute.iam.jobs import CORES, LOG_DAYS, MEMORY, capacity, job_policy, trust_policy, worker_size
from deployer.platform.aws.names import lake_id, name_on_aws, own_name


class ServerlessCluster(pulumi.ComponentResource):
    """An application that starts with a job and stops when idle. `role_arn` has the rights that this lake's jobs
    need."""

    application: aws.emrserverless.Application
    role_arn: pulumi.Input[str]
    own_role: LakeRole | None  #: None where the specs or the program name an existing role
    exported: Mapping[str, Any]  #: the values that jobs are started with

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("deployer:aws:ServerlessCluster", name, None, opts)
        own = pulumi.ResourceOptions(parent=self)
        instance, cluster, label = args.context.instance, args.spec, args.label
        tags, key_arn, table_arn = args.context.tags, args.context.key_arn, args.table_arn
        options = args.options()
        logs = aws.cloudwatch.LogGroup(
            f"logs/{label}",
            name=f"/emr-serverless/{own_name(instance.root, instance.name, cluster.name)}",
            retention_in_days=LOG_DAYS,
            kms_key_id=key_arn,
            tags=tags,
            opts=own,
        )
        self.application = aws.emrserverless.Application(
            f"application/{label}",
            name=name_on_aws(instance.root, instance.name, cluster.name),
            type="spark",
            release_label=options["release"],
            architecture=options.get("architecture", "arm64").upper(),
            auto_start_configuration={"enabled": True},
            auto_stop_configuration={"enabled": True, "idle_timeout_minutes": options.get("idle_minutes", 15)},
            maximum_capacity=_capacity(options),
            initial_capacities=_ready(options),
            network_configuration=_network(options),
            monitoring_configuration={
                "cloudwatch_logging_configuration": {"enabled": True, "log_group_name": logs.name},
                **({"s3_monitoring_configuration": {"log_uri": options["log_uri"]}} if "log_uri" in options else {}),
            },
            tags=tags,
            opts=own,
        )
        self.own_role = None
        if (role_arn := options.get("execution_role")) is None:
            about = f"Jobs of the lake {instance.name} on the cluster {cluster.name}"
            trust = self.application.arn.apply(trust_policy)
            role = self.own_role = LakeRole(
                f"role/{label}", LakeRoleArgs(instance, cluster.name, about, trust, tags), own
            )
            aws.iam.RolePolicy(
                f"lake/{label}",
                name="lake",
                role=role.name,
                policy=pulumi.Output.all(table_arn, logs.arn, key_arn).apply(
                    lambda arns: json.dumps(
                        job_policy(instance.root, instance.name, arns[0], arns[1], options.get("log_uri"), arns[2])
                    )
                ),
                opts=own,
            )
            role_arn = role.arn
        self.role_arn = role_arn
        self.exported = {
            "kind": "emr-serverless",
            "application": self.application.id,
            "role": self.role_arn,
            "log_group": logs.name,
            **({"logs": options["log_uri"]} if "log_uri" in options else {}),
            **({"key": key_arn, "lake": lake_id(instance.root, instance.name)} if key_arn is not None else {}),
        }
        self.register_outputs(self.exported)


def _capacity(options: Mapping[str, Any]) -> Mapping[str, str]:
    return capacity(most_workers(options), options.get("cores", CORES), options.get("memory", MEMORY))


def _ready(options: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Returns the driver and the workers that are kept ready while the application runs."""
    if "initial_workers" not in options:
        return None
    size = worker_size(options.get("cores", CORES), options.get("memory", MEMORY))
    return [
        {
            "initial_capacity_type": kind,
            "initial_capacity_config": {"worker_count": number, "worker_configuration": size},
        }
        for kind, number in (("Driver", 1), ("Executor", options["initial_workers"]))
    ]


def _network(options: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if "subnets" not in options:
        return None
    groups = {"security_group_ids": options["security_groups"]} if "security_groups" in options else {}
    return {"subnet_ids": options["subnets"], **groups}
