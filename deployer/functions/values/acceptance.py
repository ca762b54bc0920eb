"""The columns that a parameter takes: those whose values are of the annotated kind, or fit the exact type."""

from __future__ import annotations

from collections.abc import Mapping

from deployer.specs.types.names import BINARIES, FLOATS, INTEGERS, TEXTS
from deployer.specs.types.types import (
    Blob,
    Column,
    ColumnType,
    Dictionary,
    FixedSizeList,
    ListOf,
    MapOf,
    Scalar,
    Struct,
)

#: types of columns whose values the Python type has, by the type that the annotation means
_SAME_IN_PYTHON: Mapping[str, tuple[str, ...]] = {
    "int64": INTEGERS,
    "float64": (*FLOATS, *INTEGERS),
    "string": (*TEXTS, "json"),
    "binary": (*BINARIES, "fixed_size_binary"),
    "date32": ("date32", "date64"),
    "time64": ("time32", "time64"),
}
#: types of columns whose values all fit, beside the type itself
_FITTING: Mapping[str, tuple[str, ...]] = {
    "int16": ("int8", "uint8"),
    "int32": ("int8", "int16", "uint8", "uint16"),
    "int64": ("int8", "int16", "int32", "uint8", "uint16", "uint32"),
    "uint16": ("uint8",),
    "uint32": ("uint8", "uint16"),
    "uint64": ("uint8", "uint16", "uint32"),
    "float16": ("int8", "uint8"),
    "float32": ("float16", "int8", "int16", "uint8", "uint16"),
    "float64": ("float16", "float32", "int8", "int16", "int32", "uint8", "uint16", "uint32"),
    "large_string": ("string",),
    "string": ("large_string",),
    "binary": ("large_binary",),
    "large_binary": ("binary",),
}


def accepts(wanted: ColumnType, given: ColumnType, *, exact: bool) -> bool:
    """Returns whether a parameter of the type `wanted` takes a column of the type `given`.

    `exact`: the type is one of numpy or Arrow, so a wider column does not fit; otherwise it stands for a Python type.
    """
    if isinstance(given, Scalar) and given.name == "null":
        return True
    if isinstance(given, Dictionary):
        of_value = wanted.value if isinstance(wanted, Dictionary) else wanted
        return accepts(of_value, given.value, exact=exact)
    if isinstance(given, Blob):
        return isinstance(wanted, Blob) or (isinstance(wanted, Scalar) and wanted.name in BINARIES)
    match wanted, given:
        case Scalar(), Scalar():
            return _accepts_scalar(wanted, given, exact=exact)
        case ((ListOf(item) | FixedSizeList(item)), (ListOf(other) | FixedSizeList(other))):
            return accepts(item.type, other.type, exact=exact)
        case Struct(fields), Struct(others):
            return _accepts_fields(fields, others, exact=exact)
        case MapOf(key, value), MapOf(other_key, other_value):
            return accepts(key.type, other_key.type, exact=exact) and accepts(value.type, other_value.type, exact=exact)
        case _:
            return False


def _accepts_scalar(wanted: Scalar, given: Scalar, *, exact: bool) -> bool:
    if exact:
        return wanted == given or (not wanted.args and given.name in _FITTING.get(wanted.name, ()))
    if wanted.name in ("timestamp", "duration"):
        return wanted.name == given.name
    return given.name in _SAME_IN_PYTHON.get(wanted.name, (wanted.name,))


def _accepts_fields(fields: tuple[Column, ...], others: tuple[Column, ...], *, exact: bool) -> bool:
    types = {each.name: each.type for each in others}
    return types.keys() == {each.name for each in fields} and all(
        accepts(each.type, types[each.name], exact=exact) for each in fields
    )
