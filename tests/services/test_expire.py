"""EXPIRE: rows older than the retention go, files of such rows without being read, and held rows stay."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from deployer.errors import Refused
from deployer.platform.files.json_values import JSON
from deployer.runs.records import runs_of
from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.compact import compact_table
from deployer.services.kinds.expire import EXPIRE, expire_table
from deployer.services.registry import forecast
from deployer.tables.read.table import Table
from tests.tables.lakes import Lake

NOW = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
AT = NOW.timestamp()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def table(lake: Lake, kind: pa.DataType, row_keys: tuple[str, ...] = (), **declared: JSON) -> Table:
    """Days 0 to 59 before NOW in a row each, ten to a load, and a row without a day where that may be null."""
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), pa.field("day", kind, nullable="day" not in row_keys)]
    )
    opened = lake.table(schema, row_keys, splits=())
    for first in range(0, 60, 10):
        lake.ingest(lake.file_arrow(pa.table([range(first, first + 10), days(kind, first)], schema=schema)))
    if "day" not in row_keys:
        lake.ingest(lake.file_arrow(pa.table([[1000], pa.nulls(1, kind)], schema=schema)))
    lake.store.declare(opened.opened.entry.table_id, {"retention": {"column": "day", "keep": "30d"}, **declared})
    return lake.open()


def days(kind: pa.DataType, first: int) -> pa.Array:
    moments = [NOW - dt.timedelta(days=first + i) for i in range(10)]
    zoned = pa.types.is_timestamp(kind) and kind.tz is not None
    return pa.array(
        moments if zoned else [each.replace(tzinfo=None) for each in moments],
        pa.timestamp("us", "UTC" if zoned else None),
    ).cast(kind, safe=False)


def ids(lake: Lake) -> set[int]:
    return set(lake.open().scan(columns=["id"]).to_table()["id"].to_pylist())


#: A row of exactly 30 days is not older than 30 days. A date counts from the end of its day.
KINDS: Mapping[str, tuple[pa.DataType, int]] = {
    "date32": (pa.date32(), 31),
    "date64": (pa.date64(), 31),
    "timestamp": (pa.timestamp("us"), 31),
    "seconds": (pa.timestamp("s"), 31),
    "zoned": (pa.timestamp("ms", "America/New_York"), 31),
    "nanoseconds": (pa.timestamp("ns", "UTC"), 31),
}


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("keyed", [True, False], ids=["by key", "by value"])
def test_rows_older_than_the_retention_go(lake: Lake, name: str, keyed: bool) -> None:
    kind, first = KINDS[name]
    table(lake, kind, ("day", "id") if keyed else ())
    done = expire_table(lake.root, "flights", now=AT)
    left = set(range(first)) | (set() if keyed else {1000})
    assert ids(lake) == left and done.rows == 60 - first
    assert done.status == "SUCCEEDED"
    assert (done.whole_files, done.whole_rows) == ((2, 20) if keyed else (0, 0))
    again = expire_table(lake.root, "flights", now=AT)
    assert again.status == "SKIPPED" and again.rows == 0
    run = runs_of(lake.open().opened.store.table(lake.open().opened.entry.table_id), "EXPIRE")[-1]
    assert (run.figures.before["rows"], run.figures.after["rows"]) == (60 + (not keyed), len(left))


def test_files_that_are_expired_as_a_whole_are_not_read(lake: Lake) -> None:
    opened = table(lake, pa.timestamp("us", "UTC"), ("day", "id")).opened
    whole = [file.fragment_id for file in opened.state.files][3:]
    for fragment in lance.dataset(opened.location).get_fragments():
        if fragment.fragment_id in whole[1:]:  # of the first of them one row stays
            for file in fragment.metadata.files:
                (Path(opened.location) / "data" / file.path).write_bytes(b"")
    assert expire_table(lake.root, "flights", now=AT).whole_files == 2
    assert ids(lake) == set(range(31))


def test_files_that_cluster_arranged_are_dropped_whole(lake: Lake) -> None:
    table(lake, pa.date32())
    cluster_table(lake.root, "flights", {"columns": ["day"], "target_file_bytes": 1})
    done = expire_table(lake.root, "flights", now=AT)
    assert done.whole_files > 0 and ids(lake) == {*range(31), 1000}


def test_a_dry_run_and_a_forecast_change_nothing(lake: Lake) -> None:
    opened = table(lake, pa.date32(), ("day", "id")).opened
    done = expire_table(lake.root, "flights", {"dry_run": True}, now=AT)
    assert done.rows == 29 and "would remove 29 rows before 2026-01-01" in done.why and len(ids(lake)) == 60
    assert lake.open().opened.state.lance_version == opened.state.lance_version
    assert "drops 6 files whole: 60 rows" in forecast(opened, EXPIRE.kind)  # by the clock of the test, all are older


def test_held_rows_stay(lake: Lake) -> None:
    table(lake, pa.date32(), ("day", "id"), holds=[{"name": "audit", "where": "id % 10 = 5", "reason": "case 12"}])
    done = expire_table(lake.root, "flights", now=AT)
    assert ids(lake) == {*range(31), 35, 45, 55}
    assert (done.rows, done.held_rows, done.holds) == (26, 3, ("audit",))
    assert "3 expired rows stay under legal hold" in expire_table(lake.root, "flights", now=AT).why


@pytest.mark.parametrize("where", ["", "no_such_column = 1"], ids=["of every row", "of a column that is gone"])
def test_a_hold_of_every_row_lets_nothing_expire(lake: Lake, where: str) -> None:
    table(lake, pa.date32(), ("day", "id"), holds=[{"name": "audit", **({"where": where} if where else {})}])
    done = expire_table(lake.root, "flights", now=AT)
    assert (done.status, done.rows, done.held_rows) == ("SKIPPED", 0, 29) and len(ids(lake)) == 60


def test_a_table_without_retention_is_refused(lake: Lake) -> None:
    lake.table()
    with pytest.raises(Refused, match="declares no retention"):
        expire_table(lake.root, "flights")


def test_a_column_that_is_no_date_any_more_is_refused(lake: Lake) -> None:
    opened = table(lake, pa.date32())
    lake.store.declare(opened.opened.entry.table_id, {"retention": {"column": "id", "keep": "30d"}})
    with pytest.raises(Refused, match="retention goes by column id"):
        expire_table(lake.root, "flights")


def test_all_rows_of_a_protected_table_may_expire(lake: Lake) -> None:
    table(lake, pa.date32(), ("day", "id"))
    assert expire_table(lake.root, "flights", now=AT + 90 * 86_400).whole_files == 6
    assert ids(lake) == set()
    compact_table(lake.root, "flights")
