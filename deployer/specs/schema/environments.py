"""The JSON Schema of the documents that control how other documents are read: Include, Variables and Overlay."""

from __future__ import annotations

from deployer.specs.schema.parts import (
    DASHED_NAME,
    Json,
    choice,
    constant,
    list_of,
    object_schema,
    ref,
    text,
)
from deployer.state.model.names import NAME

VARIABLE_TYPES = ("string", "integer", "number", "boolean")

_STACKS: Json = {
    "description": "The stack, or stacks, that this is for.",
    "anyOf": [text("A stack.", minLength=1), list_of("Several stacks.", text("A stack.", minLength=1), minItems=1)],
}

INCLUDE = object_schema(
    "Include",
    "Reads other spec files as if their text were here.",
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

VARIABLES = object_schema(
    "Variables",
    "Values by stack: `${name}` in any value of the specs is replaced by the variable, `$${` by the text `${`. "
    "Nothing is evaluated. A value comes from `deployer:NAME` in Pulumi.STACK.yaml, else from `stacks`, else it is "
    "the default.",
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
                    "description": text("Purpose of the variable."),
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

OVERLAY = object_schema(
    "Overlay",
    "Fields that one stack sets differently. Mappings are merged, null removes a property, lists of things with names "
    "(columns, fields, indexes, clusters) are merged by name, an item `{name: x, remove: true}` removes one, anything "
    "else is replaced.",
    ("kind", "stack", "target", "set"),
    {
        "kind": constant("Overlay", "Declares an overlay."),
        "stack": _STACKS,
        "target": text(
            "The resource that it changes.",
            pattern=rf"^(table/{NAME}\.{NAME}|schema/{NAME}|(instance|dataset)/{DASHED_NAME})$",
            patternErrorMessage="write table/DATABASE.NAME, schema/NAME, dataset/NAME or instance/NAME",
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
