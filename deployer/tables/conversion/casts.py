"""Lossless conversion of whole columns, and finding the values that cannot be converted.

A value converts when nothing of it is lost: a cast of Arrow that rounds or truncates does not count.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.tables.conversion.nested_casts import cast_nested, is_entries, is_nested_pair
from deployer.tables.conversion.numbers import decimals_to_decimals, floats_to_decimals, integers_to_decimals

if TYPE_CHECKING:
    from numpy.typing import NDArray

Convert = Callable[[Any], Any]
_FAILURES = (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, OverflowError)


def castable(source: pa.DataType, target: pa.DataType, *, text: bool = False) -> bool:
    """Returns whether values of `source` can become values of `target`, if they fit.

    `text`: the source is CSV or JSON, where strings stand for values of other types.
    """
    if source.equals(target) or pa.types.is_null(source):
        return True
    if isinstance(source, pa.BaseExtensionType):
        return castable(source.storage_type, target, text=text)
    if pa.types.is_dictionary(source):
        return castable(source.value_type, target, text=text)
    if pa.types.is_dictionary(target):
        return castable(source, target.value_type, text=text)
    if isinstance(target, pa.BaseExtensionType):
        return _family(source) == "text" or castable(source, target.storage_type, text=text)
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        theirs = {field.name: field for field in source}
        ours = {field.name: field for field in target}
        return theirs.keys() <= ours.keys() and all(
            castable(theirs[name].type, field.type, text=text) if name in theirs else field.nullable
            for name, field in ours.items()
        )
    if _family(source) == _family(target) == "list":
        return castable(source.value_type, target.value_type, text=text)
    if is_entries(source) and pa.types.is_map(target):
        key, value = source.value_type
        return castable(key.type, target.key_type, text=text) and castable(value.type, target.item_type, text=text)
    if pa.types.is_map(source) and pa.types.is_map(target):
        return castable(source.key_type, target.key_type, text=text) and castable(
            source.item_type, target.item_type, text=text
        )
    if text and pa.types.is_integer(source) and pa.types.is_duration(target):
        return True
    if text and _family(source) == "text":
        return _family(target) not in ("list", "struct", "map")
    return _family(source) == _family(target) and _family(source) != "other"


def _family(kind: pa.DataType) -> str:
    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if (
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
        or types.is_binary_view(kind)
    ):
        return "binary"
    if types.is_timestamp(kind):
        return "instant" if kind.tz else "local time"
    if types.is_date(kind):
        return "local time"  # a date is a time at midnight
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return "list"
    for name in ("boolean", "time", "duration", "struct", "map"):
        if getattr(types, f"is_{name}")(kind):
            return name
    return "other"


def lossless(values: Any, target: pa.DataType) -> tuple[Any, NDArray[np.bool_] | None]:
    """Returns the values (an Array) as `target`, and which of them do not fit (null in the result); None: all fit."""
    return converted(values, lambda part: _cast(part, target), target)


def converted(values: Any, convert: Convert, target: pa.DataType) -> tuple[Any, NDArray[np.bool_] | None]:
    """Returns `convert(values)`, which raises when any value fails, and which values fail (null in the result)."""
    try:
        return convert(values), None
    except _FAILURES:
        bad = _failing(values, convert)
        good = pc.if_else(pa.array(bad), pa.scalar(None, values.type), values) if _selectable(values.type) else None
        if good is None:
            good = values.take(pa.array(np.arange(len(values)), mask=bad))
        return convert(good), bad


def _selectable(kind: pa.DataType) -> bool:
    return not isinstance(kind, pa.BaseExtensionType) and not pa.types.is_nested(kind)


def _failing(values: Any, convert: Convert) -> NDArray[np.bool_]:
    """Returns which values fail. Equal values are tried once; the others are halved until each failing value is
    alone."""
    if not _selectable(values.type) or pa.types.is_dictionary(values.type) or len(values) < 64:
        return _halved(values, convert)
    encoded = values.dictionary_encode()
    bad = _halved(encoded.dictionary, convert)
    indices = np.asarray(encoded.indices.fill_null(0))
    failing: NDArray[np.bool_] = bad[indices] & np.asarray(values.is_valid())
    return failing


def _halved(values: Any, convert: Convert) -> NDArray[np.bool_]:
    bad = np.zeros(len(values), np.bool_)
    pending = [(0, len(values))]
    while pending:
        start, end = pending.pop()
        if start == end:
            continue
        try:
            convert(_part(values, start, end))
        except _FAILURES:
            if end - start == 1:
                bad[start] = True
                continue
            middle = (start + end) // 2
            pending += [(start, middle), (middle, end)]
    return bad


def _part(values: Any, start: int, end: int) -> Any:
    if pa.types.is_nested(values.type):  # a slice would share the items of its neighbours, which would be cast too
        return values.take(pa.array(np.arange(start, end)))
    return values.slice(start, end - start)


def _cast(values: Any, target: pa.DataType) -> Any:
    source = values.type
    if source.equals(target):
        return values
    if isinstance(source, pa.BaseExtensionType):
        return _cast(values.storage, target)
    if pa.types.is_dictionary(source):
        return _cast(values.dictionary_decode(), target)
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, _storage(values, target))
    if pa.types.is_dictionary(target):
        encoded = _cast(values, target.value_type).dictionary_encode()
        return pa.DictionaryArray.from_arrays(pc.cast(encoded.indices, target.index_type), encoded.dictionary)
    if is_nested_pair(source, target):
        return cast_nested(values, target, _cast)
    types = pa.types
    if types.is_decimal(target) and types.is_integer(source):
        return integers_to_decimals(values, target)
    if types.is_decimal(target) and types.is_decimal(source):
        return decimals_to_decimals(values, target)
    if types.is_floating(source) and types.is_decimal(target):
        return floats_to_decimals(values, target)
    rounds = (types.is_floating(target) and not types.is_null(source)) or (
        types.is_date(target) and types.is_temporal(source)
    )
    result = pc.cast(values, target, safe=not (rounds and types.is_floating(target)))
    if rounds and _family(source) != "text":
        _require_equal(values, result)
    return result


def _require_equal(before: Any, after: Any) -> None:
    """Raises ValueError unless casting back returns the original values; NaN equals itself here."""
    again = pc.cast(after, before.type, safe=False)
    if pa.types.is_float16(before.type):
        before, again = pc.cast(before, pa.float32()), pc.cast(again, pa.float32())
    same = pc.equal(before, again)
    if pa.types.is_floating(before.type):
        same = pc.or_(same, pc.and_(pc.is_nan(before), pc.is_nan(again)))
    if pc.all(same).as_py() is False:
        raise ValueError("values would be rounded")


def _storage(values: Any, target: Any) -> Any:
    """Returns the stored form: the 16 bytes of a UUID, or the text of JSON, which Lance must be able to store."""
    if target.extension_name == "arrow.uuid" and _family(values.type) == "text":
        raw = [None if text is None else UUID(text).bytes for text in values.to_pylist()]
        return pa.array(raw, target.storage_type)
    storage = _cast(values, target.storage_type)
    if target.extension_name == "arrow.json":
        for text in storage.to_pylist():
            if text is not None:
                check_document(text)
    return storage


def check_document(text: str) -> None:
    """Raises ValueError for text that is not JSON, or that Lance would not store as the same document.

    Lance stores documents in a binary form. It rounds numbers as doubles do, replaces a number that is too large by
    null, and fails on an object that has two fields of one name.
    """
    try:
        json.loads(text, parse_int=_integer, parse_float=_float, parse_constant=_constant, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("values are nested too deep") from None


def _integer(digits: str) -> None:
    if len(digits) > 20 or not -(2**63) <= int(digits) < 2**64:
        raise ValueError(f"{digits} has more than 64 bits")


def _float(digits: str) -> None:
    if abs(float(digits)) == float("inf"):
        raise ValueError(f"{digits} is too large for a double")


def _constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _object(fields: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in fields]
    if len(names) != len(set(names)):
        raise ValueError("an object has two fields of one name")
