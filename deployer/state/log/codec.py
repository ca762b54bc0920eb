"""Conversion of frozen dataclasses to JSON values and back, by the types of their fields.

One table defines how each type is written, so a class has no code for it. Bytes are written as base64. A tuple of
dataclasses is written as columns (`{"rows": [1, 2], "bytes": [10, 20]}`), which is short and fast for thousands of
files. A member of a closed union is written as an object with its `type`. The JSON is untrusted: numbers and nesting
are bounded, and a string that is a name or a location has a type that checks it (`names`, `location`).
"""

from __future__ import annotations

import types
from base64 import b64decode, b64encode
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from deployer.errors import Corrupt, InvalidInput, Refused
from deployer.platform.text.visible import shortened
from deployer.state.model.entities import JSON
from deployer.state.model.location import Location
from deployer.state.model.names import Form

Convert = Callable[[Any], Any]
T = TypeVar("T")

DEEPEST = 64  #: levels of lists and maps in a value of JSON
LARGEST = 2**63  #: whole numbers are from -LARGEST to LARGEST - 1, which Arrow and SQLite can store


class Mismatch(ValueError):
    """A JSON value does not have the required shape. The message states where in the value."""


def encode(value: Any) -> dict[str, JSON]:
    """Returns a dataclass as a JSON object."""
    result: dict[str, JSON] = _codec(value.__class__)[0](value)
    return result


def decode(cls: Any, document: JSON) -> Any:
    """Returns the dataclass that a JSON object describes. Raises Mismatch."""
    return _codec(cls)[1](document)


def decode_field(cls: Any, name: str, value: JSON) -> Any:
    """Returns a value for the field `name` of the dataclass `cls`, from JSON.

    Raises Mismatch, also for a field that does not exist.
    """
    hints = _hints(cls)
    if name not in hints:
        raise Mismatch(
            f"there is no property {name if name.isidentifier() else shortened(name)}; there are {', '.join(hints)}"
        )
    try:
        return _codec(hints[name])[1](value)
    except Mismatch as error:
        raise Mismatch(f"{name}: {error}") from None


@cache
def _hints(cls: Any) -> dict[str, Any]:
    """Returns the types of a dataclass's fields. They are cached: finding them takes longer than decoding a field."""
    return get_type_hints(cls, include_extras=True)


def decode_object(value: JSON) -> Any:
    """Returns a map from JSON, with the checks of a map in a dataclass. Raises Mismatch."""
    return _object(value)


def decode_scalar(cls: type[T], value: JSON) -> T:
    """Returns a string, a number or a flag (`cls`) from JSON. Raises Mismatch."""
    result: T = _SCALARS[cls][1](value)
    return result


def plain(value: JSON, levels: int = DEEPEST) -> JSON:
    """Returns a deep copy that consists of dicts, lists and scalars, nested at most `levels` deep.

    Raises InvalidInput for a value that JSON or the state cannot hold.
    """
    match value:
        case str() if is_text(value):  # the first case, because most values are strings
            return value
        case None | bool():
            return value
        case int() if -LARGEST <= value < LARGEST:
            return value
        case float() if value - value == 0:  # neither infinite nor NaN
            return value
        case Mapping() if levels and all(isinstance(key, str) and is_text(key) for key in value):
            return {key: plain(item, levels - 1) for key, item in value.items()}
        case list() | tuple() if levels:
            return [plain(item, levels - 1) for item in value]
        case _:
            raise InvalidInput(
                f"{_shown(value)} cannot be kept in the state",
                remedy=f"use text, finite numbers below 2**63, flags, and lists and maps of at most {DEEPEST} levels",
            )


def is_text(value: str) -> bool:
    """Returns whether a string can be encoded as UTF-8.

    JSON can hold one half of a surrogate pair, which cannot be printed or stored.
    """
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(value: object) -> str:
    """Returns a value as text for a message. For a list or a map, which may be nested too deep, it is the type."""
    return f"a {type(value).__name__}" if isinstance(value, Mapping | list | tuple) else shortened(value)


class Kinds:
    """A closed union of dataclasses. The `TAG` of a class is its `type` in JSON. `what` names the union in messages.

    Stored logs contain the tags and the names of fields. A class may be renamed, but its tag and its fields may not.
    """

    def __init__(self, what: str, union: Any) -> None:
        self._what = what
        self.classes: Mapping[str, type[Any]] = {cls.TAG: cls for cls in get_args(union)}
        if len(self.classes) < len(get_args(union)):
            raise TypeError(f"two kinds of {what} have the same TAG")

    def encode(self, value: Any) -> dict[str, JSON]:
        return {"type": value.TAG, **encode(value)}

    def decode(self, document: JSON) -> Any:
        """Returns the member of the union that a JSON object describes.

        Raises Refused for an unknown `type`, and Corrupt for any other value that does not fit.
        """
        if not isinstance(document, Mapping) or not isinstance(kind := document.get("type"), str):
            raise Corrupt(f"a stored {self._what} has no type")
        if kind not in self.classes:
            raise Refused(
                f"the {self._what} {shortened(kind)} is unknown: it was written by a newer deployer", remedy="upgrade"
            )
        try:
            return decode(self.classes[kind], {key: value for key, value in document.items() if key != "type"})
        except Mismatch as error:
            raise Corrupt(f"the stored {self._what} {kind!r} is not valid: {error}") from None


def _same(value: Any) -> Any:
    return value


def _checked(cls: type[Any]) -> Convert:
    def check(value: Any) -> Any:
        if type(value) is not cls:
            raise Mismatch(f"{_shown(value)} is not {_NAMES[cls]}")
        return value

    return check


def _text(value: Any) -> Any:
    if not isinstance(value, str) or not is_text(value):
        raise Mismatch(f"{_shown(value)} is not a string")
    return str(value)


def _integer(value: Any) -> Any:
    if type(value) is not int or not -LARGEST <= value < LARGEST:
        raise Mismatch(f"{_shown(value)} is not an integer of 64 bits")
    return value


def _from_base64(value: Any) -> bytes:
    try:
        return b64decode(value, validate=True)
    except (TypeError, ValueError):
        raise Mismatch(f"{_shown(value)} is not base64") from None


def _object(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise Mismatch(f"{_shown(value)} is not an object")
    try:
        return plain(value)
    except InvalidInput as error:
        raise Mismatch(error.what) from None


def _location(value: Any) -> Location:
    text = _text(value)
    if (wrong := Location.fault(text)) is not None:
        raise Mismatch(f"{shortened(text)} {wrong}")
    return Location(text)


def _annotated_codec(args: tuple[Any, ...]) -> tuple[Convert, Convert]:
    base, form = args
    to_json, from_json = _codec(base)
    assert isinstance(form, Form)  # noqa: S101 (`Form` is the only annotation of a field's type)

    def checked(value: Any) -> Any:
        text = from_json(value)
        if (wrong := form.fault(text)) is not None:
            raise Mismatch(f"{shortened(text)} {wrong}")
        return text

    return to_json, checked


_NAMES: Mapping[type[Any], str] = {bool: "true or false"}

_SCALARS: Mapping[Any, tuple[Convert, Convert]] = {
    str: (_same, _text),
    int: (_same, _integer),
    bool: (_same, _checked(bool)),
    bytes: (lambda value: b64encode(value).decode("ascii"), _from_base64),
}


@cache
def _codec(tp: Hashable) -> tuple[Convert, Convert]:
    if tp in _SCALARS:
        return _SCALARS[tp]
    if tp is Location:
        return str, _location
    if is_dataclass(tp):
        return _dataclass_codec(tp)
    origin, args = get_origin(tp), get_args(tp)
    if origin is Annotated:
        return _annotated_codec(args)
    for origins, build in _GENERIC:
        if origin in origins:
            return build(args)
    raise TypeError(f"no codec for {tp}")


def _dataclass_codec(cls: Any) -> tuple[Convert, Convert]:
    hints = _hints(cls)
    table = [(f.name, *_codec(hints[f.name]), _required(f)) for f in fields(cls)]
    names = frozenset(name for name, *_ in table)
    sparse = {f.name: f.default for f in fields(cls) if f.metadata.get("sparse")}

    def encode_all(value: Any) -> dict[str, JSON]:
        held = ((name, to_json, getattr(value, name)) for name, to_json, _, _ in table)
        return {name: to_json(each) for name, to_json, each in held if name not in sparse or each != sparse[name]}

    def decode_all(document: Any) -> Any:
        if not isinstance(document, Mapping):
            raise Mismatch(f"{_shown(document)} is not an object")
        if not document.keys() <= names:
            unknown = sorted(map(str, set(document) - names))
            shown = ", ".join(name if name.isidentifier() else shortened(name) for name in unknown[:5])
            raise Mismatch(f"{shown}: not known")
        values = {}
        for name, _, from_json, required in table:
            if name in document:
                try:
                    values[name] = from_json(document[name])
                except Mismatch as error:
                    raise Mismatch(f"{name}: {error}") from None
            elif required:
                raise Mismatch(f"{name}: missing")
        return cls(**values)

    return encode_all, decode_all


def _required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _tuple_codec(args: tuple[Any, ...]) -> tuple[Convert, Convert]:
    if is_dataclass(args[0]):
        return _columns_codec(args[0])
    to_json, from_json = _codec(args[0])

    def decode_all(value: Any) -> Any:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise Mismatch(f"{_shown(value)} is not a list")
        return tuple(from_json(item) for item in value)

    return lambda value: [to_json(item) for item in value], decode_all


def _columns_codec(cls: Any) -> tuple[Convert, Convert]:
    hints = _hints(cls)
    table = [(f.name, *_codec(hints[f.name])) for f in fields(cls)]
    required = {f.name for f in fields(cls) if _required(f)}
    sparse = {f.name: f.default for f in fields(cls) if f.metadata.get("sparse")}

    def has_any(value: Any, name: str) -> bool:
        return name not in sparse or any(getattr(item, name) != sparse[name] for item in value)

    def encode_all(value: Any) -> dict[str, JSON]:
        columns = [column for column in table if has_any(value, column[0])]
        return {name: [to_json(getattr(item, name)) for item in value] for name, to_json, _ in columns} if value else {}

    def decode_all(document: Any) -> Any:
        if not isinstance(document, Mapping) or not all(isinstance(c, list) for c in document.values()):
            raise Mismatch(f"{_shown(document)} is not an object of columns")
        if not document:
            return ()
        found = [(name, from_json) for name, _, from_json in table if name in document]  # newer fields may be absent
        names = {name for name, _ in found}
        if len({len(column) for column in document.values()}) != 1 or names != set(document) or not required <= names:
            raise Mismatch(f"the columns are not those of {cls.__name__}, all of one length")
        try:
            columns = [[from_json(item) for item in document[name]] for name, from_json in found]
        except Mismatch as error:
            raise Mismatch(f"{cls.__name__}: {error}") from None
        if len(found) == len(table):
            return tuple(cls(*values) for values in zip(*columns, strict=True))
        order = [name for name, _ in found]
        return tuple(cls(**dict(zip(order, values, strict=True))) for values in zip(*columns, strict=True))

    return encode_all, decode_all


def _optional_codec(args: tuple[Any, ...]) -> tuple[Convert, Convert]:
    (inner,) = (arg for arg in args if arg is not type(None))
    to_json, from_json = _codec(inner)
    return (
        lambda value: None if value is None else to_json(value),
        lambda value: None if value is None else from_json(value),
    )


def _literal_codec(args: tuple[Any, ...]) -> tuple[Convert, Convert]:
    def check(value: Any) -> Any:
        if not isinstance(value, str) or value not in args:
            raise Mismatch(f"{_shown(value)} is none of {', '.join(map(str, args))}")
        return value

    return check, check


_GENERIC: Sequence[tuple[tuple[Any, ...], Callable[[tuple[Any, ...]], tuple[Convert, Convert]]]] = (
    ((Union, types.UnionType), _optional_codec),
    ((tuple,), _tuple_codec),
    ((Literal,), _literal_codec),
    ((Mapping, dict), lambda args: (plain, _object)),
)
