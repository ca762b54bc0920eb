"""The order of merged rows is that of `sorted_rows`, for columns of every kind that a key can be."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployer.datasets.ordering.sort_order import sorted_rows
from deployer.runs.rewriting.executor import no_row_progress
from deployer.runs.rewriting.merging import merge_order
from deployer.services.kinds.cluster import sort_task as arranging
from deployer.services.kinds.compact.merge_task import _taken

VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.int8(): st.integers(-128, 127),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float64(): st.floats() | st.sampled_from((0.0, -0.0)),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=4),
    pa.binary(): st.binary(max_size=3),
    pa.date32(): st.dates(dt.date(1970, 1, 1), dt.date(2100, 1, 1)),
    pa.timestamp("us", "UTC"): st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2100, 1, 1)),  # noqa: DTZ001
    pa.decimal128(6, 2): st.decimals(-9999, 9999, places=2),
}


@st.composite
def keys(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(0, 12))
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4))
    columns = [pa.array(draw(st.lists(st.none() | VALUES[kind], min_size=rows, max_size=rows)), kind) for kind in kinds]
    return pa.table(columns, [f"c{i}" for i in range(len(kinds))])


@given(keys())
def test_it_is_the_order_of_a_stable_sort(table: pa.Table) -> None:
    order = merge_order(table)
    assert sorted(order.tolist()) == list(range(table.num_rows))
    numbered = table.append_column("row", pa.array(np.arange(table.num_rows)))
    expected = sorted_rows(numbered, [*table.column_names, "row"])
    assert numbered.take(pa.array(order))["row"].to_pylist() == expected["row"].to_pylist()


@pytest.mark.parametrize("columns", [3, 5])
def test_keys_that_do_not_fit_one_number_are_made_dense(columns: int) -> None:
    random = np.random.default_rng(3)
    table = pa.table([pa.array(random.integers(0, 2**60, 500) // 2**58 * 2**50 + i) for i in range(columns)],
                     [f"c{i}" for i in range(columns)])  # fmt: skip
    assert table.take(pa.array(merge_order(table))).equals(sorted_rows(table, table.column_names))


def test_columns_of_many_rows_are_numbered_at_once() -> None:
    random = np.random.default_rng(5)
    table = pa.table({name: random.integers(0, most, 120_000) for name, most in (("a", 3), ("b", 100), ("c", 50))})
    assert table.take(pa.array(merge_order(table))).equals(sorted_rows(table, table.column_names))


@pytest.mark.slow
def test_texts_of_more_than_two_gigabytes_are_taken() -> None:
    """More than the offsets of one array reach."""
    text = pa.array(["x" * 900_000_000])
    parts = [pa.record_batch({"at": [number], "text": text}) for number in range(3)]
    rows = pa.Table.from_batches(_taken(parts, np.array([2, 0])))
    assert rows["at"].to_pylist() == [2, 0] and set(pc.utf8_length(rows["text"]).to_pylist()) == {900_000_000}
    column = pa.Table.from_batches(parts)["text"]
    assert pc.utf8_length(arranging._taken(column, no_row_progress, pa.array([2, 0]))).to_pylist() == 2 * [900_000_000]
