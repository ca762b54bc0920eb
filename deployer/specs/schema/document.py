"""The JSON Schema (draft 2020-12) of one document of a spec file.

Editors complete fields from it, and docs/spec.md is generated from it. `deployer.specs.validation.faults` compiles it.
`deployer.specs.validation.messages` explains errors of every keyword that it uses.
"""

from __future__ import annotations

from functools import cache

from deployer.specs.schema.datasets import DATASET, DATASET_SERVICE, DATASET_SERVICES, RECORDING_SOURCE, SEARCH_INDEX
from deployer.specs.schema.environments import INCLUDE, OVERLAY, VARIABLES
from deployer.specs.schema.ingest import ingest_schema
from deployer.specs.schema.instances import INSTANCE
from deployer.specs.schema.parts import (
    DASHED_NAME,
    Json,
    count,
    object_schema,
    ref,
    text,
)
from deployer.specs.schema.services import raw_service_schema, services_schema, trigger_schema
from deployer.specs.schema.tables import (
    COLUMN,
    COMPUTED,
    ELEMENT,
    HOLD,
    NESTED_TYPE,
    PARTITIONS,
    RETENTION,
    SCHEMA,
    STORAGE,
    TABLE,
)
from deployer.specs.schema.views import VIEW, VIEW_COLUMN, VIEW_FUNCTION
from deployer.specs.types import column_names
from deployer.state.model.names import MAX_NAME, NAME

_NAME_HINT = "use letters, digits and _, and start with a letter or _"

_DASHED_HINT = "use letters, digits, _ and -, and start with a letter or _"

KINDS = ("Instance", "Schema", "Table", "View", "Dataset", "Variables", "Overlay")


@cache
def json_schema() -> Json:
    """Returns the JSON Schema of one document of a spec file. All callers share the result: do not change it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "deployer spec",
        "description": "One document of a spec file: a resource, what differs by stack, or an include of other files.",
        "oneOf": [*({"$ref": f"#/$defs/{kind}"} for kind in KINDS), {"$ref": "#/$defs/Include"}],
        "$defs": {
            "Instance": INSTANCE,
            "Schema": SCHEMA,
            "Table": TABLE,
            "View": VIEW,
            "Dataset": DATASET,
            "Variables": VARIABLES,
            "Overlay": OVERLAY,
            "Include": INCLUDE,
            "column": COLUMN,
            "view_column": VIEW_COLUMN,
            "view_function": VIEW_FUNCTION,
            "recording_source": RECORDING_SOURCE,
            "search_index": SEARCH_INDEX,
            "dataset_services": DATASET_SERVICES,
            "dataset_service": DATASET_SERVICE,
            "computed": COMPUTED,
            "type": {
                "description": "Type of the values, as text such as `int64` or `list<string>`, or in the long form.",
                "anyOf": [{"type": "string", "format": "column-type", "description": "A type."}, ref("nested_type")],
            },
            "nested_type": NESTED_TYPE,
            "element": ELEMENT,
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
            "partitions": PARTITIONS,
            "storage": STORAGE,
            "retention": RETENTION,
            "hold": HOLD,
            "services": services_schema(in_specs=True),
            "ingest": ingest_schema(),
            "raw_service": raw_service_schema(),
            "trigger": trigger_schema(),
            "name": text(
                "A name.", pattern=f"^{NAME}$", patternErrorMessage=_NAME_HINT, minLength=1, maxLength=MAX_NAME
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
                "A name.", pattern=f"^{DASHED_NAME}$", patternErrorMessage=_DASHED_HINT, minLength=1, maxLength=MAX_NAME
            ),
        },
    }
