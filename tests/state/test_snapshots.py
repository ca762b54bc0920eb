"""Snapshots: when they are taken, what is kept, how damage is noticed and got over, and states of the past."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deployer.errors import Corrupt, InvalidInput, NotFound, Refused
from deployer.platform.storage.envelope import refuse_newer, seal
from deployer.platform.system.clock import Clock
from deployer.state.backends.protocol import SnapshotRecord
from deployer.state.log.cache import CachedState
from deployer.state.log.service_updates import (
    MoveServices,
    PutService,
    RunEnded,
    RunQueued,
    RunStarted,
    SavepointRemoved,
    SavepointTaken,
)
from deployer.state.log.updates import (
    CommitStarted,
    FilesAdded,
    RegisterTable,
    SetInstanceProperties,
    SetTableProperties,
    TableUpdate,
)
from deployer.state.model.entities import INSTANCE_LOG, RestoreTarget, TableState
from deployer.state.model.services import Figures, Service
from deployer.state.snapshots.columns import from_parts
from deployer.state.snapshots.files import manifest_of
from deployer.state.snapshots.history import Time
from deployer.state.snapshots.retention import SnapshotPolicy
from deployer.state.store import StateStore

from .samples import (
    NEVER,
    TABLE,
    added,
    backend_of,
    change_entry,
    change_pointer,
    creation,
    entry,
    file,
    is_on_s3,
    objects_at,
    snapshot_versions,
    store_at,
)

pytestmark = pytest.mark.thinned(6, only="dynamodb")  # both kinds share all code but the backend's

FOREVER = 1 << 50
EVERY_TEN = SnapshotPolicy(entries=10, keep=2, keep_for=FOREVER)


def _commits(store: StateStore, count: int, first: int = 0) -> TableState:
    for number in range(first, first + count):
        state = store.commit(TABLE, [added(number, f"job-{number}")])
    return state


def _newest(root: str, part: str) -> str:
    """The path of a part of the newest snapshot."""
    return max(path for path in objects_at(root).list(TABLE) if path.endswith(f"/{part}.parquet"))


def test_one_is_taken_when_the_log_has_grown_long(root: str) -> None:
    store = store_at(root, policy=EVERY_TEN)
    store.commit(TABLE, [creation()])
    _commits(store, 34)
    assert snapshot_versions(root) == [10, 20, 30]


def test_one_is_taken_when_the_log_has_grown_large(root: str) -> None:
    store = store_at(root, policy=SnapshotPolicy(log_bytes=2000))
    store.commit(TABLE, [creation()])
    _commits(store, 10)
    assert snapshot_versions(root)


def test_a_reader_folds_only_what_follows_the_snapshot(root: str) -> None:
    store = store_at(root, policy=SnapshotPolicy(entries=10, keep=1, keep_for=0))
    store.commit(TABLE, [creation()])
    state = _commits(store, 25)
    assert [each.version for each in store.log(TABLE)] == list(range(21, 27))
    assert store_at(root).table(TABLE) == state


def test_failing_to_take_one_fails_no_commit(
    root: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_at(root, policy=EVERY_TEN)

    def full(path: str, data: bytes) -> None:
        raise OSError(f"no space for {path}")

    monkeypatch.setattr(store._snapshots._objects, "put", full)
    store.commit(TABLE, [creation()])
    assert _commits(store, 12).version == 13
    assert f"log {TABLE} at version 10 has no snapshot yet" in caplog.text


def test_any_parquet_reader_reads_one(root: str) -> None:
    store = store_at(root, policy=NEVER)
    store.commit(INSTANCE_LOG, [SetInstanceProperties({"name": "nyc"}), RegisterTable(entry())])
    store.commit(TABLE, [creation(), CommitStarted("open", "ingest", 1)])
    _commits(store, 2)
    store.snapshot(TABLE)
    store.snapshot(INSTANCE_LOG)
    objects = objects_at(root)
    files = {Path(path).name: objects.get(path) for path in objects.list(TABLE)}
    parts = {Path(name).stem: pq.read_table(pa.BufferReader(files[name])) for name in files if name != "manifest.json"}
    assert {name: part.num_rows for name, part in parts.items()} == {
        "files": 2,
        "intents": 1,
        "jobs": 2,
        "partitions": 1,
        "table": 1,
    }
    assert parts["files"].column_names[:4] == ["fragment_id", "partition", "rows", "bytes"]
    assert parts["files"].schema.metadata[b"deployer.format"] == b"1"
    manifest = json.loads(files["manifest.json"])
    assert (manifest["format"], manifest["log"], manifest["version"]) == (1, TABLE, 3)
    instance = {Path(path).stem: objects.get(path) for path in objects.list(INSTANCE_LOG)}
    assert pq.read_table(pa.BufferReader(instance["tables"])).to_pylist()[0]["name"] == "flights"
    assert json.loads(pq.read_table(pa.BufferReader(instance["instance"]))["properties"][0].as_py()) == {"name": "nyc"}


def test_services_runs_and_savepoints_are_in_one_that_an_older_deployer_refuses(root: str) -> None:
    store = store_at(root, policy=NEVER)
    store.commit(TABLE, [creation()])
    store.snapshot(TABLE)
    served: list[TableUpdate] = [
        PutService(
            Service("COMPACT", "AUTOMATIC", {"schedule": "0 3 * * *"}, {"target_rows": 10}, "local", declared=True)
        ),
        RunQueued("one", "COMPACT", "schedule", "local", "one.log"),
        RunStarted("one", "me", 1000),
        RunEnded("one", "SUCCEEDED", Figures(1, 2, 3, 4, 5, 6, {"files": 9}, {"files": 1}), progress={"done": 1.5}),
        RunQueued("two", "CLEAN", "by hand"),
        SavepointTaken("old", None, "a note"),
    ]
    state = store.commit(TABLE, served)
    store.snapshot(TABLE)
    store.remove_old(TABLE)
    first, second = (manifest_of(pointer) for pointer in backend_of(store).snapshots(TABLE))
    assert (first["format"], second["format"]) == (1, 2)
    with pytest.raises(Refused, match=r"format 2\).*reads up to 1; upgrade"):
        refuse_newer(second["format"], "a reader of before")
    backend_of(store).truncate(TABLE, 2)  # now only the snapshot has it
    again = store_at(root).table(TABLE)
    assert again == state
    assert again.services["COMPACT"].since == state.services["COMPACT"].since > 0
    files = {name: objects_at(root).get(_newest(root, name)) for name in second["parts"]}
    parts = {name: pq.read_table(pa.BufferReader(data)) for name, data in files.items()}
    run = {row["run_id"]: row for row in parts["runs"].to_pylist()}["one"]
    assert (run["status"], json.loads(run["figures"])["after"]) == ("SUCCEEDED", {"files": 1})
    assert json.loads(parts["services"].to_pylist()[0]["trigger"]) == {"schedule": "0 3 * * *"}
    assert parts["savepoints"].to_pylist()[0]["lance_version"] == 1
    assert parts["runs"].schema.metadata[b"deployer.format"] == b"2"
    before = {
        **parts,
        "services": parts["services"].drop_columns(["since"]),
    }  # as they were when there was no such column
    assert cast(TableState, from_parts(before, 9, 9)).services["COMPACT"].since == 0


def test_the_cluster_of_services_is_in_one_that_an_older_deployer_refuses(root: str) -> None:
    store = store_at(root, policy=NEVER)
    store.commit(TABLE, [creation(), PutService(Service("COMPACT"))])
    store.snapshot(TABLE)
    state = store.commit(TABLE, [MoveServices("nightly")])
    store.snapshot(TABLE)
    store.remove_old(TABLE)
    first, second = (manifest_of(pointer) for pointer in backend_of(store).snapshots(TABLE))
    assert (first["format"], second["format"]) == (2, 5)
    backend_of(store).truncate(TABLE, 2)  # now only the snapshot has it
    read = store_at(root).table(TABLE)
    assert read == state and read.properties.services_cluster == read.services["COMPACT"].cluster == "nightly"


def test_what_clustering_noted_of_files_is_in_one_that_an_older_deployer_refuses(root: str) -> None:
    store = store_at(root, policy=NEVER)
    store.commit(TABLE, [creation(), FilesAdded((file(1),), 2)])
    store.snapshot(TABLE)
    clustered = replace(file(2), clustering="zorder:3,7", cluster_min=(b"\0a", b"\1"), cluster_max=(b"\0b", b"\1"))
    state = store.commit(TABLE, [FilesAdded((clustered,), 3)])
    store.snapshot(TABLE)
    store.remove_old(TABLE)
    first, second = (manifest_of(pointer) for pointer in backend_of(store).snapshots(TABLE))
    assert (first["format"], second["format"]) == (1, 3)
    backend_of(store).truncate(TABLE, 2)  # now only the snapshot has it
    assert store_at(root).table(TABLE) == state
    assert [each.clustering for each in store_at(root).table(TABLE).files] == ["", "zorder:3,7"]


def test_what_computed_files_is_in_one_that_an_older_deployer_refuses(root: str) -> None:
    store = store_at(root, policy=NEVER)
    store.commit(TABLE, [creation(), FilesAdded((file(1),), 2)])
    store.snapshot(TABLE)
    computed = replace(file(2), computed='{"7":["v1"]}')
    clustered = replace(file(3), clustering="zorder:3", cluster_min=(b"\0a",), cluster_max=(b"\0b",))
    state = store.commit(TABLE, [FilesAdded((computed, clustered), 3)])
    store.snapshot(TABLE)
    store.remove_old(TABLE)
    first, second = (manifest_of(pointer) for pointer in backend_of(store).snapshots(TABLE))
    assert (first["format"], second["format"]) == (1, 6)
    backend_of(store).truncate(TABLE, 2)  # now only the snapshot has it
    assert store_at(root).table(TABLE) == state
    assert [each.computed for each in store_at(root).table(TABLE).files] == ["", '{"7":["v1"]}', ""]


def test_what_a_restore_restores_is_in_one_that_an_older_deployer_refuses(root: str) -> None:
    store = store_at(root, policy=NEVER)
    store.commit(TABLE, [creation(), CommitStarted("run-1", "restore", 1)])
    store.snapshot(TABLE)
    target = RestoreTarget("then", 1, 1, 1, 0, (TABLE, "ab" * 16))
    state = store.commit(TABLE, [CommitStarted("run-2", "restore", 1, target)])
    store.snapshot(TABLE)
    store.remove_old(TABLE)
    first, second = (manifest_of(pointer) for pointer in backend_of(store).snapshots(TABLE))
    assert (first["format"], second["format"]) == (1, 5)
    backend_of(store).truncate(TABLE, 2)  # now only the snapshot has it
    assert store_at(root).table(TABLE) == state
    assert store_at(root).table(TABLE).intents["run-2"].together == target.tables


# Days that the snapshots at versions 10, 20, 30 … are old, newest last; what is kept with keep=2 and 7 days.
KEPT = [
    ("all old", [30, 20, 10, 9], [2, 3]),
    ("all young", [6, 5, 4, 3], [0, 1, 2, 3]),
    ("the one before the young", [30, 20, 6, 5, 4], [1, 2, 3, 4]),
    ("only one", [90], [0]),
]


@pytest.mark.parametrize(("days", "kept"), [row[1:] for row in KEPT], ids=[row[0] for row in KEPT])
def test_what_is_kept(root: str, days: list[int], kept: list[int]) -> None:
    now, day = 1_000 * 24 * 3600 * 1000, 24 * 3600 * 1000
    today = [now]
    writing = store_at(root, Clock(now=lambda: today[0]), SnapshotPolicy(entries=10, keep_for=FOREVER))
    for number in range(10 * len(days)):
        today[0] = now - days[number // 10] * day
        writing.commit(TABLE, [added(number) if number else creation()])
    assert len(snapshot_versions(root)) == len(days)
    store_at(root, Clock(now=lambda: now), SnapshotPolicy(keep=2)).remove_old(TABLE)
    assert snapshot_versions(root) == [10 * (index + 1) for index in kept]
    oldest = 10 * (kept[0] + 1)
    assert min((each.version for each in writing.log(TABLE)), default=oldest + 1) == (oldest + 1 if kept[0] else 1)


@pytest.fixture
def past(root: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table with versions 1..45, version v written at v seconds, whose log is kept above version 20."""
    monkeypatch.setattr("deployer.state.open_s3.INLINE_PARTS", 0)  # else small files are read from the pointer
    second = [1]
    store = store_at(root, Clock(now=lambda: second[0] * 1000), SnapshotPolicy(entries=10, keep=3, keep_for=0))
    for number in range(45):
        second[0] = number + 1
        store.commit(TABLE, [added(number, f"job-{number}") if number else creation()])
    assert snapshot_versions(root) == [20, 30, 40]
    return root


@pytest.mark.parametrize("version", [20, 21, 29, 30, 31, 40, 45])
def test_the_state_at_a_version_or_a_time(past: str, version: int) -> None:
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
def test_a_past_that_is_not_kept_is_said_so(past: str, at: int, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        store_at(past).table(TABLE, at=at)


def test_a_table_has_no_state_before_it_was_created(root: str) -> None:
    store = store_at(root, Clock(now=lambda: 5_000))
    store.commit(TABLE, [creation()])
    with pytest.raises(NotFound, match="it did not exist yet at 1970-01-01T00:00:04"):
        store.table(TABLE, at=Time(4_000))
    with pytest.raises(NotFound, match="the table does not exist"):
        store.table("b" * 32)


def _flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def _flip_a_byte(root: str, path: str) -> None:
    objects_at(root).put(path, _flipped(objects_at(root).get(path)))


def _cut_short(root: str, path: str) -> None:
    objects_at(root).put(path, objects_at(root).get(path)[:-1])


def _remove(root: str, path: str) -> None:
    objects_at(root).delete([path])


def _flip_a_byte_of_all(root: str) -> None:
    for path in objects_at(root).list(TABLE):
        if path.endswith("/files.parquet"):
            _flip_a_byte(root, path)


@pytest.mark.parametrize("part", ["table", "files", "jobs", "partitions"])
@pytest.mark.parametrize("damage", [_flip_a_byte, _cut_short, _remove])
def test_damage_is_named_and_got_over_by_the_snapshot_before(
    past: str, caplog: pytest.LogCaptureFixture, damage: Callable[[str, str], None], part: str
) -> None:
    whole = store_at(past).table(TABLE)
    damage(past, _newest(past, part))
    with caplog.at_level(logging.WARNING):
        assert store_at(past).table(TABLE) == whole
    assert f"snapshot 40 of log {TABLE}" in caplog.text
    assert f"{part}.parquet" in caplog.text


def test_damage_is_got_over_by_the_whole_log_when_it_is_kept(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deployer.state.open_s3.INLINE_PARTS", 0)
    store = store_at(root, policy=EVERY_TEN)
    store.commit(TABLE, [creation()])
    state = _commits(store, 24)
    _flip_a_byte_of_all(root)
    assert store_at(root).table(TABLE) == state


def test_damage_that_cannot_be_got_over_is_named(past: str) -> None:
    _flip_a_byte_of_all(past)
    with pytest.raises(
        Corrupt, match=r"snapshot 20 of log .*: the checksum of .*files\.parquet does not match; .* else restore"
    ):
        store_at(past).table(TABLE)


def test_a_new_snapshot_is_taken_soon_after_damage(past: str) -> None:
    _flip_a_byte(past, _newest(past, "files"))
    store = store_at(past, policy=EVERY_TEN)
    store.table(TABLE)
    _commits(store, 1, first=100)
    assert snapshot_versions(past)[-1] == 46


def test_a_damaged_entry_is_named(past: str) -> None:
    change_entry(past, 42, lambda body: body[:-1])
    with pytest.raises(Corrupt, match=f"entry 42 of log {TABLE}: the checksum does not match"):
        store_at(past).table(TABLE)
    assert store_at(past).table(TABLE, at=40).version == 40


def test_a_missing_entry_is_named(past: str) -> None:
    change_entry(past, 42, lambda body: None)
    missing = f"entry/{42:020} of log {TABLE}: it is missing" if is_on_s3(past) else "it follows version 41"
    with pytest.raises(Corrupt, match=missing):
        store_at(past).table(TABLE)


def test_a_snapshot_of_a_newer_format_is_refused(past: str) -> None:
    manifest = {"format": 7, "log": TABLE, "version": 40, "at": 1, "location": "x", "parts": {}}
    change_pointer(past, 40, seal(json.dumps(manifest).encode()))
    with pytest.raises(Refused, match=r"written by a newer deployer \(format 7\), this one reads up to 6; upgrade"):
        store_at(past).table(TABLE)


def test_a_reader_whose_snapshot_is_removed_under_it_reads_the_newest(past: str) -> None:
    """Retention removes a snapshot between a reader's look at the pointers and its look at the files."""
    reader, writer = store_at(past, policy=NEVER), store_at(past, policy=SnapshotPolicy(entries=10, keep=1, keep_for=0))
    whole = reader._snapshots.read
    passed: list[SnapshotRecord] = []

    def removed_first(pointer: SnapshotRecord) -> CachedState:
        if not passed:
            passed.append(pointer)
            _commits(writer, 10, first=200)
        return whole(pointer)

    reader._snapshots.read = removed_first  # type: ignore[method-assign]
    assert reader.table(TABLE) == writer.table(TABLE)
    assert passed


def test_a_past_that_is_removed_while_it_is_read_is_not_made_up(past: str) -> None:
    reader, backend = store_at(past), backend_of(store_at(past))
    whole = reader._snapshots.load

    def removed_after(pointer: SnapshotRecord) -> CachedState:
        loaded = whole(pointer)
        backend.truncate(TABLE, 30)
        return loaded

    reader._snapshots.load = removed_after  # type: ignore[method-assign]
    with pytest.raises(NotFound, match="is not kept any more"):
        reader.table(TABLE, at=Time(25_000))


def test_snapshots_of_a_large_table_are_rarer(root: str) -> None:
    policy = SnapshotPolicy(entries=10)
    store = store_at(root, policy=NEVER)
    store.commit(TABLE, [creation()])
    store.commit(TABLE, [added(number) for number in range(3000)])
    large = store_at(root, policy=policy)
    for number in range(20):
        large.commit(TABLE, [SetTableProperties({"description": str(number)})])
    assert snapshot_versions(root) == []
    for number in range(10):
        large.commit(TABLE, [SetTableProperties({"description": str(number)})])
    assert len(snapshot_versions(root)) == 1


def test_counts_of_changed_rows_are_in_snapshots_that_have_any() -> None:
    from deployer.state.log.entries import LogEntry
    from deployer.state.log.reducer import apply
    from deployer.state.log.updates import FilesAdded, RowsChanged, Update
    from deployer.state.model.entities import RowCounts, State, TableState
    from deployer.state.snapshots.columns import format_of, from_parts, to_parts

    from .samples import TABLE, creation, file

    added = FilesAdded((file(1),), 2, "load", 10, sources="{}")
    changed = RowsChanged((), (1,), (file(2),), 3, "merge", "merge", RowCounts(1, 2, 3))
    state: State = TableState(table_id=TABLE)
    formats: list[int] = []
    updates: list[Update] = [creation(), added, changed]
    for number, update in enumerate(updates, start=1):
        state = apply(state, LogEntry(TABLE, number, "txn", number, "ann", (update,)))
        parts = to_parts(state)
        formats.append(format_of(parts))
        read = from_parts(parts, number, number)
        assert isinstance(read, TableState) and isinstance(state, TableState)
        assert dict(read.jobs) == dict(state.jobs)
    assert formats == [1, 4, 6]


def test_history_is_forgotten_but_for_what_a_savepoint_needs(past: str) -> None:
    """The newest state stays the same, and is read by a process that knew the ones before."""
    store, other = store_at(past), store_at(past)
    before = other.table(TABLE)
    store.commit(TABLE, [SavepointTaken("now", None, "")])
    _commits(store, 3, 50)
    store.forget_history(TABLE)
    kept = 40  # the snapshot that the state of the savepoint is made from
    assert snapshot_versions(past) == [kept, 49] and [each.version for each in store.log(TABLE)] == [*range(41, 50)]
    assert store.table(TABLE, at=46).files.count == before.files.count
    store.commit(TABLE, [SavepointRemoved("now")])
    store.forget_history(TABLE)
    assert snapshot_versions(past) == [50] and store.log(TABLE) == []
    assert other.table(TABLE).files.count == before.files.count + 3
    _commits(other, 1, 60)
    assert store_at(past).table(TABLE).version == 51
    with pytest.raises(NotFound, match="not kept any more"):
        store.table(TABLE, at=46)
