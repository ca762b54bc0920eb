"""What is taken of an SQL condition is what it says: rows that it is true for are never left out."""

from __future__ import annotations

import datetime as dt
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployer.services.kinds.cluster import cluster_table
from deployer.specs.model import TableSpec
from deployer.specs.types.arrow import arrow_type
from deployer.specs.types.parser import parse_type
from deployer.specs.types.types import Column
from deployer.tables.admin.tables import create_table
from deployer.tables.append import open_appender
from deployer.tables.read import table as tables
from deployer.tables.read.key_values import Interval
from deployer.tables.read.table import open_table
from deployer.tables.read.where_ranges import ranges_in
from tests.services.compact.test_compact import append
from tests.tables.lakes import Lake, flights, sorted_rows

SCHEMA = pa.schema(
    [
        ("carrier", pa.string()),
        ("Number", pa.int16()),
        ("of day", pa.date32()),
        ("at", pa.timestamp("ms")),
        ("seen", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us", "America/New_York")),
        ("late", pa.bool_()),
        ("price", pa.float64()),
        ("place", pa.struct([("gate", pa.int32())])),
    ]
)
NAMES = SCHEMA.names
START_OF_DAY = dt.datetime(2013, 7, 4, tzinfo=dt.UTC).replace(tzinfo=None)
TEN = dt.datetime(2013, 7, 4, 10, tzinfo=dt.UTC)
HALF_A_SECOND_PAST_TEN = dt.datetime(2013, 7, 4, 10, 0, 0, 500_000, dt.UTC).replace(tzinfo=None)


def said(where: str) -> dict[str, tuple[Any, ...]]:
    def plain(value: pa.Scalar | None) -> Any:
        return None if value is None else value.as_py()

    found = ranges_in(where, SCHEMA, NAMES)
    return {
        name: (plain(each.low), plain(each.high), *([] if each.low_included else ["low out"]),
               *([] if each.high_included else ["high out"]))
        for name, each in found.items()
    }  # fmt: skip


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("carrier = 'AA'", {"carrier": ("AA", "AA")}),
        ("'AA' <= carrier AND carrier < 'B''s'", {"carrier": ("AA", "B's", "high out")}),
        ("`carrier` in ('UA', 'AA', 'DL')", {"carrier": ("AA", "UA")}),
        ("Number between 3 and 5 and price > 2", {"Number": (3, 5)}),
        ("(Number > -3 and (Number >= 2 and 9 > Number))", {"Number": (2, 9, "high out")}),
        ("Number > 2 and Number >= 2", {"Number": (2, None, "low out")}),
        ("`of day` >= date '2013-07-04'", {"of day": (dt.date(2013, 7, 4), None)}),
        ("at < timestamp '2013-07-04T10:00:00.5'", {"at": (None, HALF_A_SECOND_PAST_TEN, "high out")}),
        ("seen = timestamp '2013-07-04 10:00:00'", {"seen": (dt.datetime(2013, 7, 4, 10, tzinfo=dt.UTC),) * 2}),
        ("late = true", {"late": (True, True)}),
        ("carrier = 'AA' and (Number = 1 or late = true)", {"carrier": ("AA", "AA")}),
        ("Number = 2 or Number between 5 and 7 and late = true or Number = 4", {"Number": (2, 7)}),
        ("(Number > 3 or Number = 2) and (late = true or Number < 9)", {"Number": (2, None)}),
        ("at < timestamp '2013-07-04T10:00:00.5001'", {"at": (None, HALF_A_SECOND_PAST_TEN, "high out")}),
        ("at < date '2013-07-04'", {"at": (None, START_OF_DAY, "high out")}),
        ("local < timestamp '2013-07-04T06:00:00'", {"local": (None, TEN, "high out")}),
        ("seen > arrow_cast(1372932000, 'Timestamp(Second, Some(\"Asia/Tokyo\"))')", {"seen": (TEN, None, "low out")}),
        ("carrier = 'AA' and not Number = 1 and carrier like 'A%'", {"carrier": ("AA", "AA")}),
        ("carrier = 'AA' and place.gate = 4", {}),
    ],
)  # fmt: skip
def test_comparisons_that_all_have_to_hold_are_taken(where: str, expected: dict[str, tuple[Any, ...]]) -> None:
    assert said(where) == expected


@pytest.mark.parametrize(
    "where",
    [
        "carrier = 'AA' or Number = 1",
        "not carrier = 'AA'",
        "carrier <> 'AA'",
        "carrier not in ('AA')",
        "Number not between 1 and 2",
        "carrier = Number",
        "carrier = null",
        "carrier in ('AA', null)",
        "carrier = 1",
        "Number = '1'",
        "Number > 1.5",
        "Number < 100000",  # more than the column can hold
        "cast(Number as string) < '5'",
        "cast('5' as string) > Number",
        "Number + 1 = 5",
        "abs(Number) = 5",
        "number = 5",  # another name for SQL that does not look at the case
        'carrier = "place"',  # a column, or a text
        "carrier = 'a\\' and Number = 1",
        "carrier = 'AA' -- and Number = 1",
        "carrier = 'AA' /* or */",
        "local < timestamp '2013-11-03T01:30:00'",  # twice, as clocks are put back
        "local < timestamp '2013-03-10T02:30:00'",  # skipped
        "Number = 1 or Number <> 2",
        "price = 2.5",
        "carrier = 'AA') or (1 = 1",
        "this is no SQL",
        "",
    ],
)
def test_whatever_could_mean_something_else_says_nothing(where: str) -> None:
    assert said(where) == {}


def test_names_that_differ_in_case_alone_say_nothing() -> None:
    schema = pa.schema([("a", pa.int8()), ("A", pa.int8())])
    assert ranges_in("a = 1", schema, schema.names) == {}


@given(
    st.lists(st.tuples(st.sampled_from(["<", "<=", "=", ">=", ">"]), st.integers(-9, 9)), min_size=1, max_size=4),
    st.integers(-9, 9),
)
def test_a_row_that_all_hold_for_is_within(conditions: list[tuple[str, int]], value: int) -> None:
    found = ranges_in(" and ".join(f"Number {operator} {bound}" for operator, bound in conditions), SCHEMA, ["Number"])
    holds = all(eval(f"{value} {'==' if o == '=' else o} {bound}") for o, bound in conditions)  # noqa: S307
    assert _is_within(found["Number"], value) == holds


def _is_within(interval: Interval, value: int) -> bool:
    low, high = (None if each is None else each.as_py() for each in (interval.low, interval.high))
    return (low is None or value > low or (value == low and interval.low_included)) and (
        high is None or value < high or (value == high and interval.high_included)
    )


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize(
    "where",
    [
        "carrier = 'DL'",
        "carrier > 'DL' and flight <= 30",
        "delay between 10 and 20",
        "delay >= 30 and carrier in ('AA', 'UA')",
        "carrier = 'DL' or flight = 3",
        "carrier = 'no such'",
        "delay is null and carrier < 'DL'",
        "price > 50 and delay = 7",
    ],
)
def test_the_same_rows_come_from_fewer_files(lake: Lake, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.table(row_keys=("carrier", "flight"))
    append(lake, flights(400), 8)
    cluster_table(lake.root, "flights", {"columns": ["delay"], "target_file_bytes": 1500})
    append(lake, flights(100, 400), 5)
    table = lake.open()
    chosen = table.scan(where)
    rows = sorted_rows(chosen.to_table())
    monkeypatch.setattr(tables, "WORTH_CHOOSING", 1_000_000)
    every = table.scan(where)
    assert rows == sorted_rows(every.to_table()) and every.opened == every.total
    assert (chosen.opened < every.opened) == (" or " not in where)
    assert table.count_where(where) == len(rows)


@pytest.mark.parametrize("kind", ["timestamp[us, UTC]", "timestamp[ms]", "date32"])
@pytest.mark.parametrize("operator", ["<", "<=", "=", ">=", ">"])
def test_times_mean_to_lance_what_is_taken_of_them(lake: Lake, kind: str, operator: str) -> None:
    days = [dt.datetime(2013, 7, day, 10, tzinfo=dt.UTC) for day in range(1, 9)]
    column = Column("at", parse_type(kind), nullable=False)
    create_table(lake.store, lake.root, TableSpec("air", "times", (column,), ("at",)), "ann")
    with closing(open_appender(lake.root, "times")) as appender:
        for day in days:
            values = pa.array([day], pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
            appender.append(pa.table([values.cast(arrow_type(column.type), safe=False)], ["at"]))
    literal = "date '2013-07-04'" if kind == "date32" else "timestamp '2013-07-04 10:00:00'"
    found = open_table(lake.root, "times").scan(f"at {operator} {literal}")
    expected = {"<": 3, "<=": 4, "=": 1, ">=": 5, ">": 4}[operator]
    assert (found.to_table().num_rows, found.opened, found.total) == (expected, expected, len(days))


def test_many_conditions_are_no_hindrance() -> None:
    assert said(" and ".join(f"Number > {each}" for each in range(500))) == {"Number": (499, None, "low out")}
    assert said(" and ".join(f"Number > {each}" for each in range(50_000))) == {}


def test_what_lance_refuses_is_refused_where_no_file_can_match(lake: Lake) -> None:
    lake.table(row_keys=("carrier", "flight"))
    append(lake, flights(400), 8)
    with pytest.raises(Exception, match="nowhere"):
        lake.open().scan("carrier = 'no such' and nowhere = 1")
