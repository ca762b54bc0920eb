"""Converts columns to Arrow schemas and Arrow schemas to columns.

The metadata of an Arrow field holds the column's description, default, source, definition of computed values and
whether its values are sensitive; Lance stores this metadata. A round trip returns equal columns:
`columns_of(arrow_schema(columns)) == columns`. The same holds for the schema of a dataset that Lance created with it,
in file versions 2.1 and 2.2.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, assert_never

import pyarrow as pa

from deployer.errors import Corrupt, InvalidInput
from deployer.platform.storage.envelope import RECOVERY
from deployer.specs.types.computed import COMPUTED_NOTE, Computed, computed_from_note, computed_note
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

DESCRIPTION, DEFAULT, SOURCE = b"description", b"deployer.default", b"deployer.source"
SENSITIVE, SENSITIVE_NOTE = b"deployer.sensitive", "true"
BLOB_METADATA = (
    b"lance-encoding:blob",
    b"true",
)  # in file version 2.2, Lance changes a field with this mark into lance.blob.v2
EXTENSION_NAME = b"ARROW:extension:name"
BLOB_EXTENSION = "lance.blob.v2"
_BLOB_EXTENSION_BYTES = BLOB_EXTENSION.encode()

_PLAIN: Mapping[str, Callable[[], Any]] = {
    "null": pa.null,
    "bool": pa.bool_,
    "int8": pa.int8,
    "int16": pa.int16,
    "int32": pa.int32,
    "int64": pa.int64,
    "uint8": pa.uint8,
    "uint16": pa.uint16,
    "uint32": pa.uint32,
    "uint64": pa.uint64,
    "float16": pa.float16,
    "float32": pa.float32,
    "float64": pa.float64,
    "string": pa.string,
    "large_string": pa.large_string,
    "binary": pa.binary,
    "large_binary": pa.large_binary,
    "date32": pa.date32,
    "date64": pa.date64,
    "json": pa.json_,
    "uuid": pa.uuid,
}
_WITH_ARGUMENTS: Mapping[str, Callable[..., Any]] = {
    "fixed_size_binary": pa.binary,
    "time32": pa.time32,
    "time64": pa.time64,
    "timestamp": pa.timestamp,
    "duration": pa.duration,
    "decimal128": pa.decimal128,
    "decimal256": pa.decimal256,
}


def stored_schema(data: bytes, where: str) -> pa.Schema:
    """Returns the schema of stored bytes. Raises Corrupt for bytes that are not a schema; `where` is the place of the
    bytes in the error."""
    try:
        return pa.ipc.read_schema(pa.py_buffer(data))
    except (pa.ArrowException, OSError, ValueError):
        raise Corrupt("the recorded schema is not an Arrow schema", where=where, remedy=RECOVERY) from None


@lru_cache(maxsize=128)
def stored_columns(data: bytes) -> tuple[Column, ...]:
    """Returns the columns of a stored schema. Raises the errors of `stored_schema`, without a place, and of
    `columns_of`.

    The cache has the bytes as its key, because tables that share a declared schema, such as those of several customers,
    have equal bytes.
    """
    return columns_of(stored_schema(data, ""))


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """Returns the Arrow schema with which a dataset of these columns is created."""
    return pa.schema([arrow_field(column) for column in columns])


def arrow_field(column: Column) -> pa.Field:
    """Returns one column as an Arrow field. The properties that Arrow does not have are in the field's metadata."""
    metadata: dict[bytes, bytes] = {}
    if column.description:
        metadata[DESCRIPTION] = column.description.encode()
    if column.default:
        metadata[DEFAULT] = column.default.encode()
    if column.sensitive:
        metadata[SENSITIVE] = SENSITIVE_NOTE.encode()
    if column.source is not None:
        metadata[SOURCE] = source_note(column.source).encode()
    if column.computed is not None:
        metadata[COMPUTED_NOTE] = computed_note(column.computed).encode()
    if isinstance(column.type, Blob):
        metadata.update([BLOB_METADATA])
    return pa.field(column.name, arrow_type(column.type), column.nullable, metadata or None)


def source_note(source: str | None) -> str:
    """Returns the text of a source for a field's metadata; empty for None. The text is a JSON string, because a source
    may be empty."""
    return "" if source is None else json.dumps(source, ensure_ascii=False)


def source_of(field: pa.Field) -> str | None:
    """Returns the name that a column has in files; None where it is the column's own name."""
    return _source(field.metadata or {})


def computed_of(field: pa.Field) -> Computed | None:
    """Returns the definition of a computed column's values; None for a column that is not computed."""
    return _computed(field.metadata or {})


def _computed(metadata: Mapping[bytes, bytes]) -> Computed | None:
    noted = metadata.get(COMPUTED_NOTE)
    return None if noted is None else computed_from_note(noted)


def _source(metadata: Mapping[bytes, bytes]) -> str | None:
    noted = metadata.get(SOURCE)
    try:
        source = None if noted is None else json.loads(noted)
    except ValueError:  # not written by deployer
        return None
    return source if isinstance(source, str) else None


def arrow_type(column_type: ColumnType) -> pa.DataType:
    """Returns the Arrow type of a column type. For a blob, it is the type of the values that are written."""
    match column_type:
        case Scalar(name, ()):
            return _PLAIN[name]()
        case Scalar(name, args):
            return _WITH_ARGUMENTS[name](*args)
        case ListOf(item, large):
            return (pa.large_list if large else pa.list_)(arrow_field(item))
        case FixedSizeList(item, size):
            return pa.list_(arrow_field(item), size)
        case Struct(fields):
            return pa.struct([arrow_field(field) for field in fields])
        case MapOf(key, value):
            return pa.map_(arrow_field(key), arrow_field(value))
        case Dictionary(index, value):
            return pa.dictionary(arrow_type(index), arrow_type(value))
        case Blob():
            return pa.large_binary()
        case _:
            assert_never(column_type)


def columns_of(schema: pa.Schema) -> tuple[Column, ...]:
    """Returns the columns of an Arrow schema, such as a dataset's. Raises InvalidInput for a type that tables cannot
    have, and for two columns with the same name."""
    _refuse_repeated(schema.names, "columns")
    return tuple(column_of(field) for field in schema)


def column_of(field: pa.Field) -> Column:
    """Returns one Arrow field as a column. Raises InvalidInput for a type that tables cannot have, and for two nested
    fields with the same name."""
    return _column(field, field.name)


def _column(field: pa.Field, name: str) -> Column:
    metadata: Mapping[bytes, bytes] | None = field.metadata
    if not metadata:
        return Column(name, _type(field.type, name), field.nullable)
    description = metadata.get(DESCRIPTION, b"").decode(errors="replace")
    default = metadata.get(DEFAULT, b"").decode(errors="replace")
    is_blob = (
        metadata.get(BLOB_METADATA[0]) == BLOB_METADATA[1] or metadata.get(EXTENSION_NAME) == _BLOB_EXTENSION_BYTES
    )
    kind = Blob() if is_blob else _type(field.type, name)
    source, computed = _source(metadata), _computed(metadata)
    sensitive = metadata.get(SENSITIVE) == SENSITIVE_NOTE.encode()
    return Column(
        name,
        kind,
        field.nullable,
        description,
        default=default,
        source=source,
        computed=computed,
        sensitive=sensitive,
    )


def _type(arrow: pa.DataType, name: str) -> ColumnType:
    if plain := _PLAIN_BY_ID.get(arrow.id):  # one look-up is enough for most columns
        return plain
    types = pa.types
    if isinstance(arrow, pa.BaseExtensionType):
        return _extension(arrow, name)
    if types.is_list(arrow) or types.is_large_list(arrow):
        return ListOf(_column(arrow.value_field, "item"), large=types.is_large_list(arrow))
    if types.is_fixed_size_list(arrow):
        return FixedSizeList(_column(arrow.value_field, "item"), arrow.list_size)
    if types.is_struct(arrow):
        _refuse_repeated([arrow.field(i).name for i in range(arrow.num_fields)], f"fields of `{name}`")
        return Struct(tuple(column_of(arrow.field(i)) for i in range(arrow.num_fields)))
    if types.is_map(arrow):
        return MapOf(_column(arrow.key_field, "key"), _column(arrow.item_field, "value"))
    if types.is_dictionary(arrow):
        index, value = _type(arrow.index_type, name), _type(arrow.value_type, name)
        if isinstance(index, Scalar) and isinstance(value, Scalar):
            return Dictionary(index, value)
        raise _refusal(arrow, name)
    return _scalar(arrow, name)


def _extension(arrow: pa.BaseExtensionType, name: str) -> ColumnType:
    match arrow.extension_name:
        case "arrow.json" | "lance.json":
            return Scalar("json")
        case "arrow.uuid":
            return Scalar("uuid")
        case "lance.blob.v2":
            return Blob()
        case _:
            raise _refusal(arrow, name)


def _scalar(arrow: pa.DataType, name: str) -> Scalar:
    types = pa.types
    if types.is_fixed_size_binary(arrow):
        return Scalar("fixed_size_binary", (arrow.byte_width,))
    if types.is_decimal128(arrow) or types.is_decimal256(arrow):
        return Scalar(f"decimal{arrow.bit_width}", (arrow.precision, arrow.scale))
    if types.is_timestamp(arrow):
        return Scalar("timestamp", (arrow.unit, arrow.tz) if arrow.tz else (arrow.unit,))
    if types.is_time(arrow):
        return Scalar(f"time{arrow.bit_width}", (arrow.unit,))
    if types.is_duration(arrow):
        return Scalar("duration", (arrow.unit,))
    raise _refusal(arrow, name)


_PLAIN_BY_ID: Mapping[int, Scalar] = {
    plain.id: Scalar(name)
    for name, plain in ((name, make()) for name, make in _PLAIN.items())
    if not isinstance(plain, pa.BaseExtensionType)  # extension types share one id
}


def _refuse_repeated(names: Sequence[str], what: str) -> None:
    if (
        repeated := next((name for name in names if names.count(name) > 1), None)
        if len({*names}) < len(names)
        else None
    ):
        raise InvalidInput(f"two {what} have the name `{repeated}`", remedy="rename one of them")


def _refusal(arrow: pa.DataType, name: str) -> InvalidInput:
    return InvalidInput(
        f"column `{name}` has the Arrow type {arrow}, which tables cannot have",
        remedy="cast it to one of the types of docs/spec/types.md",
    )
