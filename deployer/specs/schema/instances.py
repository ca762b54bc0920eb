"""The JSON Schema of an instance: the root of a lake and the clusters that compute for it."""

from __future__ import annotations

from deployer.specs.schema.aws_settings import AWS_SETTINGS
from deployer.specs.schema.clusters import STATE_BACKENDS, cluster_schemas
from deployer.specs.schema.parts import (
    TAGS,
    WHITE_SPACE,
    choice,
    constant,
    list_of,
    object_schema,
    ref,
    text,
)

INSTANCE = object_schema(
    "Instance",
    "A lake: where it lives and what computes for it. There is exactly one.",
    ("kind", "name", "root"),
    {
        "kind": constant("Instance", "Declares the instance."),
        "name": ref("dashed_name", "Name of the instance."),
        "root": text(
            "Where the data lives: a path, absolute or relative to the project's folder, or s3://bucket/prefix.",
            minLength=1,
            examples=["lakes/nyc", "s3://my-bucket/lakes/nyc"],
        ),
        "description": text("Purpose of the lake."),
        "state": {
            "description": "The store of the lake's state; `sqlite` for a root on a disk, `dynamodb` for s3://.",
            "oneOf": [
                object_schema(
                    f"State in {name}",
                    description,
                    ("backend",),
                    {"backend": constant(name, "Kind of the store."), **options},
                )
                for name, (description, options) in STATE_BACKENDS.items()
            ],
        },
        "engine": choice(
            "Engine that runs the Pulumi program: the official CLI, the engine in this package, or the CLI if "
            "it is installed.",
            ("auto", "embedded", "cli"),
            default="auto",
        ),
        "clusters": {
            "description": (
                "Where Spark jobs run, by name or as a list with names: loads and rewrites too large for one process. "
                "With a cluster on AWS, the only one there or the one called `default`, tables are rewritten and "
                "indexes of large tables are built on it. "
                "`ingest --cluster` names one; else it is the only one of kind local, or of several the one called "
                "`default`. Where none is declared, all cores of the machine and 2g of memory."
            ),
            "anyOf": [
                {
                    "type": "object",
                    "description": "Clusters by name.",
                    "propertyNames": ref("dashed_name"),
                    "additionalProperties": {"oneOf": cluster_schemas(named=False)},
                },
                {
                    "type": "array",
                    "description": "Clusters with names.",
                    "items": {"oneOf": cluster_schemas(named=True)},
                },
            ],
        },
        "notify": list_of(
            "E-mail addresses that are notified when a service's run fails, on AWS; each confirms once.",
            text(
                "An e-mail address.",
                pattern=rf"^[^@{WHITE_SPACE}]+@[^@{WHITE_SPACE}]+\.[^@{WHITE_SPACE}]+$",
                patternErrorMessage="write an e-mail address",
                maxLength=254,
            ),
            default=[],
        ),
        "services": ref("services", "Services of all tables. Properties that a table declares take precedence."),
        "aws": AWS_SETTINGS,
        "tags": TAGS,
    },
    patternProperties={"^x-": True},
)
