"""Small builders of JSON Schema, which require a description of every part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployer.platform.text import units

Json = dict[str, Any]

DASHED_NAME = "[A-Za-z_][A-Za-z0-9_-]*"  #: the pattern of names that are not used in SQL
#: characters that JavaScript, Python or Rust treats as white space, for use inside the brackets of a pattern
WHITE_SPACE = r"\s\u001c-\u001f\u0085\ufeff"

TAGS: Json = {
    "type": "object",
    "description": "Labels for people and tools; keys and values are text.",
    "additionalProperties": {"type": "string", "description": "A label's value."},
    "default": {},
}


def object_schema(
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


def text(description: str, **more: Any) -> Json:
    return {"type": "string", "description": description, **more}


def flag(description: str, default: bool | None = None) -> Json:
    return {"type": "boolean", "description": description} | ({} if default is None else {"default": default})


def count(description: str, low: int, high: int, **more: Any) -> Json:
    return {"type": "integer", "description": description, "minimum": low, "maximum": high, **more}


def share(description: str, **more: Any) -> Json:
    return {"type": "number", "description": description, "minimum": 0.001, "maximum": 1, **more}


def size(description: str, **more: Any) -> Json:
    """Returns the schema of a size: a number of bytes, or text such as `256MB`. `units.parse_size` reads both."""
    return {
        "type": ["string", "integer"],
        "format": "bytes",
        "description": description,
        "pattern": units.SIZE,
        "patternErrorMessage": "write a size such as 256MB or 1GiB",
        "minimum": 1,
        "maximum": units.LARGEST_SIZE,
        **more,
    }


def duration(description: str, **more: Any) -> Json:
    return text(
        description,
        pattern=units.SPEC_DURATION,
        patternErrorMessage="write a number and d for days or h for hours, such as 7d",
        **more,
    )


def list_of(description: str, item: Json, **more: Any) -> Json:
    return {"type": "array", "description": description, "items": item, **more}


def choice(description: str, values: tuple[str, ...], **more: Any) -> Json:
    return {"type": "string", "description": description, "enum": list(values), **more}


def ref(name: str, description: str = "") -> Json:
    return {"$ref": f"#/$defs/{name}"} | ({"description": description} if description else {})


def constant(value: str | bool, description: str) -> Json:
    return {"const": value, "description": description}
