"""The JSON Schema (draft 2020-12) of one document of a spec file: editors complete from it, docs/spec.md is its print.

`deployer.specs.shape` walks it over nodes with positions; it uses no keyword that `shape` does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

Json = dict[str, Any]

_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_DASHED = "[A-Za-z_][A-Za-z0-9_-]*"
_NAME_HINT = "use letters, digits and _, and start with a letter or _"
_DASHED_HINT = "use letters, digits, _ and -, and start with a letter or _"
MAX_NAME = 128


def _object(
    title: str, description: str, required: tuple[str, ...], properties: Mapping[str, Json], **more: Any
) -> Json:
    return {
        "title": title,
        "description": description,
        "type": "object",
        "required": list(required),
        "properties": dict(properties),
        "additionalProperties": False,
        **more,
    }


def _text(description: str, **more: Any) -> Json:
    return {"type": "string", "description": description, **more}


def _flag(description: str, default: bool | None = None) -> Json:
    return {"type": "boolean", "description": description} | ({} if default is None else {"default": default})


def _count(description: str, low: int, high: int, **more: Any) -> Json:
    return {"type": "integer", "description": description, "minimum": low, "maximum": high, **more}


def _list(description: str, item: Json, **more: Any) -> Json:
    return {"type": "array", "description": description, "items": item, **more}


def _choice(description: str, values: tuple[str, ...], **more: Any) -> Json:
    return {"type": "string", "description": description, "enum": list(values), **more}


def _ref(name: str, description: str = "") -> Json:
    return {"$ref": f"#/$defs/{name}"} | ({"description": description} if description else {})


def _kind(name: str, description: str) -> Json:
    return {"const": name, "description": description}


_MEMORY = _text(
    "Memory of one worker, in megabytes or gigabytes.",
    pattern="^[1-9][0-9]*[mg]$",
    patternErrorMessage="write a number and m or g, such as 4g",
    examples=["4g"],
)
_CLUSTER_KINDS: Mapping[str, tuple[str, Mapping[str, Json]]] = {
    "local": (
        "One Spark session on this machine.",
        {
            "cores": _count("Threads of the session; all cores of the machine unless set.", 1, 1024),
            "memory": _MEMORY | {"description": "Memory of the session, in megabytes or gigabytes."},
        },
    ),
    "emr-serverless": (
        "An EMR Serverless application, which starts with a job and stops when idle.",
        {
            "release": _text("EMR release.", pattern="^emr-[0-9].*$", patternErrorMessage="write it as emr-7.12.0"),
            "architecture": _choice("Processors of the workers.", ("arm64", "x86_64"), default="arm64"),
            "cores": _count("Virtual cores of one worker.", 1, 16),
            "memory": _MEMORY,
            "max_workers": _count("The most workers at a time.", 1, 10_000),
            "idle_minutes": _count("Minutes without a job before the application stops.", 1, 10_080, default=15),
            "execution_role": _text("ARN of the role that jobs run as; made by the stack unless set."),
            "subnets": _list("Subnets of the workers; outside of any VPC unless set.", _text("A subnet's id.")),
            "security_groups": _list("Security groups of the workers.", _text("A security group's id.")),
        },
    ),
    "emr": (
        "An EMR cluster on EC2; jobs are its steps.",
        {
            "release": _text("EMR release.", pattern="^emr-[0-9].*$", patternErrorMessage="write it as emr-7.12.0"),
            "instance_type": _text("EC2 type of the instances.", examples=["r7g.xlarge"]),
            "instances": _count("Number of core instances.", 1, 1_000, default=1),
            "idle_minutes": _count("Minutes without a step before the cluster ends.", 1, 10_080, default=15),
            "execution_role": _text("ARN of the role that jobs run as; made by the stack unless set."),
            "subnets": _list("Subnets of the instances.", _text("A subnet's id.")),
            "log_uri": _text("Where EMR writes its logs, such as s3://bucket/logs."),
        },
    ),
}
_STATE_BACKENDS: Mapping[str, tuple[str, Mapping[str, Json]]] = {
    "sqlite": ("A file under the instance's root, for roots on a disk.", {}),
    "dynamodb": (
        "Items in a DynamoDB table, and larger bodies under the instance's root.",
        {
            "table": _text("Name of the DynamoDB table; made from the instance's name unless set.", minLength=3),
            "region": _text("AWS region; that of the session unless set.", examples=["eu-central-1"]),
            "endpoint": _text("Another endpoint than AWS's own, such as a local emulator's."),
        },
    ),
}


def _clusters(named: bool) -> list[Json]:
    name = {"name": _ref("dashed_name", "Name of the cluster, by which jobs choose it.")} if named else {}
    return [
        _object(
            f"Cluster of kind {kind}",
            description,
            ("name", "kind") if named else ("kind",),
            {**name, "kind": _kind(kind, "What the cluster is."), **options},
        )
        for kind, (description, options) in _CLUSTER_KINDS.items()
    ]


_TAGS: Json = {
    "type": "object",
    "description": "Labels for people and tools; keys and values are text.",
    "additionalProperties": {"type": "string", "description": "A label's value."},
    "default": {},
}

_COLUMN = _object(
    "Column",
    "A column of a table, or a field of a struct.",
    ("name", "type"),
    {
        "name": _ref("name", "Name of the column; those that start with `_row` are Lance's own."),
        "type": _ref("type"),
        "nullable": _flag("Whether the column may hold nulls. Row keys may not.", True),
        "description": _text("What the column means, with its unit. Kept in the table's schema, where readers see it."),
        "renamed_from": _ref("name", "The name before a rename, so that the data is kept."),
    },
)

_ELEMENT = _object(
    "Element",
    "What a list or map holds, where its nullability or description is to be said.",
    ("type",),
    {
        "type": _ref("type"),
        "nullable": _flag("Whether it may be null.", True),
        "description": _text("What it means."),
    },
)

_NESTED_TYPE = _object(
    "Nested type",
    "The long form of a nested type, so that its fields have descriptions. Exactly one of the properties.",
    (),
    {
        "struct": _list("The struct's fields.", _ref("column"), minItems=1),
        "list": _ref("element_type", "The items of a list of any length."),
        "large_list": _ref("element_type", "The items of a list with 64-bit offsets."),
        "fixed_size_list": _ref("sized_list", "A list that always has the same length."),
        "vector": _ref("sized_list", "The same as fixed_size_list."),
        "map": _object(
            "Map",
            "Keys to values.",
            ("key", "value"),
            {"key": _ref("element_type", "The keys; never null."), "value": _ref("element_type", "The values.")},
        ),
    },
    minProperties=1,
    maxProperties=1,
)

_STORAGE = _object(
    "Storage",
    "How Lance writes the table's files.",
    (),
    {
        "data_storage_version": _choice(
            "Lance file format. 2.1 is what older readers open; maps and lists of blobs need 2.2.",
            ("2.1", "2.2"),
            default="2.1",
        ),
        "max_rows_per_file": _count("The most rows of one file.", 1, 2**31 - 1, default=1_048_576),
        "max_bytes_per_file": _count("The most bytes of one file.", 65_536, 2**40, default=1_073_741_824),
        "stable_row_ids": _flag(
            "Whether a row keeps its id when it moves. On for tables without row keys, off for those with them."
        ),
    },
)

_SCALAR: Json = {"type": ["string", "number", "boolean"], "description": "A value of the first row key."}
_PARTITIONS = _object(
    "Partitions",
    "How the table is divided by its row keys.",
    (),
    {
        "split_points": _list(
            "Where one leaf partition ends and the next begins, ascending: values of the first row key, or lists of "
            "values of the first few. A leaf holds the keys from its split point on, up to the next one.",
            {"anyOf": [_SCALAR, _list("Values of the first row keys, in order.", _SCALAR)]},
            default=[],
        )
    },
)

_INSTANCE = _object(
    "Instance",
    "A lake: where it lives and what computes for it. There is exactly one.",
    ("kind", "name", "root"),
    {
        "kind": _kind("Instance", "Declares the instance."),
        "name": _ref("dashed_name", "Name of the instance."),
        "root": _text(
            "Where the data lives: a path, absolute or relative to the project's folder, or s3://bucket/prefix.",
            minLength=1,
            examples=["lakes/nyc", "s3://my-bucket/lakes/nyc"],
        ),
        "description": _text("What the lake is for."),
        "state": {
            "description": "The store of the lake's state; `sqlite` for a root on a disk, `dynamodb` for s3://.",
            "oneOf": [
                _object(
                    f"State in {name}",
                    description,
                    ("backend",),
                    {"backend": _kind(name, "Which store."), **options},
                )
                for name, (description, options) in _STATE_BACKENDS.items()
            ],
        },
        "engine": _choice(
            "What runs the Pulumi program: the official CLI, the engine in this package, or the CLI where it is there.",
            ("auto", "embedded", "cli"),
            default="auto",
        ),
        "clusters": {
            "description": "Where Spark jobs run: by name, or a list with names.",
            "anyOf": [
                {
                    "type": "object",
                    "description": "Clusters by name.",
                    "propertyNames": _ref("dashed_name"),
                    "additionalProperties": {"oneOf": _clusters(named=False)},
                },
                {"type": "array", "description": "Clusters with names.", "items": {"oneOf": _clusters(named=True)}},
            ],
        },
        "tags": _TAGS,
    },
    patternProperties={"^x-": True},
)

_SCHEMA = _object(
    "Schema",
    "Columns under a name, for several tables and other schemas.",
    ("kind", "name"),
    {
        "kind": _kind("Schema", "Declares a schema."),
        "name": _ref("name", "Name of the schema, by which `schemas` refers to it."),
        "description": _text("What the columns have in common."),
        "schemas": _list("Schemas whose columns come first, in this order.", _ref("name"), default=[]),
        "columns": _list("The schema's own columns, in order.", _ref("column"), default=[]),
    },
    patternProperties={"^x-": True},
)

_TABLE = _object(
    "Table",
    "A table, stored as one Lance dataset.",
    ("kind", "database", "name"),
    {
        "kind": _kind("Table", "Declares a table."),
        "database": _ref("name", "Database of the table; the first half of its full name."),
        "name": _ref("name", "Name of the table within its database."),
        "description": _text("What a row is."),
        "schemas": _list("Schemas whose columns come first, in this order.", _ref("name"), default=[]),
        "columns": _list("The table's own columns, in order.", _ref("column"), default=[]),
        "row_keys": _list(
            "Columns by which rows are partitioned, sorted and found; together they name a row. Never null.",
            _ref("name"),
            default=[],
        ),
        "sort_keys": _list("Columns by which rows of equal row keys are sorted.", _ref("name"), default=[]),
        "partitions": _ref("partitions"),
        "online": _flag("Whether jobs may write to the table.", True),
        "deletion_protection": _flag("Whether deleting the table while it holds rows is refused.", True),
        "storage": _ref("storage"),
        "tags": _TAGS,
        "renamed_from": _text(
            "The table's name before a rename, `database.name` or `name` alone, so that its data is kept.",
            pattern=rf"^({_NAME}\.)?{_NAME}$",
            patternErrorMessage="write `database.name`, or `name` in the same database",
        ),
    },
    patternProperties={"^x-": True},
)

_INCLUDE = _object(
    "Include",
    "Reads other spec files as if they stood here.",
    ("include",),
    {
        "include": _list(
            "Paths or globs, relative to this file; `**` matches folders. They stay inside the project's folder.",
            _text("A path or glob.", minLength=1),
            minItems=1,
            examples=[["tables/*.yaml"]],
        )
    },
)

KINDS = ("Instance", "Schema", "Table")


@cache
def json_schema() -> Json:
    """The JSON Schema of one document of a spec file. The value is shared: do not change it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "deployer spec",
        "description": "One document of a spec file: an Instance, a Schema, a Table, or an include of other files.",
        "oneOf": [*({"$ref": f"#/$defs/{kind}"} for kind in KINDS), {"$ref": "#/$defs/Include"}],
        "$defs": {
            "Instance": _INSTANCE,
            "Schema": _SCHEMA,
            "Table": _TABLE,
            "Include": _INCLUDE,
            "column": _COLUMN,
            "type": {
                "description": "Type of the values, as text such as `int64` or `list<string>`, or in the long form.",
                "anyOf": [{"type": "string", "format": "column-type", "description": "A type."}, _ref("nested_type")],
            },
            "nested_type": _NESTED_TYPE,
            "element": _ELEMENT,
            "element_type": {
                "description": "A type, or a type with nullability and description.",
                "anyOf": [
                    {"type": "string", "format": "column-type", "description": "A type."},
                    _ref("element"),
                    _ref("nested_type"),
                ],
            },
            "sized_list": _object(
                "Fixed-size list",
                "A list that always has the same length.",
                ("item", "size"),
                {"item": _ref("element_type", "The items."), "size": _count("Number of items.", 1, 2**31 - 1)},
            ),
            "partitions": _PARTITIONS,
            "storage": _STORAGE,
            "name": _text(
                "A name.", pattern=f"^{_NAME}$", patternErrorMessage=_NAME_HINT, minLength=1, maxLength=MAX_NAME
            ),
            "dashed_name": _text(
                "A name.", pattern=f"^{_DASHED}$", patternErrorMessage=_DASHED_HINT, minLength=1, maxLength=MAX_NAME
            ),
        },
    }
