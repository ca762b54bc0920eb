"""Computed columns of rows that get other values: where no input of a column changes, its value stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from deployer.tables.changes.values import differ
from deployer.tables.ingest.rows.computed_values import Computing, columns_to_compute, computed_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Computes again what depends on these columns: gets rows, their places in the batch and the columns.
Compute = Callable[[pa.RecordBatch, "NDArray[np.int64]", frozenset[str]], pa.RecordBatch]


def compared_inputs(schema: pa.Schema, given: frozenset[str]) -> list[str]:
    """Returns the columns, of those that are given values, that computed columns are computed from."""
    read = {name for computed in computed_columns(schema).values() for name in computed.inputs}
    return sorted(read & given)


def computed_again(
    rows: pa.RecordBatch, before: pa.RecordBatch, given: frozenset[str], compute: Compute
) -> pa.RecordBatch:
    """Returns the rows with computed columns of their new values; only what an input of changed is computed.

    `rows` have the values of the columns `given` and the former values of computed columns, and `before` has the
    former values of `compared_inputs`; both as the table's types.
    """
    inputs = compared_inputs(rows.schema, given)
    if not columns_to_compute(rows.schema, Computing(changed=frozenset(inputs))):
        return rows
    parts, places = list[pa.RecordBatch](), list["NDArray[np.int64]"]()
    for changed, own in _by_changes(rows, before, inputs):
        part = rows if len(own) == rows.num_rows else rows.take(pa.array(own))
        parts.append(compute(part, own, changed) if changed else part)
        places.append(own)
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate(places), kind="stable")
    together = pa.Table.from_batches(parts).take(pa.array(order)).combine_chunks()
    return together.to_batches()[0] if together.num_rows else rows


def _by_changes(
    rows: pa.RecordBatch, before: pa.RecordBatch, inputs: list[str]
) -> Iterator[tuple[frozenset[str], NDArray[np.int64]]]:
    """Yields sets of columns, with the places of the rows in which exactly these have other values than before."""
    unlike = np.stack([differ(rows.column(name), before.column(name)) for name in inputs], axis=1)
    patterns, of_row = np.unique(unlike, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        names = frozenset(name for name, is_changed in zip(inputs, pattern, strict=True) if is_changed)
        yield names, np.flatnonzero(of_row.reshape(-1) == number)
