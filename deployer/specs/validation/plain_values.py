"""Reads members of a JSON object with a check of their types, for documents that other programs may have written.

Each function returns the member `name` of `form`. It raises InvalidInput, which names the member, for a value of
another type. Without a `default` the member is required. Whole numbers may be doubles, because a protobuf Struct stores
all numbers as doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from deployer.errors import InvalidInput
from deployer.specs.yaml.nodes import Node

if TYPE_CHECKING:
    from deployer.specs.validation.faults import Shape

T = TypeVar("T")

_REQUIRED: Any = object()
_SHAPES: dict[str, Shape] = {}  # by the label of the part; created at the first use


def text(form: Mapping[str, Any], name: str, default: str = _REQUIRED) -> str:
    found = form.get(name)
    if isinstance(found, str):
        return found
    return str(_member(form, name, default, lambda value: isinstance(value, str), "text"))


def optional_text(form: Mapping[str, Any], name: str) -> str | None:
    return None if form.get(name) is None else text(form, name)


def flag(form: Mapping[str, Any], name: str, default: bool = _REQUIRED) -> bool:
    if default is not _REQUIRED and name not in form:  # as most are
        return default
    return bool(_member(form, name, default, lambda value: isinstance(value, bool), "true or false"))


def whole(form: Mapping[str, Any], name: str, default: int = _REQUIRED) -> int:
    return int(_member(form, name, default, _is_whole, "a whole number"))


def optional_whole(form: Mapping[str, Any], name: str) -> int | None:
    return None if form.get(name) is None else whole(form, name)


def texts(form: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Returns a list of texts as a tuple; empty where the member does not exist."""
    return tuple(
        _member(form, name, (), lambda value: _is_list(value, lambda item: isinstance(item, str)), "a list of texts")
    )


def mapping(form: Mapping[str, Any], name: str, default: Mapping[str, Any] = _REQUIRED) -> Mapping[str, Any]:
    if default is not _REQUIRED and name not in form:  # as most are
        return default
    found: Mapping[str, Any] = _member(form, name, default, is_object, "an object")
    return found


def objects(form: Mapping[str, Any], name: str, default: Sequence[Mapping[str, Any]] = _REQUIRED) -> Sequence[Any]:
    """Returns a list of objects."""
    found: Sequence[Any] = _member(form, name, default, lambda value: _is_list(value, is_object), "a list of objects")
    return found


def lists(form: Mapping[str, Any], name: str) -> Sequence[Sequence[Any]]:
    """Returns a list of lists; empty where the member does not exist."""
    found: Sequence[Any] = _member(form, name, (), lambda value: _is_list(value, _is_list), "a list of lists")
    return found


def text_map(form: Mapping[str, Any], name: str) -> dict[str, str]:
    """Returns a mapping of names to texts; empty where the member does not exist."""
    found = mapping(form, name, {})
    return {key: text(found, key) for key in found}


def is_object(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


def refuse_unfit(label: str, schema: Callable[[], Mapping[str, Any]], value: object) -> None:
    """Raises InvalidInput for a value that a part of the JSON Schema does not accept.

    `label` names the part, and errors name the value by the text after the label's last dot. `schema` returns the part;
    it is called only for a label without a compiled shape.
    """
    if label not in _SHAPES:
        from deployer.specs.validation.faults import Shape  # most documents do not need it

        _SHAPES[label] = Shape(schema())
    shape = _SHAPES[label]
    if shape.is_valid(_as_json(value)):
        return
    from deployer.specs.validation.messages import shape_problems

    problems, _ = shape_problems(shape, as_node(value), f"`{label.rpartition('.')[2]}`")
    if problems:
        raise InvalidInput(problems[0].what, remedy=problems[0].remedy)


def _as_json(value: Any) -> Any:
    match value:
        case str() | int() | float() | None:
            return value
        case Mapping():
            return {key: _as_json(item) for key, item in value.items()}
        case list() | tuple():
            return [_as_json(item) for item in value]
        case _:
            return value


def as_node(value: Any) -> Node:
    """Returns a plain value as a node of a spec, with line 1 and column 1 of a file without a name as its place."""
    match value:
        case Mapping():
            return Node({key: as_node(item) for key, item in value.items()}, "", 1, 1)
        case list() | tuple():
            return Node([as_node(item) for item in value], "", 1, 1)
        case _:
            return Node(value, "", 1, 1)


def _member(form: Mapping[str, T], name: str, default: Any, fits: Callable[[Any], bool], wanted: str) -> Any:
    value: Any = form.get(name, _REQUIRED)
    if value is _REQUIRED:
        if default is _REQUIRED:
            raise InvalidInput(f"`{name}` is missing")
        return default
    if not fits(value):
        raise InvalidInput(f"`{name}` is {_shown(value)} and should be {wanted}")
    return value


def _is_whole(value: object) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def _is_list(value: object, fits: Callable[[Any], bool] = lambda _: True) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes) and all(map(fits, value))


def _shown(value: object) -> str:
    match value:
        case None | bool() | int() | float():
            return str(value).lower()[:40]
        case str():
            return f"the text {value[:40]!r}"
        case Mapping():
            return "an object"
        case _:
            return "a list"
