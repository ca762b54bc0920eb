"""Converts columns in Spark's Arrow types to the types of tables.

This module converts types that Spark replaces: times of day, which are whole numbers of their unit, and decimals of
more than 38 digits, which are text (`type_mapping`). All other differences are converted and checked as in any load.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.tables.conversion.casts import converted
from deployer.tables.conversion.nested_casts import cast_nested, is_nested_pair
from deployer.tables.conversion.numbers import texts_to_decimals
from deployer.tables.ingest.files.columnar import ALIGNED
from deployer.tables.ingest.rows.check import FailedRows, SourceRows, type_name
from deployer.tables.ingest.rows.field_map import FieldMap
from deployer.tables.ingest.rows.mapped_rows import fields_to_read, in_columns


def source_rows(batch: pa.RecordBatch, first: int, table: pa.Schema, fields: FieldMap) -> SourceRows:
    """Returns a batch of Spark as rows with those of the table's columns that it has. Rows are numbered from
    `first`."""
    read = aligned(batch.select(fields_to_read(batch.schema.names, table, fields)))
    numbers = np.arange(first, first + batch.num_rows, dtype=np.int64)
    source = in_columns(SourceRows(read, numbers), table, fields)
    arrays, failed = list(source.rows.columns), dict(source.failed)
    for place, name in enumerate(source.rows.schema.names):
        column = table.field(name)
        target = taken_type(arrays[place].type, column.type)
        if target != arrays[place].type:
            arrays[place], bad = converted(arrays[place], partial(_taken, target=target), target)
            if bad is not None:
                failed[name] = FailedRows(bad, f"does not fit {type_name(column)}")
    if failed == source.failed and all(a is b for a, b in zip(arrays, source.rows.columns, strict=True)):
        return source
    rows = pa.RecordBatch.from_arrays(arrays, names=source.rows.schema.names)
    return SourceRows(rows, numbers, fields=source.fields, inputs=source.inputs, failed=failed)


def taken_schema(columns: pa.Schema, table: pa.Schema, fields: FieldMap) -> pa.Schema:
    """Returns the columns with the types that `source_rows` gives them."""
    found = []
    for each in columns:
        column = fields.column_of(each.name)
        known = column is not None and column in table.names
        found.append(each.with_type(taken_type(each.type, table.field(column).type)) if known else each)
    return pa.schema(found)


def taken_type(source: pa.DataType, target: pa.DataType) -> pa.DataType:
    """Returns the type that Spark's values take for a column of the type `target`: their own type where Spark's type
    does not replace another."""
    types = pa.types
    if types.is_time(target) and types.is_int64(source):
        return target
    if types.is_decimal(target) and (types.is_string(source) or types.is_large_string(source)):
        return target
    if not is_nested_pair(source, target):
        return source
    if types.is_struct(source):
        ours = {field.name: field.type for field in target}
        return pa.struct([f.with_type(taken_type(f.type, ours[f.name])) if f.name in ours else f for f in source])
    if types.is_map(source):
        key, item = taken_type(source.key_type, target.key_type), taken_type(source.item_type, target.item_type)
        return pa.map_(source.key_field.with_type(key), source.item_field.with_type(item))
    if types.is_list(source) and not types.is_map(target):
        return pa.list_(source.value_field.with_type(taken_type(source.value_type, target.value_type)))
    return source


def _taken(values: Any, target: pa.DataType) -> Any:
    source = values.type
    if source.equals(target):
        return values
    types = pa.types
    if types.is_time(target):
        return pc.cast(pc.cast(values, pa.int32()) if types.is_time32(target) else values, target)
    if types.is_decimal(target):
        return texts_to_decimals(values, target)
    return cast_nested(values, target, _taken)


def aligned(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the batch with aligned buffers: Lance panics on decimals that are not aligned to 16 bytes."""
    if not any("decimal" in str(field.type) for field in batch.schema):
        return batch
    buffers = (buffer for column in batch.columns for buffer in column.buffers() if buffer is not None)
    if all(buffer.address % 16 == 0 for buffer in buffers):
        return batch
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue(), options=ALIGNED).read_next_batch()
