"""Results of jobs that ran elsewhere, made again from the JSON that `dataclasses.asdict` gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def from_json(kind: type[T], document: Mapping[str, Any]) -> T:
    """The value of a dataclass; fields that it does not have are left out."""
    hints = get_type_hints(kind)
    given = {each.name: _value(hints[each.name], document[each.name]) for each in fields(kind) if each.name in document}  # type: ignore[arg-type]
    return kind(**given)


def _value(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        (kind,) = (each for each in arguments if each is not type(None))
        return _value(kind, value)
    if origin is tuple:
        kinds = (arguments[0],) * len(value) if len(arguments) == 2 and arguments[1] is ... else arguments
        return tuple(_value(each, item) for each, item in zip(kinds, value, strict=True))
    if origin is Mapping:
        return {name: _value(arguments[1], each) for name, each in value.items()}
    if isinstance(kind, type) and is_dataclass(kind):
        return from_json(kind, value)
    return value
