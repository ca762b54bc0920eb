"""Converts Spark's rows to Arrow batches, for releases of PySpark that pass the batches of streams only as rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.sql import types as spark

ROWS_A_BATCH = 10_000


def row_batches(rows: Iterator[Any], schema: spark.StructType, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yields the rows of the Spark `schema` in batches with these Arrow `columns`, which have the same names."""
    while held := list(islice(rows, ROWS_A_BATCH)):
        arrays = [
            pa.array([_value(row[place], field.dataType) for row in held], columns.field(place).type)
            for place, field in enumerate(schema.fields)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=columns)


def _value(value: Any, kind: spark.DataType) -> Any:
    """Returns a value of Spark's in Python as the one that Arrow takes for the type."""
    if value is None:
        return None
    match kind:
        case spark.StructType():
            return {field.name: _value(value[i], field.dataType) for i, field in enumerate(kind.fields)}
        case spark.ArrayType():
            return [_value(item, kind.elementType) for item in value]
        case spark.MapType():
            return [(_value(key, kind.keyType), _value(item, kind.valueType)) for key, item in value.items()]
        case spark.TimestampType() if isinstance(value, dt.datetime):
            return value.astimezone(dt.UTC)  # Spark gives it in the zone of the process, and without one
        case spark.BinaryType():
            return bytes(value)
        case spark.UserDefinedType():
            return _value(kind.serialize(value), kind.sqlType())
        case _:
            return value
