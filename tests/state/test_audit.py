"""Every kind of stored thing, damaged: an audit names it, and fixing gets over it or says why it cannot."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from deployer.errors import Conflict, NotFound, Refused
from deployer.platform.storage.envelope import seal
from deployer.state.audit.differences import inner_differences
from deployer.state.audit.logs import LogAudit
from deployer.state.audit.repair import Step
from deployer.state.backends.protocol import SnapshotRecord
from deployer.state.log.service_updates import RunQueued, SavepointRemoved, SavepointTaken
from deployer.state.log.updates import DatasetRemoved, FilesAdded, RegisterTable, RewriteStarted, TableRewritten
from deployer.state.model.entities import INSTANCE_LOG, InstanceState, TableState
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
    place,
    snapshot_versions,
    store_at,
)

pytestmark = pytest.mark.thinned(6, only="dynamodb")  # both kinds share all code but the backend's

EVERY_TEN = SnapshotPolicy(entries=10, keep=2, keep_for=1 << 50)


@pytest.fixture
def filled(root: str) -> str:
    """Entries 1 to 45, snapshots at 10, 20, 30 and 40."""
    store = store_at(root, policy=EVERY_TEN)
    for number in range(45):
        store.commit(TABLE, [added(number, f"job-{number}") if number else creation()])
    assert snapshot_versions(root) == [10, 20, 30, 40]
    store.close()
    return root


def audit(root: str) -> LogAudit:
    return store_at(root, policy=NEVER).audit(TABLE)


def said(root: str) -> list[str]:
    return [str(each) for each in audit(root).differences]


def fix(root: str, *, dry_run: bool = False, drop_history: bool = False) -> list[Step]:
    store = store_at(root, policy=NEVER)
    return store.fix(store.audit(TABLE), dry_run=dry_run, drop_history=drop_history)


def newest(root: str) -> TableState:
    return store_at(root, policy=NEVER).table(TABLE)


def test_what_was_written_is_whole(filled: str) -> None:
    found = audit(filled)
    assert (found.newest, found.entries, found.snapshots, found.differences) == (45, 45, (10, 20, 30, 40), ())
    assert found.state == newest(filled)
    assert fix(filled) == []


def test_what_retention_left_is_whole(root: str) -> None:
    store = store_at(root, policy=SnapshotPolicy(entries=10, keep=2, keep_for=0))
    for number in range(45):
        store.commit(TABLE, [added(number) if number else creation()])
    found = audit(root)
    assert (found.newest, found.entries, found.snapshots, found.differences) == (45, 15, (30, 40), ())


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def cut(data: bytes) -> bytes:
    return data[:-1]


def emptied(data: bytes) -> bytes:
    return b""


CHANGES = {change.__name__: change for change in (flipped, cut, emptied)}


def path_of(root: str, version: int, name: str) -> str:
    [path] = [each for each in objects_at(root).list(TABLE) if f"/{version:020}-" in each and each.endswith(name)]
    return path


PARTS = ("table.parquet", "files.parquet", "jobs.parquet", "partitions.parquet", "manifest.json")
DAMAGED = [(name, 40, "flipped") for name in PARTS]
DAMAGED += [("files.parquet", version, change) for version in (10, 30) for change in CHANGES]


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize(("name", "version", "change"), DAMAGED, ids=["-".join(map(str, each)) for each in DAMAGED])
def test_a_damaged_file_of_a_snapshot_is_made_again(filled: str, name: str, version: int, change: str) -> None:
    state, objects = newest(filled), objects_at(filled)
    path = path_of(filled, version, name)
    objects.put(path, CHANGES[change](objects.get(path)))
    [difference] = said(filled)
    assert difference.startswith(f"snapshot {version} of log {TABLE}: ") and name in difference
    [planned] = fix(filled, dry_run=True)
    assert str(planned) == f"snapshot {version} of log {TABLE}: rebuilt from the previous snapshot and the log"
    assert said(filled) == [difference]
    assert fix(filled) == [planned]
    assert said(filled) == [] and newest(filled) == state
    assert snapshot_versions(filled) == [10, 20, 30, 40]


def test_a_missing_file_of_a_snapshot_is_made_again(filled: str) -> None:
    objects_at(filled).delete([path_of(filled, 20, "files.parquet"), path_of(filled, 40, "table.parquet")])
    assert [each.partition(":")[0] for each in said(filled)] == [f"snapshot {v} of log {TABLE}" for v in (20, 40)]
    assert len(fix(filled)) == 2
    assert said(filled) == []


@pytest.mark.parametrize("change", ["flipped", "cut"])
def test_a_damaged_pointer_is_made_again(filled: str, change: str) -> None:
    state = newest(filled)
    [pointer] = [each for each in backend_of(store_at(filled)).snapshots(TABLE) if each.version == 40]
    change_pointer(filled, 40, CHANGES[change](pointer.body))
    assert newest(filled) == state
    assert said(filled) == [f"snapshot 40 of log {TABLE}: the checksum does not match"]
    assert len(fix(filled)) == 1
    assert said(filled) == [] and newest(filled) == state
    assert len({path.rpartition("/")[0] for path in objects_at(filled).list(TABLE)}) == 4, "the old folder is removed"


@pytest.mark.parametrize("change", ["flipped", "cut"])
def test_a_damaged_entry_that_a_snapshot_stands_for_costs_only_the_past(filled: str, change: str) -> None:
    state = newest(filled)
    change_entry(filled, 25, CHANGES[change])
    assert newest(filled) == state
    assert said(filled) == [f"entry 25 of log {TABLE}: the checksum does not match"]
    [step] = fix(filled)
    assert step.left and "some states before version 30 cannot be read" in step.what
    assert said(filled)
    assert store_at(filled).table(TABLE, at=24).version == 24
    [step] = fix(filled, drop_history=True)
    assert str(step) == f"log {TABLE}: removed the states before version 30, which could not be read completely"
    assert said(filled) == [] and newest(filled) == state
    with pytest.raises(NotFound, match="is not kept any more"):
        store_at(filled).table(TABLE, at=24)


@pytest.mark.parametrize("change", [flipped, cut, lambda body: None], ids=["flipped", "cut", "removed"])
def test_a_damaged_entry_above_all_snapshots_is_named_and_left(
    filled: str, change: Callable[[bytes], bytes | None]
) -> None:
    change_entry(filled, 43, change)
    assert f"entry 43 of log {TABLE}: " in said(filled)[0 if not is_on_s3(filled) else -1]
    for drop_history in (False, True):
        [step] = fix(filled, drop_history=drop_history)
        assert (
            step.left and "its newest state cannot be rebuilt from intact entries; restore the instance's" in step.what
        )
    assert store_at(filled).table(TABLE, at=42).version == 42


def test_damage_of_snapshot_and_log_together_costs_only_the_past(filled: str) -> None:
    objects, state = objects_at(filled), newest(filled)
    change_entry(filled, 25, flipped)
    objects.put(path_of(filled, 30, "files.parquet"), b"")
    assert len(said(filled)) == 2
    [step] = fix(filled, drop_history=True)
    assert "before version 40" in step.what
    assert said(filled) == [] and newest(filled) == state


def test_a_snapshot_that_says_something_else_than_the_log_is_named(filled: str) -> None:
    store = store_at(filled, policy=NEVER)
    right = store.table(TABLE, at=40)
    wrong = replace(right, files=right.files.changed([file(900)], [7]), lance_version=3)
    assert store._snapshot_writer.remake(wrong)
    where = f"snapshot 40 of log {TABLE}"
    assert said(filled) == [
        f"{where}: lance_version is 3, but 41 by the log",
        f"{where}: files: only in the stored state: 900; only in the log: 7",
    ]
    assert len(fix(filled)) == 1
    assert said(filled) == []


def test_what_makes_no_sense_in_the_newest_state_is_named(root: str) -> None:
    store = store_at(root)
    store.commit(TABLE, [creation()])
    store.commit(TABLE, [FilesAdded((file(1, partition="nowhere"), file(2, b"z", b"a")), 2)])
    assert said(root) == [
        f"the newest state of log {TABLE}: fragment 1 is in partition nowhere, which does not exist",
        f"the newest state of log {TABLE}: fragment 2 has keys outside of its partition root",
    ]
    [step] = fix(root)
    assert step.left and "was committed with this fault" in step.what


def test_a_savepoint_whose_dataset_is_gone_is_named(root: str) -> None:
    store = store_at(root)
    store.commit(TABLE, [creation(), SavepointTaken("old"), SavepointTaken("older")])
    store.commit(TABLE, [RewriteStarted(2, place(2), ""), TableRewritten(2, place(), b"s", 1, (), ())])
    store.commit(TABLE, [SavepointRemoved("older"), SavepointTaken("new")])
    assert said(root) == []
    store.commit(TABLE, [DatasetRemoved(1)])
    assert said(root) == [
        f"the newest state of log {TABLE}: savepoint old is of dataset 1, which was removed",
    ]


def test_a_snapshot_that_has_other_runs_than_the_log_makes_is_named(root: str) -> None:
    store = store_at(root)
    state = store.commit(TABLE, [creation(), RunQueued("one", "CLEAN", "by hand")])
    store._snapshot_writer.take(replace(state, runs={"two": replace(state.runs["one"], run_id="two")}))
    assert said(root) == [f"snapshot 1 of log {TABLE}: runs: only in the stored state: two; only in the log: one"]


def test_tables_in_one_place_are_named(root: str) -> None:
    store = store_at(root)
    same = replace(entry("b" * 32, "planes"), location=entry().location)
    words = f"tables nyc.flights and nyc.planes have the same location {entry().location}"
    with pytest.raises(Conflict, match=words):
        store.commit(INSTANCE_LOG, [RegisterTable(entry()), RegisterTable(same)])
    both = InstanceState(1, {}, {each.table_id: each for each in (entry(), same)}, 1)
    assert [each.what for each in inner_differences(both, "here")] == [words]


def test_a_folder_that_nothing_points_to_is_no_difference(filled: str) -> None:
    objects_at(filled).put(f"{TABLE}/{44:020}-0badcafe/table.parquet", b"of a process that died")
    found = audit(filled)
    assert (found.differences, found.unpointed) == ((), (f"{TABLE}/{44:020}-0badcafe",))


def test_a_newer_format_is_refused(filled: str) -> None:
    manifest = {"format": 7, "log": TABLE, "version": 40, "at": 1, "location": "x", "parts": {}}
    change_pointer(filled, 40, seal(json.dumps(manifest).encode()))
    with pytest.raises(Refused, match=r"written by a newer deployer \(format 7\)"):
        audit(filled)


def test_retention_while_it_reads_is_no_damage(filled: str) -> None:
    """Snapshots and entries are removed between an audit's look at them and its reading."""
    store = store_at(filled, policy=NEVER)
    whole = store._snapshots.read
    passed: list[SnapshotRecord] = []

    def removed_first(pointer: SnapshotRecord) -> object:
        if not passed:
            passed.append(pointer)
            other: StateStore = store_at(filled, policy=SnapshotPolicy(entries=1, keep=1, keep_for=0))
            other.commit(TABLE, [added(100)])
        return whole(pointer)

    store._snapshots.read = removed_first  # type: ignore[method-assign, assignment]
    found = store.audit(TABLE)
    assert passed and (found.newest, found.snapshots, found.differences) == (46, (46,), ())


def test_retention_goes_on_beside_a_damaged_pointer(filled: str) -> None:
    change_pointer(filled, 40, b"damaged")
    store = store_at(filled, policy=SnapshotPolicy(entries=10, keep=2, keep_for=0))
    for number in range(100, 106):
        store.commit(TABLE, [added(number)])
    assert 40 in snapshot_versions(filled) and snapshot_versions(filled)[0] >= 40
