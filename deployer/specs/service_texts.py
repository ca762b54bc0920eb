"""Options of services that come as texts, as the client's and the command's do, checked by the schema of specs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from deployer.errors import InvalidInput
from deployer.specs.schema_parts import Json
from deployer.specs.service_schema import TARGETS, declared_options, option_names, option_schema
from deployer.specs.shape_checks import Problems, compiled
from deployer.specs.words import one_of
from deployer.specs.yaml import Node


def options_from_text(kind: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """Options typed by the schema and in canonical form, those that equal their defaults left out.

    Lists are JSON or parted by commas; targets of METASYNC may be types alone, such as `glue,directory`. Raises
    InvalidInput for the first option that is unknown or that the schema does not take.
    """
    return declared_options(kind, {name: _value(kind, name, text) for name, text in texts.items()})


def _value(kind: str, name: str, text: str) -> Any:
    if name not in option_names(kind):
        raise InvalidInput(f"{kind} has no option `{name}`", remedy=one_of(name, option_names(kind)))
    schema = option_schema(kind, name)
    value = _typed(schema, text, name)
    problems: Problems = []
    compiled(schema)(_node(value), f"`{name}`", problems)
    if problems:
        raise InvalidInput(f"{kind}: {problems[0].what}", remedy=problems[0].remedy)
    return value


def _typed(schema: Json, text: str, name: str) -> Any:
    """The value that `text` means for the schema; the text itself where it means none, for the check to say so."""
    text = text.strip()
    match schema["type"]:
        case "integer" if re.fullmatch(r"[-+]?[0-9]+", text):
            return int(text)
        case "number" if re.fullmatch(r"[-+]?[0-9]*\.?[0-9]+", text):
            return float(text)
        case "boolean" if text.lower() in ("true", "false"):
            return text.lower() == "true"
        case "array" if text.startswith("["):
            try:
                return json.loads(text)
            except ValueError as error:
                raise InvalidInput(f"`{name}` is no JSON: {error}", remedy='write a list such as ["a", "b"]') from error
        case "array":
            items = [item.strip() for item in text.split(",") if item.strip()]
            return [{"type": item} if item in TARGETS else item for item in items]
        case _:
            return text


def _node(value: Any) -> Node:
    """A value as specs have it, without a place."""
    match value:
        case dict():
            return Node({key: _node(item) for key, item in value.items()}, "", 1, 1)
        case list():
            return Node([_node(item) for item in value], "", 1, 1)
        case _:
            return Node(value, "", 1, 1)
