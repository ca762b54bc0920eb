"""Reading by key, range, condition and version: the same rows as a full scan, from as few fragments as can be."""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deployer.errors import DeployerError, InvalidInput, NotFound, Refused
from deployer.tables.inspect.describe import describe, summaries
from deployer.tables.read.export import write_csv, write_json_lines, write_parquet
from deployer.tables.read.key_values import Interval, parse_keys, parse_ranges
from deployer.tables.read.sql import run_sql
from deployer.tables.read.table import Rows, Table
from tests.tables.lakes import FLIGHTS, Lake, flights, sorted_rows

NAMES = ("", "A", "AA", "B'6", "Z\x00", "é", "\U0001f6eb")
TIMES = pa.timestamp("us", "America/New_York")
UTC = dt.UTC
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "string": (pa.string(), list(NAMES)),
    "int8": (pa.int8(), [-128, -1, 0, 1, 127]),
    "uint64": (pa.uint64(), [0, 1, 2**63, 2**64 - 1]),
    "bool": (pa.bool_(), [False, True]),
    "float64": (pa.float64(), [float("-inf"), -1.5, 0.0, 0.1, float("inf")]),
    "float32": (pa.float32(), [-1.5, 0.0, 0.5]),
    "float16": (pa.float16(), [np.float16(-1.5), np.float16(0), np.float16(0.5)]),
    "binary": (pa.binary(), [b"", b"\x00", b"a'", b"\xff"]),
    "fixed_size_binary": (pa.binary(2), [b"\x00\x00", b"ab", b"\xff\xff"]),
    "date32": (pa.date32(), [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29)]),
    "time64": (pa.time64("us"), [dt.time(0), dt.time(10, 11, 12, 5), dt.time(23)]),
    "duration": (pa.duration("s"), [dt.timedelta(seconds=n) for n in (-2, 0, 2)]),
    "timestamp": (pa.timestamp("ms"), [dt.datetime(1969, 12, 31, 23), dt.datetime(2024, 1, 1)]),  # noqa: DTZ001
    # The clock goes back at 6:00: the same local hour twice.
    "zoned": (TIMES, [dt.datetime(2013, 11, 3, hour, 30, tzinfo=UTC) for hour in range(4, 8)]),
    "decimal128": (pa.decimal128(6, 2), [Decimal("-1.25"), Decimal(0), Decimal("3.50")]),
    "decimal256": (pa.decimal256(50, 2), [Decimal("-1.25"), Decimal(0), Decimal("3.50")]),
}


@cache
def table_of(kind: str, folder: Path) -> Table:
    """A table with row keys (first: of the kind, second: int32), loaded three times."""
    arrow, values = KEYS[kind]
    lake = Lake(folder)
    schema = pa.schema(
        [pa.field("first", arrow, False), pa.field("second", pa.int32(), False), pa.field("row", pa.int64())]
    )
    lake.table(schema, ("first", "second"), splits=())
    for load in range(3):
        chosen = values[load::2] or values
        first = pa.array([chosen[i % len(chosen)] for i in range(40)], arrow)
        second = pa.array([i % 7 for i in range(40)], pa.int32())
        lake.ingest(lake.file_arrow(pa.table([first, second, list(range(40))], schema=schema)))
    return lake.open()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {kind: tmp_path_factory.mktemp(kind) for kind in KEYS}


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("kind", KEYS)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_pruned_reads_are_full_scans_filtered(kind: str, data: st.DataObject, folders: dict[str, Path]) -> None:
    table = table_of(kind, folders[kind])
    rows = table.scan().to_table().to_pylist()
    values = st.sampled_from(KEYS[kind][1])
    low, high = sorted((data.draw(values), data.draw(values)), key=_order)
    second = data.draw(st.integers(-1, 8))
    low_in, high_in = data.draw(st.booleans()), data.draw(st.booleans())

    def above(value: Any) -> bool:
        return bool(_order(value) >= _order(low) if low_in else _order(value) > _order(low))

    def below(value: Any) -> bool:
        return bool(_order(value) <= _order(high) if high_in else _order(value) < _order(high))

    cases: list[tuple[Rows, Callable[[Any, int], bool]]] = [
        (table.keys((low,)), lambda f, s: f == low),
        (table.keys((low, second)), lambda f, s: (f, s) == (low, second)),
        (table.keys((low,), (high, second)), lambda f, s: f == low or (f, s) == (high, second)),
        (table.range({"first": Interval(low, high, low_in, high_in)}), lambda f, s: above(f) and below(f)),
        (table.range({"first": Interval(low, None, low_in)}), lambda f, s: above(f)),
        (table.range({"first": Interval(None, high, True, high_in)}), lambda f, s: below(f)),
        (table.range({"second": Interval(second, None, low_in)}), lambda f, s: s >= second + (not low_in)),
        (table.scan(keys=[(low,)], ranges={"second": Interval(2, 4)}), lambda f, s: f == low and 2 <= s <= 4),
    ]
    for found, wanted in cases:
        expected = [row for row in rows if wanted(_instant(row["first"]), row["second"])]
        assert sorted(map(repr, found.to_table().to_pylist())) == sorted(map(repr, expected))
        assert found.opened <= found.total


def _instant(value: Any) -> Any:
    """Times in UTC: Python holds a repeated local hour unequal to any other zone's time."""
    return value.astimezone(UTC) if isinstance(value, dt.datetime) and value.tzinfo else value


def _order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def test_a_key_opens_only_fragments_that_can_hold_it(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(200)))
    table = lake.open()
    assert (table.keys(("AA",)).opened, table.keys(("AA",)).total) == (1, 4)
    assert table.keys(("DL",)).opened == 2 and table.keys(("DL", 5)).opened == 1
    assert table.keys(("A0",)).to_table().num_rows == 0 and table.keys(("00",)).opened == 0
    assert table.scan().opened == 4


def test_columns_limit_and_conditions(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(200)))
    table = lake.open()
    found = table.scan("delay > 100 and carrier = 'UA'", ["flight", "delay"], limit=3).to_table()
    assert found.column_names == ["flight", "delay"] and found.num_rows == 3
    assert all(delay > 100 for delay in found["delay"].to_pylist())
    assert table.count_where("carrier = 'UA'") == 40
    assert table.scan("carrier = 'none'").to_table().num_rows == 0
    assert table.scan(columns=["at"]).schema.names == ["at"]


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"where": "carier = 'UA'"}, InvalidInput, "there is no column 'carier'; did you mean 'carrier'?"),
        ({"where": "carrier = "}, InvalidInput, "the condition 'carrier = ' is not one SQL expression"),
        ({"where": "flight = 'x'"}, InvalidInput, "cannot be used"),
        ({"columns": ["fligt"]}, InvalidInput, "did you mean 'flight'?"),
        ({"keys": [(1,)]}, InvalidInput, "column 'carrier': 1 is not a value of string"),
        ({"keys": [("UA", None)]}, InvalidInput, "a null is neither a key"),
        ({"ranges": {"delays": Interval(1, 2)}}, InvalidInput, "did you mean 'delay'?"),
        ({"at": 99}, NotFound, "there is no version 99"),
        ({"at": "yesterday"}, InvalidInput, "neither a version nor a time"),
        ({"at": "2001-01-01"}, NotFound, "no version from 2001-01-01"),
    ],
)
def test_conditions_that_do_not_fit(arguments: Any, error: type[DeployerError], says: str, lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(5)))
    with pytest.raises(error) as raised:
        lake.open().scan(**arguments).to_table()
    assert says in str(raised.value) and ".rs" not in str(raised.value)


def test_versions_and_times(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(5)), job_id="first")
    between = dt.datetime.now(dt.UTC)
    lake.ingest(lake.file(flights(7, 5)), job_id="second")
    table = lake.open()
    assert [table.count_where(at=at) for at in (1, 2, 3, "2", between, between.isoformat())] == [0, 5, 12, 5, 5, 5]
    assert table.keys(("UA",)).to_table().num_rows == 3
    assert table.scan(at=2, keys=[("UA",)]).to_table().num_rows == 1
    versions = table.history()
    assert [(v.version, v.kind, v.job_id, v.rows, v.foreign) for v in versions] == [
        (3, "ingest", "second", 7, False),
        (2, "ingest", "first", 5, False),
        (1, "create", "", 0, False),
    ]
    assert all(version.author for version in versions)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("UA", ("UA",)),
        ("UA,15", ("UA", 15)),
        ('"U,A", 15', ("U,A", 15)),
    ],
)
def test_keys_as_text(text: str, expected: tuple[Any, ...]) -> None:
    assert parse_keys(FLIGHTS, ("carrier", "flight"), text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("carrier=AA..DL", ("carrier", Interval("AA", "DL"))),
        ("carrier=AA..", ("carrier", Interval("AA", None))),
        ("carrier=..DL", ("carrier", Interval(None, "DL"))),
        ("carrier=AA<..<DL", ("carrier", Interval("AA", "DL", False, False))),
        ("flight=-5..7", ("flight", Interval(-5, 7))),
    ],
)
def test_ranges_as_text(text: str, expected: tuple[str, Interval]) -> None:
    assert dict([expected]) == parse_ranges(FLIGHTS, [text])


@pytest.mark.parametrize(
    ("keys", "ranges", "says"),
    [
        ("UA,x", [], "'x' is not a value of int32"),
        ("UA,1,2", [], "give at most 2: carrier, flight"),
        ("", ["carrier"], "write COLUMN=LOW..HIGH"),
        ("", ["delays=1..2"], "did you mean 'delay'?"),
        ("", ["flight=1..2", "flight=3.."], "names 'flight' twice"),
    ],
)
def test_keys_and_ranges_that_are_none(keys: str, ranges: list[str], says: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        parse_ranges(FLIGHTS, ranges)
        parse_keys(FLIGHTS, ("carrier", "flight"), keys)
    assert says in str(raised.value)


def test_exports_come_back(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(30)))
    rows = lake.open().scan()
    table = rows.to_table()
    text = io.StringIO()
    write_json_lines(iter(table.to_batches()), text)
    assert len([json.loads(line) for line in text.getvalue().splitlines()]) == 30
    text = io.StringIO()
    write_csv(table.schema, iter(table.to_batches()), text)
    again = Lake(lake.folder / "again")
    again.table()
    again.ingest(again.text("rows.csv", text.getvalue()))
    assert sorted_rows(again.open().scan().to_table()) == sorted_rows(flights(30))
    assert write_parquet(table.schema, iter(table.to_batches()), lake.folder / "out.parquet") == 30
    assert sorted_rows(pq.read_table(lake.folder / "out.parquet")) == sorted_rows(flights(30))


def test_descriptions_tell_sizes_leaves_and_columns(lake: Lake) -> None:
    lake.table()
    assert summaries(lake.store, lake.root)[0][0].last_write is None
    lake.ingest(lake.file(flights(100)))
    [summary], _ = summaries(lake.store, lake.root)
    told = describe(lake.open().opened)
    assert (summary.name, summary.rows, summary.leaves, summary.files) == ("air.flights", 100, 4, 4)
    assert told.summary == summary and summary.last_write is not None
    assert [(leaf.lower, leaf.upper) for leaf in told.leaves] == [
        (None, ("B6",)),
        (("B6",), ("DL", 500)),
        (("DL", 500), ("UA",)),
        (("UA",), None),
    ]
    assert sum(leaf.rows for leaf in told.leaves) == 100
    assert [column.key for column in told.columns] == ["row key 1", "row key 2", "", "", ""]
    assert told.location.startswith("file:///")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select count(*) n from air.flights", [{"n": 100}]),
        ("select count(*) n from flights where delay > 50 and carrier = 'UA'", [{"n": 8}]),
        ("select count(*) n from flights f join carriers c on f.carrier = c.code", [{"n": 40}]),
        ('select c."Odd Name" o from air.carriers c order by 1', [{"o": "x"}, {"o": "y"}]),
        ("select flight from flights where false", []),
    ],
)
def test_sql(query: str, expected: list[Any], sql_lake: Lake) -> None:
    assert run_sql(sql_lake.store, sql_lake.root, query).to_table().to_pylist() == expected


@pytest.fixture
def sql_lake(lake: Lake) -> Lake:
    lake.table()
    lake.ingest(lake.file(flights(100)))
    carriers = pa.table({"code": ["UA", "AA"], "Odd Name": ["x", "y"]})
    lake.table(carriers.schema, (), name="carriers")
    lake.ingest(lake.file(carriers), table="carriers")
    return lake


@pytest.mark.parametrize(
    ("query", "error", "says"),
    [
        ("drop table flights", Refused, "only reads"),
        ("insert into flights select * from flights", Refused, "only reads"),
        ("create external table x stored as csv location '/etc/passwd'", Refused, "only reads"),
        ("copy flights to 'FOLDER/out.csv'", Refused, "only reads"),
        ("set datafusion.execution.batch_size = 1", Refused, "only reads"),
        ("select * from '/etc/passwd'", InvalidInput, "there is no table"),
        ("select * from flihts", InvalidInput, "did you mean 'flights'?"),
        ("select carier from flights", InvalidInput, "did you mean 'carrier'?"),
        ("selct 1", InvalidInput, "the SQL cannot be read"),
        ("select 1; select 2", InvalidInput, "single SQL statement"),
    ],
)
def test_sql_that_is_refused(query: str, error: type[DeployerError], says: str, sql_lake: Lake) -> None:
    with pytest.raises(error) as raised:
        run_sql(sql_lake.store, sql_lake.root, query.replace("FOLDER", str(sql_lake.folder))).to_table()
    assert says in str(raised.value)
    assert not (sql_lake.folder / "out.csv").exists()


def test_other_readers_open_the_dataset(lake: Lake) -> None:
    table = lake.table()
    lake.ingest(lake.file(flights(10)))
    assert lance.dataset(table.opened.location).count_rows() == 10


def test_keys_that_are_times_may_be_text(lake: Lake) -> None:
    schema = pa.schema([pa.field("at", pa.timestamp("us", "UTC"), nullable=False), pa.field("day", pa.date32())])
    lake.table(schema, ("at",), splits=())
    lake.ingest(lake.text("in.csv", "at,day\n2024-03-04T10:00:01Z,2024-03-04\n2024-03-05T10:00:01Z,2024-03-05\n"))
    table = lake.open()
    assert table.keys(("2024-03-04T10:00:01Z",)).to_table().num_rows == 1
    assert table.range({"day": Interval("2024-03-05", None)}).to_table().num_rows == 1
    for wrong in ("2024-03-04T10:00:01", "soon"):
        with pytest.raises(InvalidInput, match="is not a value of timestamp"):
            table.keys((wrong,))
