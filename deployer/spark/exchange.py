"""Converts rows of a table to the Arrow types that Spark takes from Python. No value is changed silently."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from deployer.errors import InvalidInput
from deployer.tables.conversion.nested_casts import cast_nested, is_nested_pair

_FAILURES = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError, OverflowError)


def exchanged(batch: pa.RecordBatch, target: pa.Schema, address: str, *, truncates: bool = False) -> pa.RecordBatch:
    """Returns the batch in the types of `target`, which has the columns in Spark's order.

    `truncates`: digits of times below a microsecond, which Spark cannot hold, are removed. Raises InvalidInput for a
    value that the target's type cannot hold.
    """

    def cast(values: Any, kind: pa.DataType) -> Any:
        return _cast(values, kind, cast, truncates)

    columns = []
    for field in target:
        values = batch.column(field.name)
        try:
            columns.append(cast(values, field.type))
        except _FAILURES as failure:
            raise _misfit(field, failure, address) from None
    return pa.RecordBatch.from_arrays(columns, schema=target)


def _cast(values: Any, target: pa.DataType, again: Any, truncates: bool) -> Any:
    source = values.type
    if source.equals(target, check_metadata=True):
        return values
    if isinstance(source, pa.BaseExtensionType):
        if source.extension_name == "arrow.uuid":
            return pa.array(
                [None if raw is None else str(UUID(bytes=raw)) for raw in values.storage.to_pylist()], target
            )
        return again(values.storage, target)
    types = pa.types
    if types.is_dictionary(source):
        return again(values.dictionary_decode(), target)
    if is_nested_pair(source, target):
        return cast_nested(values, target, again)
    if types.is_time(source):
        return pc.cast(pc.cast(values, pa.int32() if types.is_time32(source) else pa.int64()), target)
    if truncates and getattr(source, "unit", "") == "ns":
        return pc.cast(_microseconds(values), target)
    return pc.cast(values, target)


def _microseconds(values: Any) -> Any:
    """Returns nanoseconds as whole microseconds, rounded down, also before 1970."""
    exact = pc.cast(values, pa.int64())
    toward_zero = pc.divide(exact, 1000)
    is_above = pc.greater(pc.multiply(toward_zero, 1000), exact)
    return pc.subtract(toward_zero, pc.cast(is_above, pa.int64()))


def _misfit(field: pa.Field, failure: Exception, address: str) -> InvalidInput:
    text = str(failure).partition("\n")[0]
    if "would lose data" in text:
        what = "has times with digits below a microsecond, which Spark does not have"
        remedy = "cut them off by the option `nanoseconds` = truncate, or leave the column out by `columns`"
    else:
        what = f"has a value that Spark's type cannot hold: {text}"
        remedy = "leave the column out by the option `columns`, or such rows by `where`"
    return InvalidInput(f"column {field.name!r} {what}", where=address, remedy=remedy)
