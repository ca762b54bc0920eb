"""The readers of changes, driven as Spark drives them, without Spark: tasks, offsets, leases and errors."""

from __future__ import annotations

import pickle
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deployer.errors import InvalidInput, NotFound
from deployer.services.kinds.clean import clean_table
from deployer.services.kinds.compact import compact_table
from deployer.spark.options import OPTIONS
from deployer.spark.reading.feed_readers import HAS_LIMITS, ChangesReader, ChangesStreamReader, Offset
from deployer.spark.source import DeployerDataSource
from deployer.state.model.services import CHANGES_LEASE
from deployer.table import connect
from deployer.tables.admin.deletion import delete_table
from deployer.tables.changes.feed import open_feed
from tests.tables.changes.random_changes import SCHEMA, RandomChanges, applied, by_key
from tests.tables.lakes import Lake, filled_lake

SPLITS = ((20,), (40,))


def source(lake: Lake, **options: str) -> DeployerDataSource:
    return DeployerDataSource({"root": lake.root, "path": "air.rows", **options})


def stream(lake: Lake, **options: str) -> ChangesStreamReader:
    """The reader of a query, made as Spark makes it: the source travels between processes after `schema`."""
    loaded = source(lake, **({"since": "0"} | options))
    schema = loaded.schema()
    made = pickle.loads(pickle.dumps(loaded)).streamReader(schema)  # noqa: S301
    assert isinstance(made, ChangesStreamReader)
    return made


def rows_of(reader: ChangesReader | ChangesStreamReader, parts: Any) -> list[dict[str, Any]]:
    """The rows of all tasks, as other processes read them, in the order of commits; deletions first in each."""
    sent = [pickle.loads(pickle.dumps((reader, part))) for part in parts]  # noqa: S301
    found = [row for own, part in sent for batch in own.read(part) for row in batch.to_pylist()]
    order = {"delete": 0, "update": 1, "insert": 2}
    return sorted(found, key=lambda row: (row["_commit_time"], row["_commit_version"], order[row["_change"]]))


def one_argument(reader: ChangesStreamReader, at: Offset) -> Offset:
    """How releases before 4.2 ask."""
    return reader.latestOffset()


def with_start(reader: ChangesStreamReader, at: Offset) -> Offset:
    """How releases from 4.2 ask."""
    return reader.latestOffset(at, reader.getDefaultReadLimit())


ASK = with_start if HAS_LIMITS else one_argument
ASKS = [one_argument, with_start] if HAS_LIMITS else [one_argument]


def batches(
    lake: Lake, at: Offset | None, ask: Callable[[ChangesStreamReader, Offset], Offset] = ASK, **options: str
) -> Iterator[tuple[Offset, list[dict[str, Any]]]]:
    """The batches of a query that (re)starts after the offset and ends when there is nothing new."""
    reader = stream(lake, **options)
    if at is None:
        at = reader.initialOffset()
    else:
        assert reader.partitions(at, at) == []  # as Spark says where a query resumes
    while (end := ask(reader, at)) != at:
        parts = reader.partitions(at, end)
        yield end, rows_of(reader, parts)
        reader.commit(end)
        at = end


@pytest.fixture
def rows(tmp_path: Path) -> Lake:
    """`air.rows` with six versions: 20 rows, then four changes and a COMPACT."""
    return filled_lake(tmp_path, change_rows)


def change_rows(lake: Lake) -> None:
    lake.table(SCHEMA, ("id",), splits=SPLITS, name="rows", unique=True)
    changes = RandomChanges(lake, 0)
    lake.ingest(lake.file(changes.rows(range(20))), table="rows")
    with connect(lake.root) as connection:
        table = connection.open_table("air.rows")
        table.update("id < 3", {"note": "new"})
        table.delete("id = 5", allow_destroy=True)
        table.merge(changes.rows([7, 30]), "id")
    compact_table(lake.root, "air.rows", {"target_rows": 30})


@pytest.mark.thinned(4, to="full")
@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize(
    "options", [{}, {"max_versions": "1"}, {"since": "snapshot"}, {"partition_size": "1"}], ids=str
)
def test_a_stream_that_stops_at_any_batch_gives_the_rows_of_the_table(
    rows: Lake, options: dict[str, str], ask: Callable[[ChangesStreamReader, Offset], Offset]
) -> None:
    changes, state, at = RandomChanges(rows, 5), by_key([]), None
    choose = random.Random(5)  # noqa: S311 (the same stops each time)
    for _ in range(12):
        for end, found in batches(rows, at, ask, **options):
            state, at = applied(state, found), end
            if choose.random() < 0.4:
                break  # and the query starts again from its checkpoint
        changes.step()
    for _, found in batches(rows, at, ask, **options):
        state = applied(state, found)
    assert state == changes.there()


def test_a_batch_that_is_repeated_has_the_same_rows(rows: Lake) -> None:
    reader = stream(rows)
    start = reader.initialOffset()
    end = ASK(reader, start)
    first = rows_of(reader, reader.partitions(start, end))
    RandomChanges(rows, 1).upsert()
    again = stream(rows)
    assert rows_of(again, again.partitions(start, end)) == first


def test_a_batch_read_is_the_feed(rows: Lake) -> None:
    loaded = source(rows, since="1", until="4", where="id < 10", columns="id,note", partition_size="1")
    reader = loaded.reader(loaded.schema())
    assert isinstance(reader, ChangesReader)
    parts = reader.partitions()
    feed = open_feed(rows.open("rows").opened, 1, 4, ["id", "note"], "id < 10").to_table().to_pylist()
    found = rows_of(reader, parts)
    assert len(parts) > 2 and sorted(map(repr, found)) == sorted(map(repr, feed))


def test_batches_are_limited_by_versions(rows: Lake) -> None:
    ends = [end["version"] for end, _ in batches(rows, None, max_versions="2")]
    assert ends == [2, 4, 6]
    reader = stream(rows, max_versions="2")
    reader.prepareForTriggerAvailableNow()
    RandomChanges(rows, 1).upsert()
    at = reader.initialOffset()
    while (end := ASK(reader, at)) != at:
        reader.commit(end)
        at = end
    assert at["version"] == 6  # the newest when the query began


def test_a_lease_keeps_what_a_stream_reads_from_clean(rows: Lake) -> None:
    reader = stream(rows, since="2", lease="480h")
    start = reader.initialOffset()
    end = ASK(reader, start)
    [lease] = [
        each for each in rows.open("rows").opened.state.savepoints.values() if each.name.startswith(CHANGES_LEASE)
    ]
    assert lease.lance_version == 2 and ASK(reader, start) == end
    assert len(rows.open("rows").opened.state.savepoints) == 1
    clean_table(rows.root, "air.rows", {"older_than": "0d"}, now=time.time() + 10 * 86_400)
    assert rows_of(reader, reader.partitions(start, end))
    clean_table(rows.root, "air.rows", {"older_than": "0d"}, now=time.time() + 100 * 86_400)
    with pytest.raises(NotFound, match="are not kept any more") as raised:
        reader.partitions(start, end)
    assert "the oldest version that changes can be read since is 6" in str(raised.value)


def test_a_reading_without_a_lease_writes_nothing(rows: Lake) -> None:
    before = rows.open("rows").opened.state.version
    reader = stream(rows, lease="none")
    at = reader.initialOffset()
    reader.partitions(at, ASK(reader, at))
    assert rows.open("rows").opened.state.version == before


def test_a_stream_of_a_table_that_is_gone_stops(rows: Lake) -> None:
    reader = stream(rows)
    at = reader.initialOffset()
    entry = rows.open("rows").opened.entry
    delete_table(rows.store, rows.root, entry.table_id, allow_destroy=True)
    with pytest.raises(NotFound, match=r"the table air\.rows was deleted"):
        ASK(reader, at)
    rows.table(SCHEMA, ("id",), splits=SPLITS, name="rows")
    with pytest.raises(NotFound, match="the checkpoint is of another table"):
        next(batches(rows, at))


def test_a_column_that_is_gone_stops_a_stream_and_one_that_comes_does_not(rows: Lake) -> None:
    import lance

    reader = stream(rows)
    at = reader.initialOffset()
    dataset = lance.dataset(rows.open("rows").opened.location)
    dataset.add_columns(pa.field("more", pa.int8()))
    RandomChanges(rows, 1).foreign_delete()
    end = ASK(reader, at)
    assert "more" not in rows_of(reader, reader.partitions(at, end))[0]
    dataset = lance.dataset(dataset.uri)
    dataset.drop_columns(["note"])
    dataset.delete("id = 1")
    last = ASK(reader, end)
    with pytest.raises(InvalidInput, match="does not have the column 'note' any more"):
        rows_of(reader, reader.partitions(end, last))
    again = stream(rows)
    assert [row["id"] for row in rows_of(again, again.partitions(end, last))] == [1]


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"since": "0", "version": "2"}, "`version` does not go with `since`"),
        ({"since": "0", "time": "2026-01-31"}, "`time` does not go with `since`"),
        ({"since": "0", "keys": "1"}, "`keys` does not go with `since`"),
        ({"until": "2"}, "`until` ends the changes that `since` begins"),
        ({"since": "snapshot"}, "is for streams"),
        ({"since": "0", "max_versions": "2"}, "`max_versions` is for streams"),
        ({"since": "0", "max_versions": "0"}, "the option `max_versions` is '0'"),
        ({"startingVersion": "0"}, "did you mean `since`"),
        ({"since": "soon"}, "neither a version nor a time"),
        ({"since": "99"}, "there is no version 99: the newest is 6"),
        ({"since": "4", "until": "2"}, "which is before 1:4"),
        ({"since": "0", "columns": "ids"}, "there is no column 'ids'"),
    ],
    ids=str,
)
def test_options_that_do_not_fit(rows: Lake, options: dict[str, str], message: str) -> None:
    with pytest.raises((InvalidInput, NotFound), match=message.replace("(", r"\(")):
        loaded = source(rows, **options)
        loaded.reader(loaded.schema()).partitions()


def test_streams_need_a_beginning_and_have_no_end(rows: Lake) -> None:
    for options, message in (({}, "does not say from where"), ({"since": "0", "until": "3"}, "a stream has no end")):
        refused = source(rows, **options).streamReader(source(rows).schema())
        for ask in (refused.initialOffset, lambda made=refused: made.partitions({}, {})):
            with pytest.raises(InvalidInput, match=message):
                ask()
    assert {"since", "until", "max_versions"} <= OPTIONS.keys()
