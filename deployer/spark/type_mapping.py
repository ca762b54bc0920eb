"""The types of tables as Spark's types, and back. The mapping is the same on all releases of Spark from 4.0.

Spark has no unsigned integers, half floats, UUIDs, vectors and no decimals of more than 38 digits; its times of day are
off by default. Such a type becomes the smallest type of Spark that holds all its values, otherwise text. A column's
metadata in Spark names the original type, which `column_of` restores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

import pyarrow as pa
from pyspark.sql import types as spark

from deployer.errors import InvalidInput
from deployer.specs.types.parser import parse_type
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
    format_type,
)

TYPE, COMMENT = "deployer.type", "comment"  #: keys of a column's metadata in Spark; it shows `comment` itself
MOST_DIGITS = 38  #: of Spark's decimals

_PLAIN: Mapping[str, tuple[Callable[[], spark.DataType], Callable[[], pa.DataType]]] = {
    "null": (spark.NullType, pa.null),
    "bool": (spark.BooleanType, pa.bool_),
    "int8": (spark.ByteType, pa.int8),
    "int16": (spark.ShortType, pa.int16),
    "int32": (spark.IntegerType, pa.int32),
    "int64": (spark.LongType, pa.int64),
    "uint8": (spark.ShortType, pa.int16),
    "uint16": (spark.IntegerType, pa.int32),
    "uint32": (spark.LongType, pa.int64),
    "uint64": (lambda: spark.DecimalType(20, 0), lambda: pa.decimal128(20, 0)),
    "float16": (spark.FloatType, pa.float32),
    "float32": (spark.FloatType, pa.float32),
    "float64": (spark.DoubleType, pa.float64),
    "string": (spark.StringType, pa.string),
    "large_string": (spark.StringType, pa.string),
    "json": (spark.StringType, pa.string),
    "uuid": (spark.StringType, pa.string),
    "binary": (spark.BinaryType, pa.binary),
    "large_binary": (spark.BinaryType, pa.binary),
    "fixed_size_binary": (spark.BinaryType, pa.binary),
    "date32": (spark.DateType, pa.date32),
    "date64": (spark.DateType, pa.date32),
    "time32": (spark.LongType, pa.int64),
    "time64": (spark.LongType, pa.int64),
    "duration": (spark.DayTimeIntervalType, lambda: pa.duration("us")),
}

_BACK: Mapping[str, str] = {  # by the name of Spark's type, since not every release has all of them
    "NullType": "null",
    "BooleanType": "bool",
    "ByteType": "int8",
    "ShortType": "int16",
    "IntegerType": "int32",
    "LongType": "int64",
    "FloatType": "float32",
    "DoubleType": "float64",
    "StringType": "string",
    "CharType": "string",
    "VarcharType": "string",
    "BinaryType": "binary",
    "DateType": "date32",
    "TimestampType": "timestamp[us, UTC]",
    "TimestampNTZType": "timestamp[us]",
    "DayTimeIntervalType": "duration[us]",
    "TimeType": "time64[us]",
    "VariantType": "json",
}


def spark_schema(columns: Sequence[Column]) -> spark.StructType:
    """Returns the columns as Spark's columns, with descriptions as comments."""
    return spark.StructType([_field(column) for column in columns])


def _field(column: Column) -> spark.StructField:
    kind = spark_type(column.type)
    metadata = {COMMENT: column.description} if column.description else {}
    if _type_back(kind, column.name) != column.type:
        metadata[TYPE] = format_type(column.type)
    return spark.StructField(column.name, kind, column.nullable, metadata)


def spark_type(column_type: ColumnType) -> spark.DataType:
    """Returns Spark's type for values of the type."""
    match column_type:
        case Scalar("decimal128" | "decimal256", (int(digits), int(scale))):
            return spark.DecimalType(digits, scale) if _is_decimal(digits, scale) else spark.StringType()
        case Scalar("timestamp", args):
            return spark.TimestampType() if len(args) > 1 else spark.TimestampNTZType()
        case Scalar(name):
            return _PLAIN[name][0]()
        case ListOf(item) | FixedSizeList(item):
            return spark.ArrayType(spark_type(item.type), item.nullable)
        case Struct(fields):
            return spark.StructType([spark.StructField(f.name, spark_type(f.type), f.nullable) for f in fields])
        case MapOf(key, value):
            return spark.MapType(spark_type(key.type), spark_type(value.type), value.nullable)
        case Dictionary(_, value):
            return spark_type(value)
        case Blob():
            return spark.BinaryType()
        case _:
            assert_never(column_type)


def exchange_type(column_type: ColumnType) -> pa.DataType:
    """Returns the Arrow type in which Spark takes values of `spark_type(column_type)` from Python."""
    match column_type:
        case Scalar("decimal128" | "decimal256", (int(digits), int(scale))):
            return pa.decimal128(digits, scale) if _is_decimal(digits, scale) else pa.string()
        case Scalar("timestamp", args):
            return pa.timestamp("us", "UTC" if len(args) > 1 else None)
        case Scalar(name):
            return _PLAIN[name][1]()
        case ListOf(item) | FixedSizeList(item):
            return pa.list_(pa.field("element", exchange_type(item.type), item.nullable))
        case Struct(fields):
            return pa.struct([pa.field(f.name, exchange_type(f.type), f.nullable) for f in fields])
        case MapOf(key, value):
            value_field = pa.field("value", exchange_type(value.type), value.nullable)
            return pa.map_(pa.field("key", exchange_type(key.type), nullable=False), value_field)
        case Dictionary(_, value):
            return exchange_type(value)
        case Blob():
            return pa.binary()
        case _:
            assert_never(column_type)


def _is_decimal(digits: int, scale: int) -> bool:
    return digits <= MOST_DIGITS and 0 <= scale <= digits


def column_of(field: spark.StructField) -> Column:
    """Returns a column of Spark as one of a table. Raises InvalidInput for a type that tables cannot have."""
    found = _type_back(field.dataType, field.name)
    metadata = field.metadata or {}
    if isinstance(noted := metadata.get(TYPE), str):
        own = parse_type(noted)
        found = own if spark_type(own) == field.dataType else found  # a program may have changed the column since
    return Column(field.name, found, field.nullable, str(metadata.get(COMMENT, "")))


def _type_back(kind: spark.DataType, path: str) -> ColumnType:
    if isinstance(kind, spark.UserDefinedType):
        return _type_back(kind.sqlType(), path)
    if isinstance(kind, spark.DecimalType):
        return Scalar("decimal128", (kind.precision, kind.scale))
    if isinstance(kind, spark.ArrayType):
        return ListOf(Column("item", _type_back(kind.elementType, path), kind.containsNull))
    if isinstance(kind, spark.MapType):
        key = Column("key", _type_back(kind.keyType, path), nullable=False)
        return MapOf(key, Column("value", _type_back(kind.valueType, path), kind.valueContainsNull))
    if isinstance(kind, spark.StructType):
        fields = (Column(f.name, _type_back(f.dataType, f"{path}.{f.name}"), f.nullable) for f in kind.fields)
        return Struct(tuple(fields))
    if (text := _BACK.get(type(kind).__name__)) is not None:
        return parse_type(text)
    raise InvalidInput(
        f"column {path!r} has Spark's type {kind.simpleString()}, which tables cannot have",
        remedy="cast it to one of the types of docs/types-in-spark.md",
    )
