"""The two tables of a dataset that clients see: one has a row for each segment, the other (the manifest) for each
layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from deployer.catalog.datasets.reads.index import DatasetIndex
from deployer.errors import InvalidInput

TYPE = "rrd"  #: the type of all layers


def _texts(name: str) -> pa.ListType:
    return pa.list_(pa.field(name, pa.utf8(), nullable=False))


SEGMENTS = pa.schema(
    [
        pa.field("rerun_segment_id", pa.utf8(), nullable=False),
        pa.field("rerun_layer_names", _texts("rerun_layer_names"), nullable=False),
        pa.field("rerun_storage_urls", _texts("rerun_storage_urls"), nullable=False),
        pa.field("rerun_last_updated_at", pa.timestamp("ns"), nullable=False),
        pa.field("rerun_num_chunks", pa.uint64(), nullable=False),
        pa.field("rerun_size_bytes", pa.uint64(), nullable=False),
    ]
)
MANIFEST = pa.schema(
    [
        pa.field("rerun_layer_name", pa.utf8(), nullable=False),
        pa.field("rerun_segment_id", pa.utf8(), nullable=False),
        pa.field("rerun_storage_url", pa.utf8(), nullable=False),
        pa.field("rerun_layer_type", pa.utf8(), nullable=False),
        pa.field("rerun_registration_time", pa.timestamp("ns"), nullable=False),
        pa.field("rerun_last_updated_at", pa.timestamp("ns"), nullable=False),
        pa.field("rerun_num_chunks", pa.uint64(), nullable=False),
        pa.field("rerun_size_bytes", pa.uint64(), nullable=False),
        pa.field("rerun_schema_sha256", pa.binary(32), nullable=False),
    ]
)


def segment_table(index: DatasetIndex) -> pa.Table:
    """Returns a row for each segment, in the order of their first registration.

    Where several layers of a segment have a property, the row has the value of the layer that was registered last.
    """
    return index.remembered("segments", lambda: _segment_table(index))


def _segment_table(index: DatasetIndex) -> pa.Table:
    codes, segments = index.segment_codes
    order = np.argsort(codes, kind="stable")  # the layers of a segment, in the order of their registration
    starts = np.searchsorted(codes[order], np.arange(len(segments) + 1)).astype(np.int32)
    layers = index.layers.take(pa.array(order))
    columns = [
        segments.cast(pa.utf8()),
        _lists(layers["layer"], starts, "rerun_layer_names"),
        _lists(layers["url"], starts, "rerun_storage_urls"),
        pa.array(_of_each(np.maximum, layers["registered_at"], starts)).cast(pa.timestamp("ns")),
        pa.array(_of_each(np.add, layers["chunks"], starts)).cast(pa.uint64()),
        pa.array(_of_each(np.add, layers["bytes"], starts)).cast(pa.uint64()),
    ]
    fields = list(SEGMENTS)
    for field in index.properties.schema:
        values = index.properties[field.name].combine_chunks()
        given = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        last = np.full(len(segments), -1, np.int64)
        np.maximum.at(last, codes[given], given)
        columns.append(values.take(pa.array(last, mask=last < 0)))
        fields.append(field)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def manifest(index: DatasetIndex, with_status: bool = False) -> pa.Table:
    """Returns a row for each layer, in the order of their registration. `with_status` is for clients from 0.30 on."""
    layers = index.layers
    count = layers.num_rows
    columns = [
        layers["layer"],
        layers["segment"],
        layers["url"],
        pa.array([TYPE] * count, pa.utf8()),
        layers["registered_at"].cast(pa.timestamp("ns")),
        layers["registered_at"].cast(pa.timestamp("ns")),
        layers["chunks"].cast(pa.uint64()),
        layers["bytes"].cast(pa.uint64()),
        layers["schema_sha256"],
    ]
    fields = list(MANIFEST)
    for field in index.properties.schema:
        columns.append(index.properties[field.name])
        fields.append(field)
    if with_status:
        columns.append(pa.array(["done"] * count, pa.utf8()))
        fields.append(pa.field("rerun_registration_status", pa.utf8(), nullable=False))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def projected(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Returns the table with only the named columns; all columns where none is named. Raises InvalidInput for a column
    that is unknown or named twice."""
    if not columns:
        return table
    for name in columns:
        if name not in table.column_names:
            raise InvalidInput(
                f"Unable to project columns: Column '{name}' not found", remedy="name columns of the table's schema"
            )
    if len(set(columns)) < len(columns):
        raise InvalidInput("Unable to project columns: a column is named twice", remedy="name each column once")
    return table.select(list(columns))


def batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a table; a table without rows yields one empty batch."""
    yield from table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]


def _lists(values: pa.ChunkedArray, starts: np.ndarray[tuple[int], np.dtype[np.int32]], name: str) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(starts), values.combine_chunks(), type=_texts(name))


def _of_each(
    function: np.ufunc, values: pa.ChunkedArray, starts: np.ndarray[tuple[int], np.dtype[np.int32]]
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Returns, for each segment, the result of `function` over its values. Each segment must have a value."""
    numbers = values.to_numpy()
    if not len(numbers):
        return np.zeros(0, np.int64)
    found: np.ndarray[tuple[int], np.dtype[np.int64]] = function.reduceat(numbers, starts[:-1])
    return found
