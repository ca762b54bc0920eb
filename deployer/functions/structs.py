"""Structures in Python: NamedTuples, dataclasses, TypedDicts and models of pydantic."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping
from typing import Any

from deployer.errors import InvalidFunction


def is_structure(annotation: Any) -> bool:
    """Returns whether a type has named fields with types."""
    return isinstance(annotation, type) and (
        dataclasses.is_dataclass(annotation)
        or (issubclass(annotation, tuple) and hasattr(annotation, "_fields"))
        or typing.is_typeddict(annotation)
        or _is_model(annotation)
    )


def structure_fields(structure: type, where: str) -> dict[str, Any]:
    """Returns the names and annotations of the fields. Raises InvalidFunction for annotations that cannot be
    evaluated."""
    try:
        hints = typing.get_type_hints(structure, include_extras=True)
    except RecursionError:
        raise
    except Exception as error:  # whatever the text of an annotation raises
        raise InvalidFunction(
            f"the annotations of `{structure.__name__}` cannot be evaluated: {type(error).__name__}: {error}",
            where=where,
            remedy="define the class and the types that it names at the top of a module",
        ) from None
    if dataclasses.is_dataclass(structure):
        names = [field.name for field in dataclasses.fields(structure)]
    elif _is_model(structure):
        names = list(structure.model_fields)  # type: ignore[attr-defined]  # pydantic's
    elif typing.is_typeddict(structure):
        names = list(hints)
    else:
        names = list(structure._fields)  # type: ignore[attr-defined]  # of a NamedTuple
    untyped = [name for name in names if name not in hints]
    if untyped or not names:
        what = f"the field `{untyped[0]}` of `{structure.__name__}` has no type" if untyped else "it has no fields"
        raise InvalidFunction(what, where=where, remedy="use typing.NamedTuple or a dataclass, with a type per field")
    return {name: hints[name] for name in names}


def fields_of(value: Any) -> Mapping[str, Any] | None:
    """Returns the fields of a value that is a structure or a mapping; None for any other."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if _is_model(type(value)):
        return {name: getattr(value, name) for name in type(value).model_fields}
    return None


def maker(structure: type) -> Callable[[Mapping[str, Any]], Any]:
    """Returns a function that makes a value of the structure from its fields."""
    if typing.is_typeddict(structure):
        return dict
    return lambda fields: structure(**fields)


def _is_model(annotation: type) -> bool:
    return hasattr(annotation, "model_fields") and hasattr(annotation, "model_validate")
