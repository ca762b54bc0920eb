"""Snapshots: when they are taken, what is kept, how damage is noticed and got over, and states of the past."""

from __future__ import annotations

import json
import logging
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from deployer.errors import Corrupt, InvalidInput, NotFound, Refused
from deployer.state.backend import SnapshotRecord
from deployer.state.cache import Known
from deployer.state.clock import Clock
from deployer.state.envelope import seal
from deployer.state.history import Time
from deployer.state.model import INSTANCE_LOG, TableState
from deployer.state.retention import SnapshotPolicy
from deployer.state.sqlite import SqliteBackend
from deployer.state.store import StateStore
from deployer.state.updates import CommitStarted, RegisterTable, SetInstanceProperties, SetTableProperties

from .samples import NEVER, TABLE, added, creation, entry, store_at

FOREVER = 1 << 50
EVERY_TEN = SnapshotPolicy(entries=10, keep=2, keep_for=FOREVER)


def _commits(store: StateStore, count: int, first: int = 0) -> TableState:
    for number in range(first, first + count):
        state = store.commit(TABLE, [added(number, f"job-{number}")])
    return state


def _folders(root: Path, log: str = TABLE) -> list[Path]:
    folder = root / "_state" / "snapshots" / log
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _versions(root: Path) -> list[int]:
    return [int(folder.name.partition("-")[0]) for folder in _folders(root)]


def test_one_is_taken_when_the_log_has_grown_long(tmp_path: Path) -> None:
    store = store_at(tmp_path, policy=EVERY_TEN)
    store.commit(TABLE, [creation()])
    _commits(store, 34)
    assert _versions(tmp_path) == [10, 20, 30]


def test_one_is_taken_when_the_log_has_grown_large(tmp_path: Path) -> None:
    store = store_at(tmp_path, policy=SnapshotPolicy(log_bytes=2000))
    store.commit(TABLE, [creation()])
    _commits(store, 10)
    assert _versions(tmp_path)


def test_a_reader_folds_only_what_follows_the_snapshot(tmp_path: Path) -> None:
    store = store_at(tmp_path, policy=SnapshotPolicy(entries=10, keep=1, keep_for=0))
    store.commit(TABLE, [creation()])
    state = _commits(store, 25)
    assert [each.version for each in store.log(TABLE)] == list(range(21, 27))
    assert store_at(tmp_path).table(TABLE) == state


def test_failing_to_take_one_fails_no_commit(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "_state").mkdir()
    (tmp_path / "_state" / "snapshots").write_text("in the way")
    store = store_at(tmp_path, policy=EVERY_TEN)
    store.commit(TABLE, [creation()])
    assert _commits(store, 12).version == 13
    assert f"log {TABLE} at version 10 has no snapshot yet" in caplog.text


def test_any_parquet_reader_reads_one(tmp_path: Path) -> None:
    store = store_at(tmp_path, policy=NEVER)
    store.commit(INSTANCE_LOG, [SetInstanceProperties({"name": "nyc"}), RegisterTable(entry())])
    store.commit(TABLE, [creation(), CommitStarted("open", "ingest", 1)])
    _commits(store, 2)
    store.snapshot(TABLE)
    store.snapshot(INSTANCE_LOG)
    (folder,) = _folders(tmp_path)
    parts = {file.stem: pq.read_table(file) for file in folder.glob("*.parquet")}
    assert {name: part.num_rows for name, part in parts.items()} == {
        "files": 2,
        "intents": 1,
        "jobs": 2,
        "partitions": 1,
        "table": 1,
    }
    assert parts["files"].column_names[:4] == ["fragment_id", "partition", "rows", "bytes"]
    assert parts["files"].schema.metadata[b"deployer.format"] == b"1"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["format"], manifest["log"], manifest["version"]) == (1, TABLE, 3)
    (instance,) = _folders(tmp_path, INSTANCE_LOG)
    assert pq.read_table(instance / "tables.parquet").to_pylist()[0]["name"] == "flights"
    assert json.loads(pq.read_table(instance / "instance.parquet")["properties"][0].as_py()) == {"name": "nyc"}


# Days that the snapshots at versions 10, 20, 30 … are old, newest last; what is kept with keep=2 and 7 days.
KEPT = [
    ("all old", [30, 20, 10, 9], [2, 3]),
    ("all young", [6, 5, 4, 3], [0, 1, 2, 3]),
    ("the one before the young", [30, 20, 6, 5, 4], [1, 2, 3, 4]),
    ("only one", [90], [0]),
]


@pytest.mark.parametrize(("days", "kept"), [row[1:] for row in KEPT], ids=[row[0] for row in KEPT])
def test_what_is_kept(tmp_path: Path, days: list[int], kept: list[int]) -> None:
    now, day = 1_000 * 24 * 3600 * 1000, 24 * 3600 * 1000
    today = [now]
    writing = store_at(tmp_path, Clock(now=lambda: today[0]), SnapshotPolicy(entries=10, keep_for=FOREVER))
    for number in range(10 * len(days)):
        today[0] = now - days[number // 10] * day
        writing.commit(TABLE, [added(number) if number else creation()])
    assert len(_folders(tmp_path)) == len(days)
    store_at(tmp_path, Clock(now=lambda: now), SnapshotPolicy(keep=2)).remove_old(TABLE)
    assert _versions(tmp_path) == [10 * (index + 1) for index in kept]
    oldest = 10 * (kept[0] + 1)
    assert min((each.version for each in writing.log(TABLE)), default=oldest + 1) == (oldest + 1 if kept[0] else 1)


@pytest.fixture
def past(tmp_path: Path) -> Path:
    """A table with versions 1..45, version v written at v seconds, whose log is kept above version 20."""
    second = [1]
    store = store_at(tmp_path, Clock(now=lambda: second[0] * 1000), SnapshotPolicy(entries=10, keep=3, keep_for=0))
    for number in range(45):
        second[0] = number + 1
        store.commit(TABLE, [added(number, f"job-{number}") if number else creation()])
    assert _versions(tmp_path) == [20, 30, 40]
    return tmp_path


@pytest.mark.parametrize("version", [20, 21, 29, 30, 31, 40, 45])
def test_the_state_at_a_version_or_a_time(past: Path, version: int) -> None:
    store = store_at(past)
    state = store.table(TABLE, at=version)
    assert (state.version, state.files.count) == (version, version - 1)
    assert store.table(TABLE, at=Time(version * 1000)) == state
    assert store.table(TABLE, at=Time(version * 1000 + 999)) == state
    assert store.table(TABLE, at=datetime.fromtimestamp(version, UTC)) == state


PAST = [
    (19, NotFound, "its state at version 19 is not kept any more; ask for a later one"),
    (46, NotFound, "there is no version 46; the newest is 45"),
    (Time(19_999), NotFound, "its state at 1970-01-01T00:00:19.999.* is not kept any more"),
    (0, InvalidInput, "there is no version 0; versions count from 1"),
    (datetime(2026, 1, 1), InvalidInput, "has no time zone"),  # noqa: DTZ001
]


@pytest.mark.parametrize(("at", "error", "words"), PAST, ids=[str(at) for at, *_ in PAST])
def test_a_past_that_is_not_kept_is_said_so(past: Path, at: int, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        store_at(past).table(TABLE, at=at)


def test_a_table_has_no_state_before_it_was_created(tmp_path: Path) -> None:
    store = store_at(tmp_path, Clock(now=lambda: 5_000))
    store.commit(TABLE, [creation()])
    with pytest.raises(NotFound, match="it did not exist yet at 1970-01-01T00:00:04"):
        store.table(TABLE, at=Time(4_000))
    with pytest.raises(NotFound, match="there is no such table"):
        store.table("b" * 32)


def _flip_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("part", ["table", "files", "jobs", "partitions"])
@pytest.mark.parametrize("damage", [_flip_a_byte, _cut_short, Path.unlink])
def test_damage_is_named_and_got_over_by_the_snapshot_before(
    past: Path, caplog: pytest.LogCaptureFixture, damage: object, part: str
) -> None:
    assert callable(damage)
    whole = store_at(past).table(TABLE)
    damage(_folders(past)[-1] / f"{part}.parquet")
    with caplog.at_level(logging.WARNING):
        assert store_at(past).table(TABLE) == whole
    assert f"snapshot 40 of log {TABLE}" in caplog.text
    assert f"{part}.parquet" in caplog.text


def test_damage_is_got_over_by_the_whole_log_when_it_is_kept(tmp_path: Path) -> None:
    store = store_at(tmp_path, policy=EVERY_TEN)
    store.commit(TABLE, [creation()])
    state = _commits(store, 24)
    for folder in _folders(tmp_path):
        _flip_a_byte(folder / "files.parquet")
    assert store_at(tmp_path).table(TABLE) == state


def test_damage_that_cannot_be_got_over_is_named(past: Path) -> None:
    for folder in _folders(past):
        _flip_a_byte(folder / "files.parquet")
    with pytest.raises(
        Corrupt, match=r"snapshot 20 of log .*: the checksum of .*files\.parquet does not match; restore"
    ):
        store_at(past).table(TABLE)


def test_a_new_snapshot_is_taken_soon_after_damage(past: Path) -> None:
    _flip_a_byte(_folders(past)[-1] / "files.parquet")
    store = store_at(past, policy=EVERY_TEN)
    store.table(TABLE)
    _commits(store, 1, first=100)
    assert _versions(past)[-1] == 46


def _database(root: Path) -> sqlite3.Connection:
    return sqlite3.connect(root / "_state" / "state.db", isolation_level=None)


def test_a_damaged_entry_is_named(past: Path) -> None:
    with _database(past) as database:
        database.execute("UPDATE entries SET body = substr(body, 1, length(body) - 1) WHERE version = 42")
    with pytest.raises(Corrupt, match=f"entry 42 of log {TABLE}: the checksum does not match"):
        store_at(past).table(TABLE)
    assert store_at(past).table(TABLE, at=40).version == 40


def test_a_missing_entry_is_named(past: Path) -> None:
    with _database(past) as database:
        database.execute("DELETE FROM entries WHERE version = 42")
    with pytest.raises(Corrupt, match=f"entry 43 of log {TABLE}: it follows version 41"):
        store_at(past).table(TABLE)


def test_a_snapshot_of_a_newer_format_is_refused(past: Path) -> None:
    manifest = {"format": 2, "log": TABLE, "version": 40, "at": 1, "location": "x", "parts": {}}
    with _database(past) as database:
        database.execute("UPDATE snapshots SET body = ? WHERE version = 40", (seal(json.dumps(manifest).encode()),))
    with pytest.raises(Refused, match=r"written by a newer deployer \(format 2\), this one reads up to 1; upgrade"):
        store_at(past).table(TABLE)


def test_a_reader_whose_snapshot_is_removed_under_it_reads_the_newest(past: Path) -> None:
    """Retention removes a snapshot between a reader's look at the pointers and its look at the files."""
    reader, writer = store_at(past, policy=NEVER), store_at(past, policy=SnapshotPolicy(entries=10, keep=1, keep_for=0))
    whole = reader._snapshots.read
    passed: list[SnapshotRecord] = []

    def removed_first(pointer: SnapshotRecord) -> Known:
        if not passed:
            passed.append(pointer)
            _commits(writer, 10, first=200)
        return whole(pointer)

    reader._snapshots.read = removed_first  # type: ignore[method-assign]
    assert reader.table(TABLE) == writer.table(TABLE)
    assert passed


def test_a_past_that_is_removed_while_it_is_read_is_not_made_up(past: Path) -> None:
    reader, backend = store_at(past), SqliteBackend(past / "_state" / "state.db")
    whole = reader._snapshots.load

    def removed_after(pointer: SnapshotRecord) -> Known:
        loaded = whole(pointer)
        backend.truncate(TABLE, 30)
        return loaded

    reader._snapshots.load = removed_after  # type: ignore[method-assign]
    with pytest.raises(NotFound, match="is not kept any more"):
        reader.table(TABLE, at=Time(25_000))


def test_snapshots_of_a_large_table_are_rarer(tmp_path: Path) -> None:
    policy = SnapshotPolicy(entries=10)
    store = store_at(tmp_path, policy=NEVER)
    store.commit(TABLE, [creation()])
    store.commit(TABLE, [added(number) for number in range(3000)])
    large = store_at(tmp_path, policy=policy)
    for number in range(20):
        large.commit(TABLE, [SetTableProperties({"description": str(number)})])
    assert _folders(tmp_path) == []
    for number in range(10):
        large.commit(TABLE, [SetTableProperties({"description": str(number)})])
    assert len(_folders(tmp_path)) == 1
