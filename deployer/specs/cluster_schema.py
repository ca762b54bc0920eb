"""The JSON Schema of what an instance runs on: kinds of clusters and state backends, with their own settings."""

from __future__ import annotations

from collections.abc import Mapping

from deployer.specs.schema_parts import Json, choice, constant, count, list_of, object_schema, ref, text

_MEMORY = text(
    "Memory of one worker, in megabytes or gigabytes.",
    pattern="^[1-9][0-9]*[mg]$",
    patternErrorMessage="write a number and m or g, such as 4g",
    examples=["4g"],
)
_CLUSTER_KINDS: Mapping[str, tuple[str, Mapping[str, Json]]] = {
    "local": (
        "One Spark session on this machine.",
        {
            "cores": count("Threads of the session; all cores of the machine unless set.", 1, 1024),
            "memory": _MEMORY | {"description": "Memory of the session, in megabytes or gigabytes."},
        },
    ),
    "emr-serverless": (
        "An EMR Serverless application, which starts with a job and stops when idle.",
        {
            "release": text("EMR release.", pattern="^emr-[0-9].*$", patternErrorMessage="write it as emr-7.12.0"),
            "architecture": choice("Processors of the workers.", ("arm64", "x86_64"), default="arm64"),
            "cores": count("Virtual cores of one worker.", 1, 16),
            "memory": _MEMORY,
            "max_workers": count("The most workers at a time.", 1, 10_000),
            "idle_minutes": count("Minutes without a job before the application stops.", 1, 10_080, default=15),
            "execution_role": text("ARN of the role that jobs run as; made by the stack unless set."),
            "subnets": list_of("Subnets of the workers; outside of any VPC unless set.", text("A subnet's id.")),
            "security_groups": list_of("Security groups of the workers.", text("A security group's id.")),
        },
    ),
    "emr": (
        "An EMR cluster on EC2; jobs are its steps.",
        {
            "release": text("EMR release.", pattern="^emr-[0-9].*$", patternErrorMessage="write it as emr-7.12.0"),
            "instance_type": text("EC2 type of the instances.", examples=["r7g.xlarge"]),
            "instances": count("Number of core instances.", 1, 1_000, default=1),
            "idle_minutes": count("Minutes without a step before the cluster ends.", 1, 10_080, default=15),
            "execution_role": text("ARN of the role that jobs run as; made by the stack unless set."),
            "subnets": list_of("Subnets of the instances.", text("A subnet's id.")),
            "log_uri": text("Where EMR writes its logs, such as s3://bucket/logs."),
        },
    ),
}
STATE_BACKENDS: Mapping[str, tuple[str, Mapping[str, Json]]] = {
    "sqlite": ("A file under the instance's root, for roots on a disk.", {}),
    "dynamodb": (
        "Items in a DynamoDB table, and larger bodies under the instance's root.",
        {
            "table": text("Name of the DynamoDB table; made from the instance's name unless set.", minLength=3),
            "region": text("AWS region; that of the session unless set.", examples=["eu-central-1"]),
            "endpoint": text("Another endpoint than AWS's own, such as a local emulator's."),
        },
    ),
}


def cluster_schemas(named: bool) -> list[Json]:
    name = {"name": ref("dashed_name", "Name of the cluster, by which jobs choose it.")} if named else {}
    return [
        object_schema(
            f"Cluster of kind {kind}",
            description,
            ("name", "kind") if named else ("kind",),
            {**name, "kind": constant(kind, "What the cluster is."), **options},
        )
        for kind, (description, options) in _CLUSTER_KINDS.items()
    ]
