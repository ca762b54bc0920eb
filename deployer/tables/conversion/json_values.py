"""Rewrites JSON rows into a form that Arrow's reader can read for the columns of a table.

Arrow's reader does not support maps and documents, does not read integers from 6.0, and fails when a field that the
table lacks has another type in another row. Numbers keep all their digits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pyarrow as pa

from deployer.platform.files.reading import MAX_JSON_DEPTH
from deployer.tables.conversion.numbers import exact_decimal, exact_integer


class Misfit(ValueError):
    """A row cannot be rewritten: the column at fault (empty: the row itself), the reason and the value."""

    def __init__(self, column: str, reason: str, value: str) -> None:
        super().__init__(reason)
        self.column, self.reason, self.value = column, reason, value


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def needs_rewriting(kind: pa.DataType) -> bool:
    """Returns whether Arrow misreads values of this type: it is, or contains, a map or a document."""
    if pa.types.is_map(kind) or is_document(kind):
        return True
    if pa.types.is_decimal256(kind):
        return True
    if isinstance(kind, pa.BaseExtensionType):
        return False
    return any(needs_rewriting(kind.field(i).type) for i in range(kind.num_fields))


def is_document(kind: pa.DataType) -> bool:
    """Returns whether it is the type of JSON documents."""
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "arrow.json"


def has_decimal(kind: pa.DataType) -> bool:
    """Returns whether it is a decimal, or has one inside."""
    if isinstance(kind, pa.BaseExtensionType):
        return False
    return pa.types.is_decimal(kind) or any(has_decimal(kind.field(i).type) for i in range(kind.num_fields))


def rewritten(line: bytes, table: pa.Schema, columns: frozenset[str], *, ignore_extra: bool) -> bytes:
    """Returns the row as a line that Arrow's reader takes. Raises Misfit.

    Columns that the table lacks keep their names, with null, unless they are ignored.
    """
    text = line.decode(errors="replace")
    try:
        row = json.loads(
            line, parse_int=_Number, parse_float=_Number, parse_constant=_Number, object_pairs_hook=_object
        )
    except RecursionError:
        raise Misfit("", f"is not JSON: its values are nested more than {MAX_JSON_DEPTH} deep", text) from None
    except ValueError as failure:
        raise Misfit("", f"is not JSON: {failure}", text) from None
    if not isinstance(row, dict):
        raise Misfit("", "is not a JSON object", text)
    parts = []
    for name, value in row.items():
        if name in columns:
            try:
                parts.append(f"{_text(name)}:{_as(value, table.field(name).type)}")
            except (ValueError, RecursionError):
                raise Misfit(name, "", value if isinstance(value, str) else _text(value)) from None
        elif not ignore_extra and name not in table.names:
            parts.append(f"{_text(name)}:null")
    try:
        return f"{{{','.join(parts)}}}".encode()
    except UnicodeEncodeError:
        raise Misfit("", "has an unpaired surrogate, such as \\ud800 alone", text) from None


def _object(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(fields)
    if len(found) != len(fields):
        raise ValueError("an object has two fields of one name")
    return found


_ENCODER = json.JSONEncoder(ensure_ascii=False)


def _as(value: Any, kind: Any) -> str:
    """Returns the value as JSON text for a column or field of this type. Raises ValueError when it does not fit."""
    return "null" if value is None else _writer(kind)(value)


@cache
def _writer(kind: Any) -> Callable[[Any], str]:
    """Returns a function that writes values that are not null. It raises ValueError for a value that Arrow's reader
    would refuse, because finding the refused line of a block takes a hundred times as long."""
    types = pa.types
    if is_document(kind):
        return lambda value: _ENCODER.encode(_document(value))
    if types.is_dictionary(kind):
        return _writer(kind.value_type)
    if types.is_map(kind):
        return lambda value: _map(value, kind)
    if types.is_struct(kind):
        known = {field.name: field.type for field in kind}
        return lambda value: _struct(_of_type(value, dict), known)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return lambda value: _list(_of_type(value, list), kind.value_type)
    if types.is_integer(kind) or types.is_duration(kind):
        bits, signed = kind.bit_width, not types.is_unsigned_integer(kind)
        values = range(-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else range(2**bits)
        return lambda value: _integer(_of_type(value, _Number), values)
    if types.is_decimal(kind):
        return lambda value: _decimal(value if type(value) is str else _of_type(value, _Number), kind)
    if types.is_floating(kind):
        return lambda value: _float(_of_type(value, _Number))
    if types.is_boolean(kind):
        return lambda value: _text(_of_type(value, bool))
    return lambda value: _text(_of_type(value, str))  # types without a JSON form are text


def _of_type(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"it is not a {kind.__name__}")
    return value


def _map(value: Any, kind: Any) -> str:
    entries = (
        f'{{"key":{_key(key, kind.key_type)},"value":{_as(item, kind.item_type)}}}' for key, item in _entries(value)
    )
    return f"[{','.join(entries)}]"


def _struct(value: dict[str, Any], known: dict[str, pa.DataType]) -> str:
    texts = {name: _as(item, known[name]) if name in known else _text(item) for name, item in value.items()}
    return f"{{{','.join(f'{_text(name)}:{text}' for name, text in texts.items())}}}"


def _list(value: list[Any], kind: pa.DataType) -> str:
    return f"[{','.join(_as(item, kind) for item in value)}]"


def _integer(value: _Number, values: range) -> str:
    text = value if value.removeprefix("-").isdigit() else str(exact_integer(value))
    if len(text) > len("-18446744073709551616") or int(text) not in values:
        raise ValueError("the number is outside of the type's range")
    return text


def _decimal(value: str, kind: pa.DataType) -> str:
    return f'"{exact_decimal(value, kind):f}"'


def _float(value: _Number) -> str:
    if abs(float(value)) == float("inf") and "I" not in value:
        raise ValueError("the number is too large")
    return value


def _key(key: Any, kind: pa.DataType) -> str:
    """Returns a key of a map. The key of a JSON object is text, which stands for a number or a boolean where keys have
    these types."""
    if key is None:
        raise ValueError("a key is null")
    if isinstance(key, str) and not isinstance(key, _Number):
        if pa.types.is_boolean(kind) and key in ("true", "false"):
            return key
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return _as(_Number(key), kind)
    return _as(key, kind)


def _entries(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yields keys and values of {"a": 1}, [["a", 1]] or [{"key": "a", "value": 1}]. Raises ValueError for other
    forms."""
    if isinstance(value, dict):
        yield from value.items()
        return
    for entry in value if isinstance(value, list) else [None]:
        match entry:
            case [key, item]:
                yield key, item
            case {"key": key, "value": item, **others} if not others:
                yield key, item
            case {"key": key, **others} if not others:
                yield key, None
            case _:
                raise ValueError("it is not a map")


def _document(value: Any) -> str:
    """Returns a value as the text of a document. Text that holds an object or an array is that document."""
    if isinstance(value, str) and not isinstance(value, _Number) and value.lstrip()[:1] in ("{", "["):
        try:
            json.loads(value)
        except ValueError:
            return _text(value)
        return value
    return _text(value)


_WRITERS: dict[type, Callable[[Any], str]] = {
    _Number: str,
    dict: lambda value: f"{{{', '.join(f'{_text(name)}: {_text(item)}' for name, item in value.items())}}}",
    list: lambda value: f"[{', '.join(map(_text, value))}]",
}


def _text(value: Any) -> str:
    """Returns a value as it is written in JSON, with the digits of its numbers."""
    write = _WRITERS.get(type(value))
    return _ENCODER.encode(value) if write is None else write(value)
