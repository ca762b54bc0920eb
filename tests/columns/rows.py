"""Rows of the table that columns are loaded into, and of sources."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from deployer.table import Table

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us")),
        pa.field("rating", pa.float64()),
    ]
)
VECTOR = pa.list_(pa.float32(), 3)


def rows(start: int, stop: int) -> pa.Table:
    """Rows with these ids, all other columns distinct and derived from them."""
    ids = range(start, stop)
    columns = [
        [*ids],
        [f"name {i}" for i in ids],
        [dt.date(2020, 1, 1) + dt.timedelta(i) for i in ids],
        [dt.datetime(2020, 1, 1) + dt.timedelta(hours=i) for i in ids],  # noqa: DTZ001
        [float(i) for i in ids],
    ]
    return pa.table(columns, schema=SCHEMA)


def source(ids: Iterable[int], times: float = 1.0) -> pa.Table:
    """A source with the ids in that order, a vector, a text and a struct for each."""
    ids = [*ids]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "embedding": pa.array([[i * times, i + 0.5, -i] for i in ids], VECTOR),
            "label": pa.array([f"label {i * times:g}" for i in ids]),
            "place": pa.array([{"x": i, "tags": [f"t{i}", "all"]} for i in ids]),
        }
    )


def values(table: Table, column: str) -> dict[int, Any]:
    """The column's values by id."""
    found = table.to_arrow(["id", column])
    return dict(zip(found["id"].to_pylist(), found[column].to_pylist(), strict=True))
