"""Folding: what each update does, what it refuses, and that snapshots change nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deployer.errors import Corrupt
from deployer.state.log.entries import LogEntry
from deployer.state.log.inapplicable import Inapplicable
from deployer.state.log.reducer import apply, empty_state, fold
from deployer.state.log.service_updates import (
    CancelRequested,
    LeaseRenewed,
    PastVersion,
    PauseService,
    PutService,
    RemoveService,
    ResumeService,
    RunEnded,
    RunQueued,
    RunStarted,
    SavepointRemoved,
    SavepointTaken,
)
from deployer.state.log.updates import (
    CommitAbandoned,
    CommitStarted,
    FilesAdded,
    FilesRemoved,
    FilesReplaced,
    PartitionSplit,
    RegisterTable,
    RemoveTable,
    RenameTable,
    RewriteStarted,
    RowsChanged,
    RowsLeft,
    SetInstanceProperties,
    SetLanceVersion,
    SetSchema,
    SetTableProperties,
    SetTableStatus,
    TableRewritten,
    Update,
)
from deployer.state.model.entities import (
    INSTANCE_LOG,
    InstanceState,
    Intent,
    Job,
    Partition,
    RowCounts,
    State,
    TableState,
)
from deployer.state.model.files import files as files_module
from deployer.state.model.services import Savepoint, Service
from tests.projects import folder_of_example

from .samples import NEVER, TABLE, added, creation, entry, file, place, store_at
from .strategies import next_service_updates, next_updates


def _after(state: State, *updates: Update, at: int = 5) -> Any:
    log = INSTANCE_LOG if isinstance(state, InstanceState) else TABLE
    return apply(state, LogEntry(log, state.version + 1, "txn", at, "ann", updates))


INSTANCE: InstanceState = _after(InstanceState(), SetInstanceProperties({"a": 1}), RegisterTable(entry()))
COUNTS = RowCounts(inserted=5, updated=3, deleted=2)
CREATED: TableState = _after(TableState(table_id=TABLE), creation(), added(1), CommitStarted("open", "compact", 3))


def test_properties_of_the_instance_are_merged_and_none_removes() -> None:
    assert _after(INSTANCE, SetInstanceProperties({"a": None, "b": [2]})).properties == {"b": [2]}


def test_a_table_is_registered_renamed_marked_and_removed() -> None:
    renamed = _after(INSTANCE, RenameTable(TABLE, "air", "legs"), SetTableStatus(TABLE, "deleting"))
    assert renamed.tables[TABLE] == replace(entry(), database="air", name="legs", status="deleting")
    assert renamed.by_name("air.legs") == renamed.tables[TABLE]
    assert renamed.by_name("nyc.flights") is None
    assert not _after(renamed, RemoveTable(TABLE)).tables


def test_a_created_table_has_one_partition_unless_told() -> None:
    assert dict(CREATED.partitions) == {"root": Partition("root", None)}
    assert CREATED.properties.generation == 1
    assert (CREATED.version, CREATED.at, CREATED.schema) == (1, 5, b"arrow schema")


def test_the_generation_counts_commits_that_declare() -> None:
    both = _after(CREATED, SetTableProperties({"online": False}), SetSchema(b"wider", 9))
    assert (both.properties.generation, both.properties.online, both.schema, both.lance_version) == (
        2,
        False,
        b"wider",
        9,
    )
    assert _after(both, SetLanceVersion(10), added(2)).properties.generation == 2


def test_a_finished_job_is_recorded_by_the_kind_that_it_started_as() -> None:
    state = _after(CREATED, FilesReplaced((1,), (file(2), file(3)), 4, "open"), at=7)
    assert dict(state.jobs) == {"open": Job("open", "compact", 20, 4, 7)}
    assert dict(state.intents) == {}
    assert [each.fragment_id for each in state.files] == [2, 3]
    assert dict(CREATED.intents) == {"open": Intent("open", "compact", 5, 3)}


def test_a_change_of_rows_leaves_a_file_in_its_place_with_fewer_rows() -> None:
    state = _after(
        _after(CREATED, added(5)), RowsChanged((RowsLeft(1, 4),), (5,), (file(2),), 4, "m", "merge", COUNTS), at=7
    )
    assert list(state.files) == [replace(file(1), rows=4), file(2)]
    assert state.jobs["m"] == Job("m", "merge", 10, 4, 7, counts=COUNTS) and state.jobs["m"].added == 8


def test_commits_may_be_recorded_in_another_order_than_lance_made_them() -> None:
    state = _after(CREATED, FilesAdded((file(9),), 9))
    assert _after(state, FilesAdded((file(8),), 8)).lance_version == 9


def test_a_fragment_may_be_replaced_by_itself_and_may_come_back() -> None:
    wider = replace(file(1), rows=99)
    assert list(_after(CREATED, FilesReplaced((1,), (wider,), 4)).files) == [wider]
    assert list(_after(_after(CREATED, FilesRemoved((1,), 4)), added(1)).files) == [file(1)]


def test_a_split_leaf_keeps_its_files_and_has_two_children() -> None:
    state = _after(CREATED, PartitionSplit("root", b"m", "left", "right"))
    assert [leaf.partition_id for leaf in state.leaves()] == ["left", "right"]
    assert (state.partitions["left"].upper, state.partitions["right"].lower) == (b"m", b"m")
    assert [each.partition for each in state.files] == ["root"]


SERVED: TableState = _after(
    CREATED,
    PutService(Service("COMPACT")),
    RunQueued("over", "COMPACT", "schedule"),
    RunStarted("over", "me", 1000),
    RunEnded("over", "SUCCEEDED"),
    RunQueued("going", "COMPACT", "schedule"),
    RunStarted("going", "me", 1000),
    RunQueued("waiting", "CLEAN", "by hand"),
    SavepointTaken("one", 9, "a note"),
)


def test_runs_and_savepoints_have_the_time_and_author_of_their_entry() -> None:
    going = SERVED.runs["going"]
    assert (going.author, going.queued_at, going.started_at, going.lease_until) == ("ann", 5, 5, 1005)
    assert SERVED.savepoints["one"] == Savepoint("one", 3, 1, 2, 5, 9, "ann", "a note")
    renewed = _after(SERVED, LeaseRenewed("going", 1000, {"done": 1}), at=800).runs["going"]
    assert (renewed.lease_until, renewed.progress, renewed.started_at) == (1800, {"done": 1}, 5)


def test_pausing_is_told_to_the_run_and_cancelling_stands() -> None:
    paused = _after(SERVED, PauseService("COMPACT"))
    assert (paused.services["COMPACT"].paused, paused.runs["going"].wish) == (True, "pause")
    assert paused.runs["over"] == SERVED.runs["over"]
    resumed = _after(paused, ResumeService("COMPACT"))
    assert (resumed.services["COMPACT"].paused, resumed.runs["going"].wish) == (False, None)
    cancelled = _after(paused, CancelRequested("going"))
    assert _after(cancelled, ResumeService("COMPACT")).runs["going"].wish == "cancel"
    assert _after(SERVED, PutService(Service("COMPACT", paused=True))).runs["going"].wish is None


def test_a_trigger_counts_from_when_it_was_set_or_resumed() -> None:
    daily, hourly = (Service("CLEAN", "AUTOMATIC", {"schedule": each}) for each in ("0 3 * * *", "0 * * * *"))
    state: TableState = _after(CREATED, PutService(replace(daily, since=1)), at=10)
    since = []
    updates: tuple[Update, ...] = (
        PutService(replace(daily, options={"keep_versions": 2}, cluster="local")),
        PutService(hourly),
        PauseService("CLEAN"),
        ResumeService("CLEAN"),
        ResumeService("CLEAN"),
        PutService(replace(hourly, trigger_mode="ON_DEMAND", trigger={})),
        RemoveService("CLEAN"),
        PutService(daily),
    )
    for at, update in enumerate(updates, 11):
        state = _after(state, update, at=at)
        since.append(state.services["CLEAN"].since if "CLEAN" in state.services else None)
    assert since == [10, 12, 12, 14, 14, 16, None, 18]
    assert state.services["CLEAN"] == daily  # it is no difference between two


def test_a_rewrite_keeps_services_runs_and_savepoints() -> None:
    rewritten = _after(
        SERVED, RewriteStarted(2, place(2), ""), TableRewritten(2, place(), b"s", 1, (), (), forgets_jobs=True)
    )
    assert (rewritten.services, rewritten.runs, rewritten.savepoints) == (
        SERVED.services,
        SERVED.runs,
        SERVED.savepoints,
    )
    assert _after(rewritten, SavepointTaken("two")).savepoints["two"].dataset == 2


SPLIT: TableState = _after(CREATED, PartitionSplit("root", b"m", "left", "right"))
REFUSED: list[tuple[State, Update, str]] = [
    (INSTANCE, RegisterTable(entry(name="other")), f"table {TABLE} exists already"),
    (INSTANCE, RegisterTable(entry("b" * 32)), f"the name nyc.flights belongs to table {TABLE}"),
    (INSTANCE, RenameTable(TABLE, "nyc", "flights"), f"the name nyc.flights belongs to table {TABLE}"),
    (INSTANCE, RenameTable("none", "a", "b"), "table none does not exist"),
    (INSTANCE, SetTableStatus("none", "active"), "table none does not exist"),
    (INSTANCE, RemoveTable("none"), "table none does not exist"),
    (INSTANCE, added(1), "FilesAdded is not an update of the instance"),
    (CREATED, RemoveTable(TABLE), "RemoveTable is not an update of a table"),
    (CREATED, creation(), f"table {TABLE} exists already"),
    (TableState(table_id=TABLE), added(1), f"table {TABLE} was never created"),
    (TableState(table_id=TABLE), replace(creation(), schema=b""), "a table needs a schema"),
    (
        TableState(table_id=TABLE),
        creation([Partition("a", None, b"x")]),
        "partition a is the root and must hold all keys",
    ),
    (TableState(table_id=TABLE), creation([Partition("a", "b")]), "a partition tree has one root, not 0"),
    (CREATED, SetTableProperties({"generation": 9}), "generation counts changes and cannot be set"),
    (CREATED, SetTableProperties({"onlin": True}), "there is no property onlin; there are generation, row_keys"),
    (CREATED, SetTableProperties({"online": "yes"}), "online: 'yes' is not true or false"),
    (CREATED, CommitAbandoned("none"), "job none has no unfinished commit"),
    (CREATED, added(1), "fragment 1 is in the table already"),
    (CREATED, FilesRemoved((2,), 4), "fragment 2 is not in the table"),
    (CREATED, FilesRemoved((1, 1), 4), "a fragment is named twice"),
    (CREATED, FilesAdded((file(2), file(2)), 4), "a fragment is named twice"),
    (CREATED, FilesReplaced((2,), (file(3),), 4), "fragment 2 is not in the table"),
    (CREATED, RowsChanged((RowsLeft(2, 5),), (), (), 4), "fragment 2 is not in the table"),
    (CREATED, RowsChanged((RowsLeft(1, 5),), (1,), (), 4), "a fragment is named twice"),
    (_after(CREATED, added(2, "done")), added(3, "done"), "job done is done already"),
    (_after(CREATED, added(2, "done")), CommitStarted("done", "ingest", 4), "job done is done already"),
    (CREATED, PartitionSplit("none", b"m", "l", "r"), "partition none does not exist"),
    (CREATED, PartitionSplit("root", b"", "l", "r"), "the split point is not inside partition root"),
    (SPLIT, PartitionSplit("root", b"m", "l", "r"), "partition root was split already into left and right"),
    (SPLIT, PartitionSplit("left", b"m", "l", "r"), "the split point is not inside partition left"),
    (SPLIT, PartitionSplit("left", b"g", "right", "r"), "partition right exists already"),
    (SPLIT, PartitionSplit("left", b"g", "r", "r"), "partition r exists already"),
    (TableState(table_id=TABLE), PutService(Service("CLEAN")), f"table {TABLE} was never created"),
    (INSTANCE, PutService(Service("CLEAN")), "PutService is not an update of the instance"),
    (SERVED, RemoveService("CLEAN"), "the table has no CLEAN service"),
    (SERVED, PauseService("CLEAN"), "the table has no CLEAN service"),
    (SERVED, RunQueued("going", "CLEAN", ""), "run going exists already"),
    (SERVED, RunQueued("another", "COMPACT", ""), "run going of COMPACT is RUNNING"),
    (SERVED, RunStarted("none", "me", 1), "there is no run none"),
    (SERVED, RunStarted("going", "me", 1), "run going is RUNNING and cannot become RUNNING"),
    (SERVED, RunEnded("over", "FAILED"), "run over is SUCCEEDED and cannot become FAILED"),
    (SERVED, RunEnded("waiting", "SUCCEEDED"), "run waiting is QUEUED and cannot become SUCCEEDED"),
    (SERVED, LeaseRenewed("waiting", 1), "run waiting is QUEUED, not RUNNING"),
    (SERVED, CancelRequested("over"), "run over is SUCCEEDED, not RUNNING"),
    (SERVED, SavepointTaken("one"), "the table has a savepoint one already"),
    (SERVED, SavepointTaken("new", of=PastVersion(1, 1, 99)), "a savepoint cannot be of version 99 of the log"),
    (SERVED, SavepointTaken("../one"), "a savepoint cannot be called '../one'"),
    (SERVED, SavepointRemoved("two"), "the table has no savepoint two"),
]


@pytest.mark.parametrize(("state", "update", "words"), REFUSED, ids=[words for *_, words in REFUSED])
def test_an_update_that_makes_no_sense_is_refused_in_words(state: State, update: Update, words: str) -> None:
    with pytest.raises(Inapplicable) as caught:
        _after(state, update)
    assert caught.value.what.startswith(words)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (LogEntry(TABLE, 2, "txn", 1, "ann", (creation(),)), "it follows version 0"),
        (LogEntry(TABLE, 1, "txn", 1, "ann", (added(1),)), "was never created"),
    ],
    ids=["a gap", "an update that makes no sense"],
)
def test_a_log_that_cannot_be_folded_is_corrupt_and_names_the_entry(entry: LogEntry, words: str) -> None:
    with pytest.raises(Corrupt, match=f"entry {entry.version} of log {TABLE}: .*{words}"):
        fold(empty_state(TABLE), [entry])


@settings(max_examples=25)
@given(data=st.data())
def test_a_history_folds_the_same_with_and_without_snapshots(data: st.DataObject) -> None:
    limit = data.draw(st.sampled_from([2, 1000]), label="files held one by one")
    with folder_of_example() as folder, patch.object(files_module, "OVERLAY_LIMIT", limit):
        writer = store_at(Path(folder), policy=NEVER)
        states = [writer.commit(TABLE, [creation()])]
        for number in range(data.draw(st.integers(1, 12), label="commits")):
            either = next_updates(states[-1], number) | next_service_updates(states[-1], number)
            states.append(writer.commit(TABLE, data.draw(either)))
            if data.draw(st.booleans(), label="snapshot"):
                writer.snapshot(TABLE)
        reader = store_at(Path(folder), policy=NEVER)
        assert reader.table(TABLE) == states[-1]
        folded = empty_state(TABLE)
        for log_entry, state in zip(writer.log(TABLE), states, strict=True):
            folded = fold(folded, [log_entry])
            assert folded == state == reader.table(TABLE, at=state.version)
        reader.close()
        writer.close()
