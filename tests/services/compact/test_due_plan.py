"""COMPACT is due only where a run rewrites something, and not again after that run until there is something to take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import lance
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from deployer.platform.files.json_values import JSON
from deployer.runs.rewriting.tasks import Piece
from deployer.services.api.attachments import create_service
from deployer.services.kinds.compact import compact_table
from deployer.services.kinds.compact.planning import own_sizes, plan_table
from deployer.services.triggers.due import due_in, due_services
from deployer.state.model.entities import Files, Job, TableProperties, TableState
from deployer.state.model.services import Figures, Run, Service
from deployer.tables.append import open_appender
from tests.projects import folder_of_example
from tests.services.compact.test_planning import (
    LEAVES,
    apply_by_leaf,
    apply_in_order,
    keyed_pieces,
    plain_pieces,
)
from tests.tables.lakes import Lake, flights

ROOT = replace(LEAVES[0], partition_id="root", parent=None, lower=b"", upper=None)
INNER = replace(ROOT, children=("a", "bc"), split_point=b"\x40")
TREE = {
    "root": INNER,
    "a": LEAVES[0],
    "bc": replace(INNER, partition_id="bc", parent="root", lower=b"\x40", children=("b", "c"), split_point=b"\x80"),
    "b": replace(LEAVES[1], parent="bc"),
    "c": replace(LEAVES[2], parent="bc"),
}

#: Each condition at a value that what was written meets, so that what decides is what COMPACT would take.
triggers = st.sampled_from(
    [
        {"commits": 1},
        {"rows": 1},
        {"bytes": 1},
        {"small_files": 1},
        {"deleted_share": 0.01},
        {"commits": 1, "rows": 1, "bytes": 1, "small_files": 1, "deleted_share": 0.01},
    ]
)
options = st.fixed_dictionaries(
    {
        "target_file_bytes": st.sampled_from([1_000_000, 2_000_000]),
        "target_rows": st.just(100),
        "strategy": st.sampled_from(["size", "tiered", "leveled"]),
        "min_files": st.integers(2, 5),
        "max_deleted_share": st.sampled_from([0.01, 0.1, 0.9]),
    }
)


def state_of(
    pieces: Sequence[Piece], trigger: Mapping[str, JSON], given: Mapping[str, JSON], *, keyed: bool
) -> TableState:
    service = Service("COMPACT", "AUTOMATIC", trigger, given)
    files = [replace(each.file, bytes=each.file.bytes * 1000) for each in pieces]
    rows = sum(file.rows for file in files)
    return TableState(
        9,
        "t",
        TableProperties(row_keys=("id",) if keyed else ()),
        lance_version=9,
        partitions=TREE if keyed else {"root": ROOT},
        files=Files(files),
        jobs={"load": Job("load", "append", rows, 9, at=5)},
        services={"COMPACT": service},
    )


def deleted_of(pieces: Sequence[Piece]) -> dict[int, int]:
    return {piece.file.fragment_id: piece.deleted for piece in pieces if piece.deleted}


def after_run(state: TableState, pieces: Sequence[Piece]) -> TableState:
    run = Run("r", "COMPACT", "SUCCEEDED", "", "ann", None, 10, 10, 20, figures=Figures(lance_version_after=10))
    return replace(state, lance_version=10, files=Files(each.file for each in pieces), runs={"r": run})


@given(st.booleans(), keyed_pieces(), plain_pieces(), triggers, options)
@settings(max_examples=100)
def test_due_means_that_there_is_something_to_take_and_a_run_takes_it(
    keyed: bool, by_key: list[Piece], in_order: list[Piece], trigger: dict[str, JSON], given: dict[str, JSON]
) -> None:
    state = state_of(by_key if keyed else in_order, trigger, given, keyed=keyed)
    deleted = deleted_of(by_key if keyed else in_order)
    pieces = [Piece(file, deleted.get(file.fragment_id, 0)) for file in state.files]
    sizes = own_sizes(state)
    tasks = plan_table(state, pieces, sizes)
    due = due_in(state, lambda: deleted)
    event(f"keyed {keyed}, due {bool(due)}, plan {bool(tasks)}")
    assert not due or tasks
    if tasks and not trigger.keys() <= {"small_files", "deleted_share"} and any(file.rows for file in state.files):
        assert due  # the amount is there, and something is to be taken
    rounds = 0
    while tasks and rounds < 3:  # a run plans again what files across leaves have left
        pieces = apply_by_leaf(pieces, tasks, sizes) if keyed else apply_in_order(pieces, tasks)
        tasks = plan_table(replace(state, files=Files(each.file for each in pieces)), pieces, sizes)
        rounds += 1
    assert not tasks
    done, left = after_run(state, pieces), deleted_of(pieces)
    assert due_in(done, lambda: left) == []
    # commits that leave COMPACT nothing to take, such as those of a change of columns
    later = replace(done, lance_version=30, jobs={"load": Job("load", "append", 1000, 30, at=25)})
    assert due_in(later, lambda: left) == []


def never_opened() -> dict[int, int]:
    raise AssertionError("the dataset is opened although nothing was committed")


def test_the_dataset_is_not_opened_when_nothing_was_committed_since_the_last_run() -> None:
    trigger: dict[str, JSON] = {"commits": 1, "rows": 1, "bytes": 1, "small_files": 1, "deleted_share": 0.01}
    assert due_in(after_run(state_of([], trigger, {}, keyed=False), []), never_opened) == []


def test_the_dataset_is_not_opened_while_too_little_was_written() -> None:
    trigger: dict[str, JSON] = {"commits": 100, "rows": 10**9, "bytes": 10**12, "small_files": 50}
    assert due_in(state_of([], trigger, {}, keyed=False), never_opened) == []


appends = st.lists(st.sampled_from([10, 60, 120]), min_size=1, max_size=5)


@pytest.mark.thinned(2)
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(st.booleans(), appends, st.sampled_from([0, 2, 9, 40]), triggers, options)
def test_a_table_that_is_due_is_rewritten_and_then_left_alone(
    keyed: bool, appends: list[int], percent: int, trigger: dict[str, JSON], given: dict[str, JSON]
) -> None:
    with folder_of_example() as folder:
        lake = Lake(Path(folder))
        table = lake.table(row_keys=("carrier", "flight") if keyed else (), splits=()).opened
        create_service(lake.store, table.entry.table_id, Service("COMPACT", "AUTOMATIC", trigger, given))
        appender = open_appender(lake.root, "flights")
        start = 0
        for rows in appends:
            appender.append(flights(rows, start))
            start += rows
        appender.close()
        if percent:
            lance.dataset(table.location).delete(f"price % 100 < {percent}")
        due = due_services(lake.open().opened)
        done = compact_table(lake.root, "flights")
        event(f"due {bool(due)}, {done.status}")
        assert not due or done.status == "SUCCEEDED"
        assert due_services(lake.open().opened) == []
        lance.dataset(table.location).update_config({"a": "b"})  # a version that has the same files
        assert lake.open().opened.state.lance_version > done.after.lance_version
        assert due_services(lake.open().opened) == []
        lake.store.close()
