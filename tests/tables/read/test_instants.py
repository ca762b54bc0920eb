"""Conditions on instants, in whatever zone they are written, find the rows that Python finds, in a range's files."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deployer.specs.model import TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.state import open_reader
from deployer.tables.admin.tables import create_table
from deployer.tables.append import open_appender
from deployer.tables.read.key_values import Interval
from deployer.tables.read.sql import run_sql
from deployer.tables.read.table import open_table
from tests.tables.lakes import Lake

COLUMNS = {
    "utc": pa.timestamp("us", "UTC"),
    "berlin": pa.timestamp("ms", "Europe/Berlin"),
    "new_york": pa.timestamp("ns", "America/New_York"),
    "naive": pa.timestamp("s"),
}
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]
COMPARED = {"<": operator.lt, "<=": operator.le, "=": operator.eq, ">=": operator.ge, ">": operator.gt}
CHANGES = [dt.datetime(2024, 3, 31, 1, tzinfo=dt.UTC), dt.datetime(2024, 11, 3, 6, tzinfo=dt.UTC)]
INSTANTS = sorted(change + dt.timedelta(minutes=20 * step) for change in CHANGES for step in range(-6, 7))
PER_FILE = 2


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A lake with a table for each type of column, each with files of two rows, from around changes of clocks."""
    lake = Lake(tmp_path_factory.mktemp("instants"))
    for name, kind in COLUMNS.items():
        schema = pa.schema([pa.field("at", kind, nullable=False), pa.field("id", pa.int64())])
        create_table(lake.store, lake.root, TableSpec("air", name, columns_of(schema), ("at",)), "ann")
        with closing(open_appender(lake.root, name)) as appender:
            for first in range(0, len(INSTANTS), PER_FILE):
                instants = pa.array(INSTANTS[first : first + PER_FILE], pa.timestamp("us", "UTC"))
                times = instants.cast(pa.timestamp("us")) if kind.tz is None else instants
                ids = range(first, first + len(instants))
                appender.append(pa.table([times.cast(kind), pa.array(ids, pa.int64())], schema=schema))
    yield lake.root


@dataclass(frozen=True)
class Written:
    """An instant as somebody writes it in SQL."""

    instant: dt.datetime
    text: str


@st.composite
def written(draw: st.DrawFn) -> Written:
    change = draw(st.sampled_from(CHANGES))
    instant = change + dt.timedelta(minutes=draw(st.integers(-14, 14)) * 10)
    zone = ZoneInfo(draw(st.sampled_from(ZONES)))
    local = instant.astimezone(zone)
    shown, plain = local.isoformat(), f"{local:%Y-%m-%d %H:%M:%S}"
    forms = [
        f"TIMESTAMP '{shown}'",
        f"TIMESTAMPTZ '{shown}'",
        f"to_timestamp('{shown}')",
        f"CAST('{shown}' AS TIMESTAMP)",
        f"'{instant:%Y-%m-%dT%H:%M:%SZ}'::timestamp",
        f"arrow_cast({instant.timestamp():.0f}, 'Timestamp(Second, Some(\"{zone.key}\"))')",
    ]
    if {local.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1)} == {instant.timestamp()}:
        forms.append(f"TIMESTAMP '{plain}' AT TIME ZONE '{zone.key}'")
    return Written(instant, draw(st.sampled_from([*forms, f"'{shown}'"])))


def in_zone(interval: Interval, zone: str | None) -> Interval:
    """The interval of instants as one of local times in UTC, for a column without a zone."""
    if zone is not None:
        return interval
    low, high = (each and each.replace(tzinfo=None) for each in (interval.low, interval.high))
    return Interval(low, high, interval.low_included, interval.high_included)


def ids_of(table: pa.Table) -> list[int]:
    return sorted(table["id"].to_pylist())


RANGES = given(st.sampled_from([*COLUMNS]), st.sampled_from([*COMPARED]), written(), st.none() | written())


@settings(max_examples=10, deadline=None)
@RANGES
def test_rows_and_files_are_those_of_a_few_ranges(
    root: str, column: str, compared: str, one: Written, other: Written | None
) -> None:
    check_range(root, column, compared, one, other)


@pytest.mark.full
@settings(max_examples=60, deadline=None)
@RANGES
def test_rows_and_files_are_those_of_the_range(
    root: str, column: str, compared: str, one: Written, other: Written | None
) -> None:
    check_range(root, column, compared, one, other)


def check_range(root: str, column: str, compared: str, one: Written, other: Written | None) -> None:
    """Reads by `one` alone and the operator; with `other`, what lies between both."""
    if other is None:
        condition = f"at {compared} {one.text}"
        expected = [i for i, each in enumerate(INSTANTS) if COMPARED[compared](each, one.instant)]
        low = one.instant if compared in ("=", ">", ">=") else None
        high = one.instant if compared in ("=", "<", "<=") else None
        interval = (low, high, compared != ">", compared != "<")
    else:
        condition = f"at BETWEEN {one.text} AND {other.text}"
        expected = [i for i, each in enumerate(INSTANTS) if one.instant <= each <= other.instant]
        interval = (one.instant, other.instant, True, True)
    with closing(open_table(root, column)) as table:
        ranged = table.range({"at": in_zone(Interval(*interval), COLUMNS[column].tz)})
        assert ids_of(ranged.to_table()) == expected
        found = table.scan(condition)
        assert ids_of(found.to_table()) == expected
        # Lance is shown a condition that no file can match, on one file
        assert (found.opened, found.total) == (max(ranged.opened, 1), ranged.total)
    with closing(open_reader(root)) as store:
        rows = run_sql(store, root, f"SELECT id FROM air.{column} WHERE {condition}")  # noqa: S608
        assert ids_of(rows.to_table()) == expected
        assert (rows.opened, rows.total) == (ranged.opened, ranged.total)


@pytest.mark.parametrize(
    ("query", "opened"),
    [
        ("SELECT id FROM air.berlin WHERE id >= 0", 13),
        ("SELECT count(*) FROM air.berlin", 13),
        ("SELECT id FROM air.berlin WHERE at < TIMESTAMP '2024-03-31 00:30:00'", 1),
        ("SELECT id FROM air.berlin WHERE at = '2024-03-31T00:00:00+01:00' OR at = '2024-11-03T08:00:00Z'", 2),
        ("SELECT id FROM air.berlin WHERE NOT (at >= '2024-03-31T00:10:00+01:00')", 1),
        ("SELECT id FROM air.berlin WHERE at > now()", 0),
        ("SELECT id FROM air.berlin WHERE at < '2024-03-31T00:10:00+01:00' OR id = 9", 13),
        ("SELECT b.id FROM air.berlin b JOIN air.utc u ON b.id = u.id WHERE u.at < '2024-03-30T23:10:00Z'", 14),
    ],
)
def test_whatever_the_query_says_of_keys_is_used(root: str, query: str, opened: int) -> None:
    with closing(open_reader(root)) as store:
        rows = run_sql(store, root, query)
        rows.to_table()
        assert (rows.opened, rows.total) == (opened, 26 if "JOIN" in query else 13)
