"""Checks of services that do not come from specs, by the rules of specs.

Such services are texts of the client and of commands, or are read from the state store.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from deployer.errors import InvalidInput, Position
from deployer.specs.declarations.services import Defaults, read_services
from deployer.specs.model import ServiceSpec
from deployer.specs.rules import Rule
from deployer.specs.schema.parts import Json
from deployer.specs.schema.services import (
    KINDS,
    MODES,
    declared_options,
    option_names,
    option_schema,
    services_schema,
    trigger_schema,
)
from deployer.specs.schema.targets import TARGETS
from deployer.specs.serialized.services import service_to_json
from deployer.specs.types.column_names import split_names
from deployer.specs.types.lance_support import is_time_zone
from deployer.specs.types.types import Column
from deployer.specs.validation.faults import Shape
from deployer.specs.validation.messages import shape_problems
from deployer.specs.validation.plain_values import as_node
from deployer.specs.values.schedules import check_schedule
from deployer.specs.yaml.suggestions import one_of


def options_from_text(kind: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """Returns the options with the types of the schema, in canonical form, without options that equal their defaults.

    A list is JSON, or names with commas between them. Targets of METASYNC may be written as their types, such as
    `glue,directory`. Raises InvalidInput for the first option that is unknown or that the schema does not accept.
    """
    return options_of_values(kind, {name: _of_option(kind, name, text) for name, text in texts.items()})


def options_of_values(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options as `options_from_text` does. `values` are in the form of specs or in canonical form."""
    for name, value in values.items():
        _schema(kind, name)  # raises for an unknown option
        problems, _ = shape_problems(_option_shape(kind, name), as_node(value), f"`{name}`")
        if problems:
            raise InvalidInput(f"{kind}: {problems[0].what}", remedy=problems[0].remedy)
    return declared_options(kind, values) if kind in KINDS else {}


def service_from_texts(
    kind: str,
    texts: Mapping[str, str] | None,
    *,
    before: ServiceSpec | None = None,
    trigger_mode: str | None = None,
    cluster: str | None = None,
    unsafe_raw: bool = False,
    columns: Sequence[Column],
    keys: Sequence[str],
    clusters: Collection[str],
) -> ServiceSpec:
    """Returns the service that a caller requests, for a table with `columns` and the row and sort keys `keys`.

    `texts` are options, and conditions of the trigger such as `schedule` or `commits`. Options replace all options of
    `before`, and conditions replace all its conditions; settings without a new value are those of `before`.
    `trigger_mode` is in any letter case. Raises InvalidInput for the first fault.
    """
    given = dict(texts or {})
    conditions = {name: given.pop(name) for name in tuple(given) if name in trigger_schema()["properties"]}
    form = service_to_json(before) if before else {}
    mode = None if trigger_mode is None else trigger_mode.upper()
    if mode is not None and mode not in MODES:
        raise InvalidInput(f"unknown trigger mode `{trigger_mode}`", remedy=one_of(mode, MODES))
    if conditions:
        form.pop("trigger_mode", None)
        schemas = trigger_schema()["properties"]
        form["trigger"] = {name: _typed(schemas[name], text, name) for name, text in conditions.items()}
    elif mode == "ON_DEMAND":
        form.pop("trigger", None)
    if mode is not None:
        form["trigger_mode"] = mode
    if unsafe_raw:
        form["unsafe_raw"], form["options"] = True, given
    elif texts is not None and (given or not conditions):
        form.pop("unsafe_raw", None)
        form["options"] = {name: _of_option(kind, name, text) for name, text in given.items()}
    if cluster is not None:
        form["cluster"] = cluster
    document = as_node({kind.lower(): form})
    problems, _ = shape_problems(_services_shape(), document, "services")
    if problems:
        raise InvalidInput(f"{kind}: {problems[0].what}", remedy=problems[0].remedy)
    (service,) = read_services(document, Defaults(clusters=clusters), columns, keys, lambda _: True, _refuse)
    return service


def fault_of_service(kind: str, form: Mapping[str, Any]) -> str:
    """Returns the first fault of a service in the form of specs or in canonical form; empty for a valid service.

    Does not check clusters, columns and options that are declared as unchecked. A run of the service checks them.
    """
    if kind not in KINDS:
        return f"{kind} is not attached to tables"
    problems, _ = shape_problems(_services_shape(), as_node({kind.lower(): dict(form)}), "services")
    if problems:
        return problems[0].what
    trigger = form.get("trigger") or {}
    try:
        if "schedule" in trigger:
            check_schedule(str(trigger["schedule"]))
    except InvalidInput as error:
        return error.what
    zone = str(trigger.get("timezone", "UTC"))
    return "" if is_time_zone(zone) and zone[0] not in "+-" else f"unknown time zone `{zone}`"


@cache
def _services_shape() -> Shape:
    return Shape(services_schema())


@cache
def _option_shape(kind: str, name: str) -> Shape:
    return Shape(_schema(kind, name))


def _refuse(_at: Position, _rule: Rule, what: str, remedy: str) -> None:
    raise InvalidInput(what, remedy=remedy)


def _schema(kind: str, name: str) -> Json:
    if kind not in KINDS:
        raise InvalidInput(f"{kind} has no option `{name}`", remedy="it has none: leave it out")
    if name not in option_names(kind):
        raise InvalidInput(f"{kind} has no option `{name}`", remedy=one_of(name, option_names(kind)))
    return option_schema(kind, name)


def _of_option(kind: str, name: str, text: str) -> Any:
    return _typed(_schema(kind, name), text, name)


def _typed(schema: Json, text: str, name: str) -> Any:
    """Returns the value of `text` in the schema's type. Returns the text itself where it has no such value; the check
    of the shape then reports it."""
    text = text.strip()
    match schema["type"]:
        case "integer" if re.fullmatch(r"[-+]?[0-9]+", text):
            return int(text)
        case "number" if re.fullmatch(r"[-+]?[0-9]*\.?[0-9]+", text):
            return float(text)
        case "boolean" if text.lower() in ("true", "false"):
            return text.lower() == "true"
        case "array" | ["string", "array"] if text.startswith("["):
            try:
                return json.loads(text)
            except ValueError as error:
                raise InvalidInput(
                    f"`{name}` is not valid JSON: {error}", remedy='write a list such as ["a", "b"]'
                ) from error
        case "array":
            return [{"type": item} if item in TARGETS else item for item in split_names(text, name)]
        case _:
            return text
