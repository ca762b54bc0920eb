"""Restores dataclasses from the JSON of `dataclasses.asdict`, such as the results of jobs.

The log has another form (`codec`), in which tuples of dataclasses are columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def from_asdict(kind: type[T], document: Any, *, skip_unknown: bool = False) -> T:
    """Returns the dataclass of a document from `asdict`.

    Raises ValueError for another shape. `skip_unknown`: fields that the class does not have, such as those of a newer
    release, are ignored instead of refused. JSON values, such as those of maps, are not checked.
    """
    made: T = _dataclass(kind, document, skip_unknown)
    return made


def _dataclass(kind: Any, document: Any, skip_unknown: bool) -> Any:
    if not isinstance(document, Mapping):
        raise _misfit(kind, document)
    hints = get_type_hints(kind)
    known = {each.name for each in fields(kind)}
    if not skip_unknown and document.keys() - known:
        raise _misfit(kind, document)
    given = {name: _value(hints[name], value, skip_unknown) for name, value in document.items() if name in known}
    try:
        return kind(**given)
    except TypeError as error:  # a required field is missing
        raise ValueError(str(error)) from None


def _value(kind: Any, value: Any, skip_unknown: bool) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _first_fitting(kind, arguments, value, skip_unknown)
    if origin is tuple:
        return _tuple(kind, arguments, value, skip_unknown)
    if origin is Mapping and isinstance(value, Mapping):
        return {name: _value(arguments[1], each, skip_unknown) for name, each in value.items()}
    if origin is Literal:
        fits = value in arguments
    elif is_dataclass(kind):
        return _dataclass(kind, value, skip_unknown)
    elif kind is float:
        fits = isinstance(value, float | int) and not isinstance(value, bool)
    elif isinstance(kind, type):
        fits = isinstance(value, kind) and (not isinstance(value, bool) or kind is bool)
    else:  # anything that JSON can hold
        fits = True
    if not fits:
        raise _misfit(kind, value)
    return value


def _first_fitting(kind: Any, kinds: tuple[Any, ...], value: Any, skip_unknown: bool) -> Any:
    for each in kinds:
        try:
            return _value(each, value, skip_unknown)
        except ValueError:
            continue
    raise _misfit(kind, value)


def _tuple(kind: Any, kinds: tuple[Any, ...], value: Any, skip_unknown: bool) -> Any:
    if not isinstance(value, list | tuple):
        raise _misfit(kind, value)
    of_items = kinds[:1] * len(value) if kinds[-1] is ... else kinds
    if len(of_items) != len(value):
        raise _misfit(kind, value)
    return tuple(_value(each, item, skip_unknown) for each, item in zip(of_items, value, strict=True))


def _misfit(kind: Any, value: Any) -> ValueError:
    return ValueError(f"{value!r:.60} is not a valid {getattr(kind, '__name__', kind)}")
