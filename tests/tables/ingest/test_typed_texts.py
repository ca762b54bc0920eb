"""Texts that a condition compares with dates and times are taken as values of the column's type."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from deployer.errors import InvalidInput
from deployer.specs.model import TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.tables.admin.tables import create_table
from deployer.tables.append import open_appender
from deployer.tables.read.table import Table, open_table
from deployer.tables.read.typed_texts import with_typed_texts
from tests.tables.lakes import Lake

DAYS = pa.array(["2026-01-30", "2026-01-31", "2026-02-01"]).cast(pa.date32())
TIMES = pa.array([3 * 3600, 4 * 3600 + 1800, 5 * 3600], pa.time32("s"))
AT = pa.array(["2026-01-30T12:00:00Z", "2026-01-31T08:00:00Z", "2026-02-01T12:00:00Z"]).cast(pa.timestamp("us", "UTC"))
ROWS = pa.table(
    {
        "day": DAYS,
        "at": AT.cast(pa.timestamp("us", "America/New_York")),
        "plain": AT.cast(pa.timestamp("ms")),
        "of_day": TIMES,
        "fine": TIMES.cast(pa.time64("ns")),
        "seen": pa.array([{"at": each, "by": {"day": day}} for each, day in zip(AT, DAYS, strict=True)]),
        "note": ["2026-01-30", "it's 2026-01-31", "2026-02-01"],
        "id": [1, 2, 3],
    }
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    """A table with a file for each row."""
    lake = Lake(Path(tmp_path_factory.mktemp("lake")))
    schema = pa.schema([field.with_nullable(field.name != "day") for field in ROWS.schema])
    create_table(lake.store, lake.root, TableSpec("air", "visits", columns_of(schema), ("day",)), "ann")
    appender = open_appender(lake.root, "visits")
    for row in range(3):
        appender.append(ROWS.slice(row, 1).cast(schema))
    appender.close()
    opened = open_table(lake.root, "visits")
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("at < '2026-01-31T03:00:00-05:00'", [1]),
        ("at <= '2026-01-31 03:00:00'", [1, 2]),  # of the column's zone
        ("at < '2026-02-01'", [1, 2]),
        ("'2026-01-31T08:00:00Z' < at", [3]),
        ("plain = '2026-01-31T08:00:00'", [2]),
        ("plain = '2026-01-31T03:00:00-05:00'", [2]),
        ("day = '2026-01-31'", [2]),
        ("day != '2026-01-31' and note = '2026-01-30'", [1]),
        ("day in ('2026-01-30','2026-02-01')", [1, 3]),
        ("day not in('2026-01-30', DATE '2026-02-01')", [2]),
        ("day between'2026-01-31'and'2026-02-01'", [2, 3]),
        ("`day` not between '2026-01-31' and '2026-02-01'", [1]),
        ("not (day is distinct from '2026-01-31')", [2]),
        ("day = '2026-01-30' or (at > '2026-02-01' and not (note = 'x'))", [1, 3]),
        ("(day = '2026-01-31') is not true", [1, 3]),
        ("of_day > '04:30:00'", [3]),
        ("fine <= '04:30'", [1, 2]),
        ("seen.at < '2026-01-31T08:00:00Z'", [1]),
        ("seen.`by`.day >= '2026-01-31' and note like '%''s%'", [2]),
        ("note = '2026-01-30'", [1]),
    ],
)
def test_a_text_is_a_value_of_the_columns_type(table: Table, where: str, ids: list[int]) -> None:
    assert sorted(table.scan(where).to_table()["id"].to_pylist()) == ids
    assert table.count_where(where) == len(ids)


def test_files_are_chosen_as_by_a_typed_literal(table: Table) -> None:
    found = table.scan("day < '2026-01-31'")
    assert (found.opened, found.total) == (1, 3)


@pytest.mark.parametrize("where", ["at < 'yesterday'", "day = '2026-02-30'", "of_day = '25:00:00'"])
def test_what_is_no_time_is_refused_as_it_is_written(table: Table, where: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        table.scan(where).to_table()
    assert f'the condition "{where}" cannot be used' in str(refused.value)
    assert "arrow_cast" not in refused.value.what and "DATE" not in refused.value.what


@pytest.mark.parametrize(
    "where",
    [
        "note < '2026'",
        "day = 3 +",
        "at < now()",
        "Day = '2026-01-31'",
        "day = '2026-01-31' -- it",
        "cast(day as text) = 'x'",
    ],
)
def test_all_else_stays(where: str) -> None:
    assert with_typed_texts(where, ROWS.schema) == where
