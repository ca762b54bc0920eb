"""The JSON Schema (draft 2020-12) of one document of a spec file: editors complete from it, docs/spec.md is its print.

`deployer.specs.shape` walks it over nodes with positions; it uses no keyword that `shape` does not know.
"""

from __future__ import annotations

from functools import cache

from deployer.specs import column_names
from deployer.specs.aws_settings import AWS_SETTINGS
from deployer.specs.cluster_schema import STATE_BACKENDS, cluster_schemas
from deployer.specs.column_sources import MAX_SOURCE
from deployer.specs.index_kinds import index_schemas
from deployer.specs.schema_parts import (
    Json,
    choice,
    constant,
    count,
    duration,
    flag,
    list_of,
    object_schema,
    ref,
    text,
)
from deployer.specs.service_schema import raw_service_schema, services_schema, trigger_schema
from deployer.state.names import MAX_NAME, NAME

_NAME = NAME
_DASHED = "[A-Za-z_][A-Za-z0-9_-]*"
_NAME_HINT = "use letters, digits and _, and start with a letter or _"
_DASHED_HINT = "use letters, digits, _ and -, and start with a letter or _"
VARIABLE_TYPES = ("string", "integer", "number", "boolean")


_TAGS: Json = {
    "type": "object",
    "description": "Labels for people and tools; keys and values are text.",
    "additionalProperties": {"type": "string", "description": "A label's value."},
    "default": {},
}

_COLUMN = object_schema(
    "Column",
    "A column of a table, or a field of a struct.",
    ("name", "type"),
    {
        "name": ref(
            "column_name",
            "Name of the column: any text of one line without dots and backticks; those that start with `_row` are "
            "Lance's own.",
        ),
        "type": ref("type"),
        "nullable": flag("Whether the column may hold nulls. Row keys may not.", True),
        "description": text("What the column means, with its unit. Kept in the table's schema, where readers see it."),
        "renamed_from": ref("column_name", "The name before a rename, so that the data is kept."),
        "default": text(
            "SQL for rows that come without the column, such as `0`, `'none'` or `distance * 2`; those that are there "
            "when it is added get it too. Not inside of structs."
        ),
        "using": text(
            "SQL that gives each row's value when the type changes so that values may be lost: "
            "`TRY_CAST(delay AS INT)`. Names columns as the spec does; may stay once it was applied."
        ),
        "source": text(
            "The name that the column has in files that are loaded, such as `Total Amount`. Files may have the "
            "column's own name instead. May be empty. Not inside of structs.",
            maxLength=MAX_SOURCE,
        ),
    },
)

_ELEMENT = object_schema(
    "Element",
    "What a list or map holds, where its nullability or description is to be said.",
    ("type",),
    {
        "type": ref("type"),
        "nullable": flag("Whether it may be null.", True),
        "description": text("What it means."),
    },
)

_NESTED_TYPE = object_schema(
    "Nested type",
    "The long form of a nested type, so that its fields have descriptions. Exactly one of the properties.",
    (),
    {
        "struct": list_of("The struct's fields.", ref("column"), minItems=1),
        "list": ref("element_type", "The items of a list of any length."),
        "large_list": ref("element_type", "The items of a list with 64-bit offsets."),
        "fixed_size_list": ref("sized_list", "A list that always has the same length."),
        "vector": ref("sized_list", "The same as fixed_size_list."),
        "map": object_schema(
            "Map",
            "Keys to values.",
            ("key", "value"),
            {"key": ref("element_type", "The keys; never null."), "value": ref("element_type", "The values.")},
        ),
    },
    minProperties=1,
    maxProperties=1,
)

_STORAGE = object_schema(
    "Storage",
    "How Lance writes the table's files.",
    (),
    {
        "data_storage_version": choice(
            "Lance file format. 2.1 is what older readers open; maps and lists of blobs need 2.2.",
            ("2.1", "2.2"),
            default="2.1",
        ),
        "max_rows_per_file": count("The most rows of one file.", 1, 2**31 - 1, default=1_048_576),
        "max_bytes_per_file": count("The most bytes of one file.", 65_536, 2**40, default=1_073_741_824),
        "stable_row_ids": flag(
            "Whether a row keeps its id when it moves. On for tables without row keys; off for those with them, where "
            "it costs about 4 bytes a row of metadata once rows are sorted."
        ),
        "keep_replaced_for": duration(
            "How long the old data stays after a rewrite took its place, for those who still read it and for "
            "`query --at`; the next `up` after that removes it.",
            default="7d",
        ),
    },
)

_SCALAR: Json = {"type": ["string", "number", "boolean"], "description": "A value of the first row key."}
_PARTITIONS = object_schema(
    "Partitions",
    "How the table is divided by its row keys.",
    (),
    {
        "split_points": list_of(
            "Where one leaf partition ends and the next begins, ascending: values of the first row key, or lists of "
            "values of the first few. A leaf holds the keys from its split point on, up to the next one.",
            {"anyOf": [_SCALAR, list_of("Values of the first row keys, in order.", _SCALAR)]},
            default=[],
        ),
        "max_rows_per_leaf": count(
            "A leaf with more rows is split after a load, as `deployer table split` does. Not given: only when asked.",
            1,
            2**53,
        ),
    },
)

_INSTANCE = object_schema(
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
        "description": text("What the lake is for."),
        "state": {
            "description": "The store of the lake's state; `sqlite` for a root on a disk, `dynamodb` for s3://.",
            "oneOf": [
                object_schema(
                    f"State in {name}",
                    description,
                    ("backend",),
                    {"backend": constant(name, "Which store."), **options},
                )
                for name, (description, options) in STATE_BACKENDS.items()
            ],
        },
        "engine": choice(
            "What runs the Pulumi program: the official CLI, the engine in this package, or the CLI where it is there.",
            ("auto", "embedded", "cli"),
            default="auto",
        ),
        "clusters": {
            "description": (
                "Where Spark jobs run, by name or as a list with names: loads and rewrites too large for one process. "
                "With a cluster on AWS, the only one there or the one called `default`, tables are rewritten on it. "
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
            "Who is told by e-mail when a service's run fails, on AWS; each confirms once.",
            text(
                "An e-mail address.",
                pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
                patternErrorMessage="write an e-mail address",
                maxLength=254,
            ),
            default=[],
        ),
        "services": ref(
            "services", "Services of all tables; what a table declares goes over it, property by property."
        ),
        "aws": AWS_SETTINGS,
        "tags": _TAGS,
    },
    patternProperties={"^x-": True},
)

_SCHEMA = object_schema(
    "Schema",
    "Columns under a name, for several tables and other schemas.",
    ("kind", "name"),
    {
        "kind": constant("Schema", "Declares a schema."),
        "name": ref("name", "Name of the schema, by which `schemas` refers to it."),
        "description": text("What the columns have in common."),
        "schemas": list_of("Schemas whose columns come first, in this order.", ref("name"), default=[]),
        "columns": list_of("The schema's own columns, in order.", ref("column"), default=[]),
    },
    patternProperties={"^x-": True},
)

_TABLE = object_schema(
    "Table",
    "A table, stored as one Lance dataset.",
    ("kind", "database", "name"),
    {
        "kind": constant("Table", "Declares a table."),
        "database": ref("name", "Database of the table; the first half of its full name."),
        "name": ref("name", "Name of the table within its database."),
        "description": text("What a row is."),
        "schemas": list_of("Schemas whose columns come first, in this order.", ref("name"), default=[]),
        "columns": list_of("The table's own columns, in order.", ref("column"), default=[]),
        "row_keys": list_of(
            "Columns by which rows are partitioned, sorted and found; together they name a row. Never null.",
            ref("column_name"),
            default=[],
        ),
        "unique": flag(
            "Whether no two rows may have the same row keys. A load checks its rows against each other and against "
            "the rows of the leaves that they belong to, and refuses duplicates or, with `--on-duplicate skip`, "
            "leaves them out.",
            False,
        ),
        "sort_keys": list_of("Columns by which rows of equal row keys are sorted.", ref("column_name"), default=[]),
        "partitions": ref("partitions"),
        "indexes": {
            "type": "array",
            "description": "Indexes on columns; kept up by loads.",
            "items": {"oneOf": index_schemas()},
            "default": [],
        },
        "services": ref("services", "What keeps the table healthy; over what the instance declares for all tables."),
        "online": flag(
            "Whether services and splits of leaves run on the table by themselves; loads, queries and what is run by "
            "hand work either way.",
            True,
        ),
        "deletion_protection": flag("Whether deleting the table while it holds rows is refused.", True),
        "storage": ref("storage"),
        "tags": _TAGS,
        "renamed_from": text(
            "The table's name before a rename, `database.name` or `name` alone, so that its data is kept.",
            pattern=rf"^({_NAME}\.)?{_NAME}$",
            patternErrorMessage="write `database.name`, or `name` in the same database",
        ),
    },
    patternProperties={"^x-": True},
)

_STACKS: Json = {
    "description": "The stack, or stacks, that this is for.",
    "anyOf": [text("A stack.", minLength=1), list_of("Several stacks.", text("A stack.", minLength=1), minItems=1)],
}

_INCLUDE = object_schema(
    "Include",
    "Reads other spec files as if they stood here.",
    ("include",),
    {
        "include": list_of(
            "Paths or globs, relative to this file; `**` matches folders. They stay inside the project's folder.",
            text("A path or glob.", minLength=1),
            minItems=1,
            examples=[["tables/*.yaml"]],
        ),
        "stack": _STACKS,
    },
)

_ANY_SCALAR: Json = {"type": ["string", "number", "boolean"], "description": "A value."}
_VARIABLES = object_schema(
    "Variables",
    "Values by stack: `${name}` in any value of the specs stands for the variable, `$${` for the text `${`. Nothing is "
    "evaluated. A value comes from `deployer:NAME` in Pulumi.STACK.yaml, else from `stacks`, else it is the default.",
    ("kind", "variables"),
    {
        "kind": constant("Variables", "Declares variables."),
        "variables": {
            "type": "object",
            "description": "Variables by name.",
            "propertyNames": ref("name"),
            "additionalProperties": object_schema(
                "Variable",
                "A variable.",
                (),
                {
                    "type": choice("Type of the value; else that of the default, else string.", VARIABLE_TYPES),
                    "default": {**_ANY_SCALAR, "description": "The value where a stack sets none."},
                    "description": text("What the variable is for."),
                },
            ),
        },
        "stacks": {
            "type": "object",
            "description": "Values by stack and name.",
            "additionalProperties": {
                "type": "object",
                "description": "Values of one stack by name.",
                "additionalProperties": _ANY_SCALAR,
            },
            "default": {},
        },
    },
)

_OVERLAY = object_schema(
    "Overlay",
    "What stacks have otherwise. Mappings are merged, null removes a property, lists of things with names (columns, "
    "fields, indexes, clusters) are merged by name, an item `{name: x, remove: true}` removes one, anything else is "
    "replaced.",
    ("kind", "stack", "target", "set"),
    {
        "kind": constant("Overlay", "Declares an overlay."),
        "stack": _STACKS,
        "target": text(
            "What it changes.",
            pattern=rf"^(table/{_NAME}\.{_NAME}|schema/{_NAME}|instance/{_DASHED})$",
            patternErrorMessage="write table/DATABASE.NAME, schema/NAME or instance/NAME",
            examples=["table/nyc.flights", "instance/nyc"],
        ),
        "set": {
            "type": "object",
            "description": "The properties that differ.",
            "additionalProperties": {
                "description": "A value; null removes it. In lists, `{name: x, remove: true}` removes an item."
            },
        },
    },
)

KINDS = ("Instance", "Schema", "Table", "Variables", "Overlay")


@cache
def json_schema() -> Json:
    """The JSON Schema of one document of a spec file. The value is shared: do not change it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "deployer spec",
        "description": "One document of a spec file: a resource, what differs by stack, or an include of other files.",
        "oneOf": [*({"$ref": f"#/$defs/{kind}"} for kind in KINDS), {"$ref": "#/$defs/Include"}],
        "$defs": {
            "Instance": _INSTANCE,
            "Schema": _SCHEMA,
            "Table": _TABLE,
            "Variables": _VARIABLES,
            "Overlay": _OVERLAY,
            "Include": _INCLUDE,
            "column": _COLUMN,
            "type": {
                "description": "Type of the values, as text such as `int64` or `list<string>`, or in the long form.",
                "anyOf": [{"type": "string", "format": "column-type", "description": "A type."}, ref("nested_type")],
            },
            "nested_type": _NESTED_TYPE,
            "element": _ELEMENT,
            "element_type": {
                "description": "A type, or a type with nullability and description.",
                "anyOf": [
                    {"type": "string", "format": "column-type", "description": "A type."},
                    ref("element"),
                    ref("nested_type"),
                ],
            },
            "sized_list": object_schema(
                "Fixed-size list",
                "A list that always has the same length.",
                ("item", "size"),
                {"item": ref("element_type", "The items."), "size": count("Number of items.", 1, 2**31 - 1)},
            ),
            "partitions": _PARTITIONS,
            "storage": _STORAGE,
            "services": services_schema(),
            "raw_service": raw_service_schema(),
            "trigger": trigger_schema(),
            "name": text(
                "A name.", pattern=f"^{_NAME}$", patternErrorMessage=_NAME_HINT, minLength=1, maxLength=MAX_NAME
            ),
            "column_name": text(
                "A column's name.",
                format="column-name",
                pattern=column_names.PATTERN,
                patternErrorMessage=column_names.HINT,
                minLength=1,
                maxLength=column_names.MAX_NAME,
            ),
            "column_path": text(
                "A column, or `column.field` of a struct.",
                format="column-path",
                pattern=column_names.PATH_PATTERN,
                patternErrorMessage="write a column's name, or `column.field`",
            ),
            "dashed_name": text(
                "A name.", pattern=f"^{_DASHED}$", patternErrorMessage=_DASHED_HINT, minLength=1, maxLength=MAX_NAME
            ),
        },
    }
