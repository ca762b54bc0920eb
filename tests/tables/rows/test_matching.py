"""How rows are looked for: what is read at once is bounded by the columns of the condition."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deployer.tables.rows.matching import SCANNED_AT_ONCE, rows_at_once

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us")),
        ("price", pa.decimal128(10, 2)),
        ("Note", pa.string()),
        ("vector", pa.list_(pa.float32(), 1024)),
        ("place", pa.struct([("x", pa.float64())])),
    ]
)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("id < 10", SCANNED_AT_ONCE),
        ("at < TIMESTAMP '2024-01-01' AND price > 3", SCANNED_AT_ONCE),
        ("Note = 'a'", None),
        ("`note` = 'a'", None),
        ("id < 10 OR vector IS NULL", None),
        ("place.x > 1", None),
    ],
)
def test_many_rows_are_read_at_once_where_the_columns_are_narrow(condition: str, expected: int | None) -> None:
    assert rows_at_once(SCHEMA, condition) == expected


def test_a_name_with_a_backtick_may_be_written_in_ways_that_are_not_found() -> None:
    schema = pa.schema([("id", pa.int64()), ("a`b", pa.string())])
    assert rows_at_once(schema, "`a``b` = 'x'") is None
