"""The JSON Schema of materialized views."""

from __future__ import annotations

from deployer.platform.text.units import STALENESS_DURATION
from deployer.specs.schema.parts import constant, flag, list_of, object_schema, ref, text
from deployer.specs.schema.tables import TABLE

VIEW_COLUMN = object_schema(
    "View column",
    "Properties of a column that the query returns.",
    ("name",),
    {
        "name": ref("column_name", "Name of the column in the query."),
        "type": ref(
            "type", "The type that the query gives it; a plan checks it. Needed where a function has no `returns`."
        ),
        "nullable": {
            "type": "boolean",
            "description": "Whether it may be null; as the query says unless set. Row keys may not.",
        },
        "description": text("What the column means, with its unit."),
        "sensitive": flag(
            "Whether `deployer ui` and `deployer report` hide the values. Those that are made of sensitive columns are "
            "hidden anyway.",
            False,
        ),
    },
)

VIEW_FUNCTION = object_schema(
    "View function",
    "A Python function that the query calls, packaged below the root.",
    ("function",),
    {
        "function": text(
            "The hash of the function's package, as `add_columns` and `create_materialized_view` make it.",
            pattern="^[0-9a-f]{16,128}$",
            patternErrorMessage="write the hash that `deployer describe` shows",
        ),
        "returns": ref("type", "The type of its values. If omitted, `columns` must list all columns with their types."),
    },
)

#: properties that views share with tables
_OF_TABLES = (
    *("row_keys", "sort_keys", "partitions", "indexes", "embedding", "services", "retain_changes", "online"),
    *("deletion_protection", "storage", "tags", "renamed_from"),
)

VIEW = object_schema(
    "View",
    "A materialized view: a table whose rows are those of a query over other tables and views. A refresh writes them.",
    ("kind", "database", "name", "query"),
    {
        "kind": constant("View", "Declares a materialized view."),
        "database": ref("name", "Database of the view; the first half of its full name."),
        "name": ref("name", "Name of the view within its database; no table has the same."),
        "description": text("Description of a row."),
        "query": text(
            "One SELECT in DataFusion's SQL, with tables and views by their full names, such as `nyc.flights`. "
            "docs/views.md says what it may have.",
            minLength=1,
        ),
        "functions": {
            "type": "object",
            "description": "Functions that the query calls, by their names in it.",
            "additionalProperties": ref("view_function"),
            "default": {},
        },
        "max_staleness": text(
            "How old the state of the sources may be that the view shows, such as `1h`. `service check`, the agent and "
            "the report name views that are later.",
            pattern=STALENESS_DURATION,
            patternErrorMessage="write it as 90s, 15m, 1h or 7d",
        ),
        "columns": list_of(
            "Properties of columns that the query returns, in any order.", ref("view_column"), default=[]
        ),
        **{name: TABLE["properties"][name] for name in _OF_TABLES},
    },
    patternProperties={"^x-": True},
)
