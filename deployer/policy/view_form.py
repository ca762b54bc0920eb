"""The JSON form of the rows for rules, for the process that runs Python rules. Each row is a list of its values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import fields
from operator import attrgetter
from types import MappingProxyType
from typing import Any, TypeVar

from deployer.platform.isolation.carried import position_as_json, position_of
from deployer.policy.rows import ChangeRow, ColumnRow, PlanView, ResourceRow

Row = TypeVar("Row", ChangeRow, ResourceRow, ColumnRow)


def view_to_json(view: PlanView) -> dict[str, Any]:
    """Returns the view as JSON, which `view_from_json` reads."""
    return {
        "stack": view.stack,
        "instance": view.instance,
        "changes": _lists(ChangeRow, view.changes),
        "resources": _lists(ResourceRow, view.resources),
        "columns": _lists(ColumnRow, view.columns),
        "now": view.now.isoformat(),
        "is_live": view.is_live,
    }


def view_from_json(document: Mapping[str, Any]) -> PlanView:
    return PlanView(
        document["stack"],
        document["instance"],
        _rows(ChangeRow, document["changes"]),
        _rows(ResourceRow, document["resources"]),
        _rows(ColumnRow, document["columns"]),
        dt.datetime.fromisoformat(document["now"]),
        document["is_live"],
    )


def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _lists(kind: type[Any], rows: tuple[Any, ...]) -> list[list[Any]]:
    names = _names(kind)
    values, special = attrgetter(*names), _special(names, _TO_JSON)
    return [_converted(list(values(row)), special) for row in rows]


def _rows(kind: type[Row], lists: list[list[Any]]) -> tuple[Row, ...]:
    special = _special(_names(kind), _FROM_JSON)
    return tuple(kind(*_converted(listed, special)) for listed in lists)


Converters = Mapping[str, Callable[[Any], Any]]
_Special = list[tuple[int, Callable[[Any], Any]]]


def _special(names: tuple[str, ...], converters: Converters) -> _Special:
    return [(index, converters[name]) for index, name in enumerate(names) if name in converters]


def _converted(values: list[Any], special: _Special) -> list[Any]:
    for index, convert in special:
        if values[index] is not None:
            values[index] = convert(values[index])
    return values


_TO_JSON: Converters = {
    "at": position_as_json,
    "tags": dict,
    "added_at": dt.datetime.isoformat,
    "row_keys": list,
    "sort_keys": list,
    "indexes": list,
}
#: converters of JSON values to values of rows; tags become read-only, so that a rule cannot change them for later rules
_FROM_JSON: Converters = {
    "at": position_of,
    "tags": MappingProxyType,
    "added_at": dt.datetime.fromisoformat,
    "row_keys": tuple,
    "sort_keys": tuple,
    "indexes": tuple,
}
