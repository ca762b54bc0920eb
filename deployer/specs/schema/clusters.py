"""The JSON Schema of clusters and state backends: each kind with its settings."""

from __future__ import annotations

from collections.abc import Mapping

from deployer.specs.schema.parts import Json, choice, constant, count, list_of, object_schema, ref, text

_MEMORY = text(
    "Memory of one worker, in megabytes or gigabytes.",
    pattern="^[1-9][0-9]*[mg]$",
    patternErrorMessage="write a number and m or g, such as 4g",
    examples=["4g"],
)
_RELEASE = text("EMR release.", pattern="^emr-(spark-)?[0-9].*$", patternErrorMessage="write it as emr-spark-8.0.0")
_ROLE = text("ARN of the role that jobs run as; made by the stack unless set.")
_S3_FOLDER = {"pattern": "^s3://[^/]+(/.*)?$", "patternErrorMessage": "write it as s3://bucket/prefix"}
_TIMEOUT = count("Minutes after which a job that still runs is ended.", 5, 10_080, default=720)
_REQUIREMENTS = list_of(
    "Packages of Python that functions of computed columns need there, beside those of jobs. Jobs get the versions "
    "that are installed where `up` runs, and what these need.",
    text(
        "A package's name.",
        pattern="^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$",
        patternErrorMessage="write the name of a package without its version, such as scikit-learn",
    ),
    examples=[["scikit-learn"]],
)
_TYPE: Json = {"pattern": "^[a-z0-9-]+[.][a-z0-9-]+$", "patternErrorMessage": "write it as r7g.xlarge"}
_FLEETS = object_schema(
    "Fleets",
    "Core instances that EMR chooses by what there is and what it costs. Each counts as one, whatever its size.",
    ("types",),
    {
        "types": list_of(
            "EC2 types to choose from, at most 30 and of one architecture.",
            text("An EC2 type.", **_TYPE),
            minItems=1,
            examples=[["r7g.xlarge", "r6g.xlarge"]],
        ),
        "on_demand": count("Number of instances that stay until EMR releases them.", 0, 1_000, default=0),
        "spot": count("Number of spot instances: cheaper, and taken away when AWS needs them.", 0, 1_000, default=0),
    },
)
_CLUSTER_KINDS: Mapping[str, tuple[str, tuple[str, ...], Mapping[str, Json]]] = {
    "local": (
        "One Spark session on this machine.",
        (),
        {
            "cores": count("Threads of the session; all cores of the machine unless set.", 1, 1024),
            "memory": _MEMORY | {"description": "Memory of the session, in megabytes or gigabytes."},
        },
    ),
    "emr-serverless": (
        "An EMR Serverless application, which starts with a job and stops when idle.",
        ("release",),
        {
            "release": _RELEASE,
            "architecture": choice("Processors of the workers.", ("arm64", "x86_64"), default="arm64"),
            "cores": count("Virtual cores of one worker.", 1, 16),
            "memory": _MEMORY,
            "max_workers": count(
                "The most workers at a time, of all jobs together; `initial_workers` where that is more.",
                1,
                10_000,
                default=10,
            ),
            "initial_workers": count(
                "Workers that are kept ready, with a driver, from the first job until the application stops: jobs "
                "begin at once, and ready ones are paid for.",
                1,
                1_000,
            ),
            "idle_minutes": count("Minutes without a job before the application stops.", 1, 10_080, default=15),
            "timeout_minutes": _TIMEOUT,
            "execution_role": _ROLE,
            "subnets": list_of("Subnets of the workers; outside of any VPC unless set.", text("A subnet's id.")),
            "security_groups": list_of("Security groups of the workers.", text("A security group's id.")),
            "requirements": _REQUIREMENTS,
            "log_uri": text(
                "A folder on S3 where logs are kept too, beside CloudWatch.",
                **_S3_FOLDER,
                examples=["s3://our-logs/emr"],
            ),
        },
    ),
    "emr": (
        "An EMR cluster on EC2; jobs are its steps.",
        ("release",),
        {
            "release": _RELEASE,
            "lifetime": choice(
                "`run`: each job starts a cluster of its own, which ends with it and costs nothing in between. `long`: "
                "one cluster, which `up` starts.",
                ("run", "long"),
                default="run",
            ),
            "instance_type": text(
                "EC2 type of the core instances; this or `fleets`.", **_TYPE, examples=["r7g.xlarge"]
            ),
            "instances": count("Number of core instances of that type.", 1, 1_000, default=1),
            "fleets": _FLEETS,
            "primary_type": text("EC2 type of the primary instance; that of the core instances unless set.", **_TYPE),
            "max_instances": count(
                "The most core and task instances at a time: EMR adds them under load and releases them. With spot "
                "instances in `fleets`, those that are added are spot ones.",
                1,
                1_000,
            ),
            "idle_minutes": count(
                "Minutes without a step before a cluster ends; the next `up` starts a `long` one again. 60 unless set; "
                "a `long` cluster that a schedule starts jobs on stays unless set.",
                1,
                10_080,
            ),
            "timeout_minutes": _TIMEOUT,
            "execution_role": _ROLE,
            "subnets": list_of(
                "Subnets of the instances; one, or several with `fleets`, of which EMR chooses.", text("A subnet's id.")
            ),
            "security_groups": list_of(
                "Security groups of the instances, beside EMR's own.", text("A security group's id.")
            ),
            "requirements": _REQUIREMENTS,
            "log_uri": text(
                "Where EMR writes its logs; below `_job-logs` in the instance's root unless set.",
                **_S3_FOLDER,
                examples=["s3://our-logs/emr"],
            ),
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
            (*name, "kind", *required),
            {**name, "kind": constant(kind, "Kind of the cluster."), **options},
        )
        for kind, (description, required, options) in _CLUSTER_KINDS.items()
    ]
