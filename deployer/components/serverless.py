"""The clusters of a lake on S3; those on EMR Serverless: an application each, its logs, and its jobs' role."""

import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws

from deployer.components.emr import EmrCluster
from deployer.components.roles import declare_role
from deployer.compute.aws_access import (
    CORES,
    LOG_DAYS,
    MEMORY,
    capacity,
    job_policy,
    most_workers,
    trust_policy,
    worker_size,
)
from deployer.compute.aws_names import lake_id, name_on_aws, own_name
from deployer.compute.aws_schedules import scheduled_services
from deployer.specs.model import Cluster, InstanceSpec, Lake


class ServerlessCluster(pulumi.ComponentResource):
    """An application that starts with a job and stops when idle. `role_arn` may do what this lake's jobs need."""

    def __init__(
        self, instance: InstanceSpec, cluster: Cluster, table_arn: Any, tags: Mapping[str, str], key_arn: Any
    ) -> None:
        super().__init__("deployer:aws:ServerlessCluster", cluster.name)
        own = pulumi.ResourceOptions(parent=self)
        name = name_on_aws(instance.root, instance.name, cluster.name)
        options: Mapping[str, Any] = cluster.options
        logs = aws.cloudwatch.LogGroup(
            f"logs/{cluster.name}",
            name=f"/emr-serverless/{own_name(instance.root, instance.name, cluster.name)}",
            retention_in_days=LOG_DAYS,
            kms_key_id=key_arn,
            tags=tags,
            opts=own,
        )
        self.application = aws.emrserverless.Application(
            f"application/{cluster.name}",
            name=name,
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
        self.role_arn: Any = options.get("execution_role")
        self.own_role: aws.iam.Role | None = None
        if self.role_arn is None:
            role = self.own_role = declare_role(
                f"role/{cluster.name}",
                instance,
                cluster.name,
                f"Jobs of the lake {instance.name} on the cluster {cluster.name}",
                self.application.arn.apply(trust_policy),
                tags,
                own,
            )
            aws.iam.RolePolicy(
                f"lake/{cluster.name}",
                name="lake",
                role=role.name,
                policy=pulumi.Output.all(table_arn, logs.arn, key_arn).apply(
                    lambda arns: json.dumps(
                        job_policy(instance.root, instance.name, arns[0], arns[1], options.get("log_uri"), arns[2])
                    )
                ),
                opts=own,
            )
            self.role_arn = role.arn
        self.exported = {
            "kind": "emr-serverless",
            "application": self.application.id,
            "role": self.role_arn,
            "log_group": logs.name,
            **({"logs": options["log_uri"]} if "log_uri" in options else {}),
            **({"key": key_arn, "lake": lake_id(instance.root, instance.name)} if key_arn is not None else {}),
        }
        self.register_outputs(self.exported)


def declare_clusters(
    lake: Lake, table_arn: Any, tags: Mapping[str, str], key_arn: Any = None
) -> Mapping[str, ServerlessCluster | EmrCluster]:
    """Declare every cluster on AWS, and export what jobs are started with. Gives them by name.

    `key_arn` is of the lake's KMS key.
    """
    instance = lake.instance
    scheduled = {each.cluster.name for each in scheduled_services(lake)}
    found: dict[str, ServerlessCluster | EmrCluster] = {}
    for cluster in instance.clusters:
        if cluster.kind == "emr-serverless":
            found[cluster.name] = ServerlessCluster(instance, cluster, table_arn, tags, key_arn)
        elif cluster.kind == "emr":
            found[cluster.name] = EmrCluster(instance, cluster, table_arn, tags, key_arn, cluster.name in scheduled)
    if found:
        pulumi.export("clusters", {name: cluster.exported for name, cluster in found.items()})
    return found


def _capacity(options: Mapping[str, Any]) -> Mapping[str, str]:
    return capacity(most_workers(options), options.get("cores", CORES), options.get("memory", MEMORY))


def _ready(options: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """A driver and workers that are kept ready while the application runs."""
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
