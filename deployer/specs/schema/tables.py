"""The JSON Schema of tables, of the schemas that tables share, and of columns."""

from __future__ import annotations

from deployer.specs.schema.index_kinds import index_schemas
from deployer.specs.schema.parts import (
    TAGS,
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
from deployer.specs.types.column_names import MAX_SOURCE
from deployer.specs.types.computed import VERSION
from deployer.state.model.names import NAME

COLUMN = object_schema(
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
            "SQL for rows that come without the column, such as `0`, `'none'` or `distance * 2`; rows that "
            "exist when it is added get it too. Not inside of structs."
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
        "computed": ref(
            "computed",
            "How the values are made of other columns. Loads do not bring them; a backfill computes them. Not inside "
            "of structs, and not for row keys and sort keys.",
        ),
        "sensitive": flag(
            "Whether `deployer ui` and `deployer report` hide the values, and those of columns that are made of them. "
            "Commands that read rows show them.",
            False,
        ),
    },
)

COMPUTED = object_schema(
    "Computed column",
    "How the values of a column are made: by `sql`, or by `udf` with `inputs`.",
    (),
    {
        "sql": text("One SQL expression over columns of the table, such as `distance * 1.609344`."),
        "udf": text(
            "A Python function of the project as `package.module:function`, which only jobs import; or the name of the "
            "function whose package `function` names."
        ),
        "inputs": list_of("The columns that the function gets, in order.", ref("column_name")),
        "version": text(
            "The version of the function. Another one makes the column stale, so that a backfill computes it again. "
            "If omitted, a hash of the module's source text, if the project has the file.",
            pattern=f"^{VERSION}$",
            patternErrorMessage="use up to 64 letters, digits and . _ + -",
        ),
        "function": text(
            "The hash of the function's package below the root, as `add_columns` makes it.",
            pattern="^[0-9a-f]{16,128}$",
            patternErrorMessage="write the hash that `deployer column list` shows",
        ),
        "output": text("The name of the output of a function that makes several columns."),
        "on_load": flag("Whether rows that are loaded or changed get their values at once.", False),
    },
)

ELEMENT = object_schema(
    "Element",
    "What a list or map holds, with its nullability or description.",
    ("type",),
    {
        "type": ref("type"),
        "nullable": flag("Whether it may be null.", True),
        "description": text("What it means."),
    },
)

NESTED_TYPE = object_schema(
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

STORAGE = object_schema(
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
            "How long the old data stays after a rewrite replaced it, for programs that still read it and for "
            "`query --at`; the next `up` after that removes it.",
            default="7d",
        ),
    },
)

_SCALAR: Json = {"type": ["string", "number", "boolean"], "description": "A value of the first row key."}

PARTITIONS = object_schema(
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
            "A leaf with more rows is split after a load, as `deployer table split` does. If omitted, leaves "
            "are only split on request.",
            1,
            2**53,
        ),
    },
)

EMBEDDING = object_schema(
    "Embedding",
    "The function that makes vectors of texts, by which a text is searched in a column of vectors.",
    ("function", "column", "vector"),
    {
        "function": text(
            "The Python function as `package.module:function`: it gets a list of texts, and returns a vector for each. "
            "It is imported only by searches whose caller trusts it."
        ),
        "column": {
            "type": "string",
            "description": "The column of the texts; a field of a struct as `address.city`.",
            "format": "column-path",
        },
        "vector": {
            "type": "string",
            "description": "The column of their vectors, of a type such as `vector<float32, 384>`.",
            "format": "column-path",
        },
    },
)

RETENTION = object_schema(
    "Retention",
    "How long rows are kept. The service EXPIRE, which a table with retention has, removes those that are older.",
    ("column", "keep"),
    {
        "column": ref(
            "column_name",
            "The date or timestamp that says how old a row is; one without a time zone is taken as UTC. Rows in which "
            "it is null never expire.",
        ),
        "keep": duration("How long a row is kept at least, such as `400d`. A date counts from the end of its day."),
    },
)

HOLD = object_schema(
    "Hold",
    "A legal hold. While it is declared, the rows that it covers are not deleted, changed, expired or erased.",
    ("name",),
    {
        "name": ref("dashed_name", "Name of the hold, by which refusals refer to it."),
        "where": text("SQL condition of the rows that it covers, such as `account = 'A-17'`. If omitted, every row."),
        "reason": text("Why it is held, such as the number of a case."),
    },
)

SCHEMA = object_schema(
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

TABLE = object_schema(
    "Table",
    "A table, stored as one Lance dataset.",
    ("kind", "database", "name"),
    {
        "kind": constant("Table", "Declares a table."),
        "database": ref("name", "Database of the table; the first half of its full name."),
        "name": ref("name", "Name of the table within its database."),
        "description": text("Description of a row."),
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
        "embedding": EMBEDDING,
        "services": ref(
            "services",
            "Services of the table. They take precedence over those that the instance declares for all tables.",
        ),
        "retention": ref("retention", "How long rows are kept; forever unless set."),
        "ingest": ref("ingest", "Files that are loaded by themselves as they come, each once; none unless set."),
        "holds": list_of("Legal holds: rows that no request deletes or changes.", ref("hold"), default=[]),
        "retain_changes": duration(
            "How long the change feed can be read: CLEAN keeps the versions that it needs, whatever its options, and "
            "datasets that a rewrite replaced stay as long. Unless set, changes go with versions that CLEAN removes."
        ),
        "online": flag(
            "Whether services and splits of leaves run on the table by themselves; loads, queries and what is run by "
            "hand work either way.",
            True,
        ),
        "deletion_protection": flag("Whether deleting the table while it holds rows is refused.", True),
        "storage": ref("storage"),
        "tags": TAGS,
        "renamed_from": text(
            "The table's name before a rename, `database.name` or `name` alone, so that its data is kept.",
            pattern=rf"^({NAME}\.)?{NAME}$",
            patternErrorMessage="write `database.name`, or `name` in the same database",
        ),
    },
    patternProperties={"^x-": True},
)
