"""The JSON Schema for editors. It describes documents before variables are resolved, so any value may be `${name}`."""

from __future__ import annotations

from typing import Any

from deployer.specs.schema.document import json_schema

_REFERENCE = {"type": "string", "pattern": r"\$\{", "description": "A value with a variable in it."}
_TYPED = ("integer", "number", "boolean")
_NARROW = ("enum", "pattern")


def editor_schema() -> dict[str, Any]:
    """Returns a copy of `json_schema()` that also accepts a text with `${` for numbers, flags, names and choices."""
    found: dict[str, Any] = _widened(json_schema())
    return found


def _widened(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_widened(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    widened = {
        key: {name: _widened(child) for name, child in value.items()}
        if key in ("properties", "$defs")
        else value
        if key == "propertyNames"
        else _widened(value)
        for key, value in schema.items()
    }
    of_text = schema.get("type") == "string" or schema.get("format") == "bytes"
    narrow = schema.get("type") in _TYPED or (of_text and any(key in schema for key in _NARROW))
    if not narrow:
        return widened
    about = {key: widened.pop(key) for key in ("description", "default", "examples") if key in widened}
    return {**about, "anyOf": [widened, _REFERENCE]}
