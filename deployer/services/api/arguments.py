"""Checks the arguments of calls from Python before any work; an error names the wrong argument."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Signature, signature
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

from deployer.errors import InvalidInput

P = ParamSpec("P")
T = TypeVar("T")


def checked(call: Callable[P, T]) -> Callable[P, T]:
    """Returns the method, which raises InvalidInput for an argument whose value its annotation does not allow.

    Annotations are `str`, `bool`, `float` (a time in seconds, at least 0) and `Mapping[str, str]`, or one of them or
    None. Other annotations are not checked.
    """
    of = signature(call)
    hints: dict[str, Any] = {}

    @wraps(call)
    def checking(*args: P.args, **kwargs: P.kwargs) -> T:
        if not hints:  # not at the definition, when names of the module may not exist yet
            hints.update(get_type_hints(call))
        _check(of, hints, args, kwargs)
        return call(*args, **kwargs)

    return checking


def _check(of: Signature, hints: Mapping[str, Any], args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
    try:
        given = of.bind(*args, **kwargs).arguments
    except TypeError:
        return  # the call says which argument is missing or unknown
    for name, value in given.items():
        if name not in hints:
            continue
        kinds = [each for each in get_args(hints[name]) if each is not type(None)]
        optional = type(None) in get_args(hints[name]) and len(kinds) == 1
        if optional and value is None:
            continue
        _check_one(name, value, kinds[0] if optional else hints[name])


def _check_one(name: str, value: object, kind: Any) -> None:
    if kind is str and not isinstance(value, str):
        raise _wrong(name, value, "a text")
    if kind is bool and not isinstance(value, bool):
        raise _wrong(name, value, "True or False")
    if kind is float:
        _check_seconds(name, value)
    if getattr(kind, "__origin__", None) is Mapping:
        _check_texts(name, value)


def _check_seconds(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(name, value, "a number of seconds")
    if not math.isfinite(value) or value < 0:
        raise InvalidInput(
            f"`{name}` is {value}", remedy="give a number of seconds that is at least 0, or leave it out"
        )


def _check_texts(name: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise _wrong(name, value, "a mapping of texts to texts")
    for key, each in value.items():
        if not isinstance(key, str):
            raise _wrong(f"{name}: key {key!r}", key, "a text")
        if not isinstance(each, str):
            raise _wrong(
                f'{name}["{key}"]', each, f'a text such as "{each}"' if isinstance(each, int | float) else "a text"
            )


def _wrong(name: str, value: object, wanted: str) -> InvalidInput:
    what = "None" if value is None else f"of type {type(value).__name__}"
    return InvalidInput(f"`{name}` is {what}", remedy=f"give {wanted}")
