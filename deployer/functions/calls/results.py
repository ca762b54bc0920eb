"""The results of functions as columns of their outputs, checked: type, length, nulls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.functions.calls.failures import FailureLog
from deployer.functions.model import UDF, Output
from deployer.functions.structs import fields_of
from deployer.functions.values.building import build, wrong_rows
from deployer.functions.values.plain import NullValue, WrongValue
from deployer.functions.values.widening import fitted
from deployer.platform.text.visible import shortened
from deployer.specs.types.arrow import arrow_field, arrow_type
from deployer.specs.types.types import Column


def output_schema(udf: UDF) -> pa.Schema:
    """Returns the schema of the function's results; a single column has the function's name."""
    return pa.schema([arrow_field(Column(each.name or udf.name, each.type)) for each in udf.outputs])


def columns_of_values(udf: UDF, values: list[Any], log: FailureLog, first: int) -> list[pa.Array]:
    """Returns a column for each output, from one value per row. Values that do not fit are failures of their rows."""
    if not udf.is_multiple:
        return [_column(udf.outputs[0], values, log, first)]
    rows = [_fields(udf, value, row, log, first) for row, value in enumerate(values)]
    return [_column(each, [row.get(each.name or "") for row in rows], log, first) for each in udf.outputs]


def _fields(udf: UDF, value: Any, row: int, log: FailureLog, first: int) -> dict[str, Any]:
    found = None if value is None else fields_of(value)
    if value is not None and found is None:
        wrong = WrongValue(f"{shortened(value)} of type {type(value).__name__} has no fields")
    elif found is not None and (unknown := [name for name in found if all(name != each.name for each in udf.outputs)]):
        wrong = WrongValue(f"{shortened(value)} has a field `{unknown[0]}`, which the function does not declare")
    else:
        return dict(found or {})
    log.decide(first + row, wrong, 1)
    return {}


def _column(output: Output, values: list[Any], log: FailureLog, first: int) -> pa.Array:
    try:
        made = build(values, output.type)
    except WrongValue as error:
        wrong = wrong_rows(values, output.type)
        if not wrong:  # each value fits, but all together are too large for one array
            log.end(-1, error, 1)
        for row in sorted(wrong):
            log.decide(first + row, wrong[row], 1)
            values[row] = None
        made = build(values, output.type)
    _check_nulls(output, made, log, first)
    return made


def _check_nulls(output: Output, made: pa.Array, log: FailureLog, first: int) -> None:
    if output.nullable or not made.null_count:
        return
    failed = log.rows
    for row in np.flatnonzero(np.asarray(made.is_null())).tolist():
        if first + row not in failed:
            named = f" in `{output.name}`" if output.name else ""
            log.decide(first + row, NullValue(f"it returned null{named}, and nullable=False"), 1)


def columns_of_arrays(udf: UDF, result: Any, rows: int, log: FailureLog, first: int) -> list[pa.Array]:
    """Returns a column for each output, from the result of a function of arrays or batches. Raises WrongValue for a
    result of another length or type."""
    parts = [_array(result, udf, rows)] if not udf.is_multiple else _parts(result, udf)
    columns = []
    for output, part in zip(udf.outputs, parts, strict=True):
        named = f"`{output.name}`: " if output.name else ""
        if len(part) != rows:
            raise WrongValue(f"{named}it returned {len(part):,} values for {rows:,} rows")
        column = fitted(part, output.type, named)
        _check_nulls(output, column, log, first)
        columns.append(column)
    return columns


def _array(result: Any, udf: UDF, rows: int) -> pa.Array:
    if isinstance(result, pa.RecordBatch | pa.Table) and result.num_columns == 1:
        result = result.column(0)
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks()
    if isinstance(result, pa.ChunkedArray):
        result = pa.concat_arrays(result.chunks)
    if isinstance(result, np.ndarray) or type(result).__module__.startswith("pandas."):
        return _of_numpy(result, udf.outputs[0])
    if not isinstance(result, pa.Array):
        raise WrongValue(f"it returned {type(result).__name__}, not an array of {rows:,} values")
    return result


def _of_numpy(result: Any, output: Output) -> pa.Array:
    try:
        return pa.array(result, from_pandas=type(result).__module__.startswith("pandas."))
    except (pa.ArrowException, TypeError, ValueError):
        return build(list(result), output.type)


def _parts(result: Any, udf: UDF) -> Sequence[pa.Array]:
    if isinstance(result, pa.StructArray):
        result = pa.RecordBatch.from_struct_array(result) if not result.null_count else _spread(result)
    if isinstance(result, pa.Table):
        result = result.combine_chunks().to_batches()[0] if result.num_rows else _no_rows(result)
    if not isinstance(result, pa.RecordBatch):
        raise WrongValue(f"it returned {type(result).__name__}, not a RecordBatch with a column per output")
    wanted = [each.name for each in udf.outputs]
    if sorted(result.schema.names) != sorted(map(str, wanted)):
        raise WrongValue(f"it returned the columns {result.schema.names}, not {wanted}")
    return [result.column(name) for name in wanted]


def _spread(result: pa.StructArray) -> pa.RecordBatch:
    """Returns the fields as columns, null where the struct is."""
    return pa.RecordBatch.from_arrays(result.flatten(), names=[field.name for field in result.type])


def _no_rows(table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in table.schema], schema=table.schema)


def joined(parts: Sequence[Sequence[pa.Array]]) -> list[pa.Array]:
    """Returns the columns of all parts. Raises WrongValue where they are too large for one array."""
    if len(parts) == 1:
        return list(parts[0])
    try:
        return [pa.concat_arrays(each) for each in zip(*parts, strict=True)]
    except pa.ArrowInvalid:
        raise WrongValue(
            "the values of one batch are more than one array holds; use large_string, large_binary or large_list"
        ) from None


def null_columns(udf: UDF, rows: int) -> list[pa.Array]:
    """Returns a column of nulls per output."""
    return [pa.nulls(rows, arrow_type(each.type)) for each in udf.outputs]


def with_nulls(columns: Sequence[pa.Array], failed: Sequence[int], rows: int) -> list[pa.Array]:
    """Returns the columns with null in rows that failed."""
    if not failed:
        return list(columns)
    places = np.arange(rows)
    places = pa.array(np.where(np.isin(places, failed), -1, places), mask=np.isin(places, failed))
    return [pc.take(column, places) for column in columns]
