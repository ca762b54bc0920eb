"""Runs that write columns beside others: claims, what plans around them, and what is refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.columns.fill.run import FillRun
from deployer.errors import Conflict, Refused
from deployer.live.reader import live_table
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.runs.records import fail_dead_runs, runs_of
from deployer.runs.runner import RunCancelled
from deployer.services.api import management
from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.compact import compact_table
from deployer.table import Table
from deployer.tables.evolution.rewrite import claims, rewrite
from deployer.tables.evolution.rewrite.rewrite import rewrite_table
from deployer.tables.evolution.rewrite.truncate import reinitialise_table
from tests.columns.rows import SCHEMA, rows, source, values
from tests.tables.lakes import Lake


class Paused:
    """A load in a thread, stopped at a point of its run until `go` is called."""

    def __init__(
        self, table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch, method: str, **arguments: Any
    ) -> None:
        self._there, self._on = threading.Event(), threading.Event()
        before = getattr(FillRun, method)

        def stopping(run: FillRun, *given: Any) -> Any:
            if not self._there.is_set():
                self._there.set()
                assert self._on.wait(300)
            return before(run, *given)

        monkeypatch.setattr(FillRun, method, stopping)
        path = str(lake.file(source(range(100))))
        self.future = table.load_columns_async(path, "id", ["label"], job_id="monday", **arguments)
        assert self._there.wait(300), self.future.exception(1)

    def go(self) -> None:
        self._on.set()
        self.future.result(60)


@contextmanager
def paused(table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch, method: str, **more: Any) -> Iterator[Paused]:
    load = Paused(table, lake, monkeypatch, method, **more)
    try:
        yield load
    finally:
        load._on.set()
        load.future.exception(60)


def labels(table: Table) -> None:
    """Every row has its label."""
    found = values(table, "label")
    assert found == {i: f"label {i}" for i in found}


def test_compact_leaves_claimed_fragments(table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with paused(table, lake, monkeypatch, "_written") as load:
        run = runs_of(lake.open().opened.state, "LOAD_COLUMNS")[0]
        assert (run.target, run.job, run.claims) == (("label",), "monday", (0, 1, 2))
        table.add(rows(30, 40))
        table.add(rows(40, 50))
        done = compact_table(lake.root, "flights")
        assert [file.fragment_id for file in lake.open().opened.state.files][:3] == [0, 1, 2]
        assert done.work.portions == 1 and lake.open().opened.state.files.count == 4
        load.go()
    labels(table)
    assert runs_of(lake.open().opened.state, "LOAD_COLUMNS")[0].claims == ()
    assert compact_table(lake.root, "flights").work.portions == 1
    labels(table)


def test_compact_says_why_it_leaves_all(table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with paused(table, lake, monkeypatch, "_written") as load:
        done = compact_table(lake.root, "flights")
        assert done.status == "SKIPPED" and "3 others are left to a run that writes columns" in done.why
        load.go()
    labels(table)


def test_a_table_without_order_keeps_it(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fragments that follow a rewritten one get new numbers: only those behind all claims are rewritten."""
    from deployer.table import connect

    lake.table(SCHEMA, row_keys=(), name="heap")
    with connect(lake.root) as connection:
        table = connection.open_table("heap")
        for start in range(0, 30, 10):
            table.add(rows(start, start + 10))
        with paused(table, lake, monkeypatch, "_written") as load:
            for start in range(30, 60, 10):
                table.add(rows(start, start + 10))
            before = table.to_arrow(["id"])
            compact_table(lake.root, "heap")
            assert lake.open("heap").opened.state.files.count == 4
            load.go()
        labels(table)
        assert table.to_arrow(["id"]).equals(before)


def test_cluster_leaves_claimed_fragments(table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with paused(table, lake, monkeypatch, "_written") as load:
        table.add(rows(30, 40))
        cluster_table(lake.root, "flights", {"columns": ["rating", "name"]})
        assert {0, 1, 2} <= {file.fragment_id for file in lake.open().opened.state.files}
        load.go()
    labels(table)


def test_claims_end_with_each_commit(table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, ...]] = []
    written = FillRun._written

    def noting(run: FillRun, *given: Any) -> Any:
        seen.append(runs_of(lake.open().opened.state, "LOAD_COLUMNS")[0].claims)
        return written(run, *given)

    monkeypatch.setattr(FillRun, "_written", noting)
    table.load_columns(str(lake.file(source(range(30)))), "id", ["label"], commit_granularity=2)
    assert seen == [(0, 1), (2,)]


@pytest.mark.parametrize("method", ["_written", "_round", "_finish"])
def test_rows_that_come_meanwhile_have_values(
    method: str, table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with paused(table, lake, monkeypatch, method, commit_granularity=1) as load:
        if method != "_finish":  # what comes after the last look is as if it came after the load
            table.add(rows(30, 40))
            compact_table(lake.root, "flights")
        lance.dataset(lake.open().opened.location).delete("id IN (2, 11)")
        load.go()
    labels(table)
    assert set(values(table, "label")) == {i for i in range(30 if method == "_finish" else 40) if i not in (2, 11)}


def test_fragments_that_others_rewrite_are_done_again(
    table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs that know nothing of claims, such as Lance's own compaction."""
    with paused(table, lake, monkeypatch, "_written") as load:
        lance.dataset(lake.open().opened.location).optimize.compact_files()
        load.go()
    labels(table)
    assert lake.open().opened.state.files.count == 1


def test_two_loads_of_one_column(table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(lake.file(source(range(30))))
    with paused(table, lake, monkeypatch, "_written") as load:
        run = runs_of(lake.open().opened.state, "LOAD_COLUMNS")[0].run_id
        with pytest.raises(Conflict, match=f"run {run} of LOAD_COLUMNS for label is RUNNING"):
            table.load_columns(path, "id", ["embedding", "label"])
        with pytest.raises(Conflict, match=f"job monday is in use by run {run}"):
            table.load_columns(path, "id", ["label"], job_id="monday")
        table.load_columns(path, "id", ["embedding"])
        load.go()
    labels(table)
    assert values(table, "embedding")[4] == [4.0, 4.5, -4.0]


def test_a_run_whose_lease_is_over_holds_nothing(table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that lost its run commits nothing more; the next run resumes the job."""
    with paused(table, lake, monkeypatch, "_written") as load:
        table_id = lake.open().opened.entry.table_id
        run = runs_of(lake.open().opened.state, "LOAD_COLUMNS")[0]
        fail_dead_runs(lake.store, table_id, (run.lease_until or 0) + 1)
        assert compact_table(lake.root, "flights").work.portions == 1
        with pytest.raises(Conflict, match=r"was ended or taken over|is FAILED, not RUNNING"):
            load.go()
    assert set(values(table, "label").values()) == {None}
    table.load_columns(str(lake.file(source(range(100)))), "id", ["label"])
    labels(table)


def test_a_job_is_cancelled(table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deployer.runs.records.LOOK", 0.001)
    with paused(table, lake, monkeypatch, "_written", commit_granularity=1) as load:
        assert management.cancel(table._newest(), "LOAD_COLUMNS").is_open and load.future.cancel()
        with pytest.raises(RunCancelled):
            load.go()
    assert runs_of(lake.open().opened.state, "LOAD_COLUMNS")[0].status == "CANCELLED"
    table.load_columns(str(lake.file(source(range(100)))), "id", ["label"], job_id="monday")
    labels(table)


SCHEMA_CHANGES = {
    "the column": ("label", "column label was dropped or renamed"),
    "the key": ("name", "column name, which it reads, was dropped or renamed"),
}


@pytest.mark.parametrize("what", SCHEMA_CHANGES)
def test_a_column_that_is_dropped_meanwhile_ends_the_run(
    what: str, table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = pa.table({"name": [f"name {i}" for i in range(30)], "label": [f"label {i}" for i in range(30)]})
    monkeypatch.setattr("tests.columns.test_claims.source", lambda _: named)
    column, words = SCHEMA_CHANGES[what]
    before = Table.load_columns_async

    def by_name(self: Table, path: str, _pk: str, columns: list[str], **more: Any) -> Any:
        return before(self, path, "name", columns, **more)

    monkeypatch.setattr(Table, "load_columns_async", by_name)
    with paused(table, lake, monkeypatch, "_written") as load:
        lance.dataset(lake.open().opened.location).drop_columns([column])
        with pytest.raises(Conflict, match=words):
            load.go()


def sorted_by_rating(lake: Lake, on_progress: OnProgress = no_progress) -> None:
    """Makes `rating` the table's sort key, which rewrites it."""
    opened = lake.open().opened
    spec = replace(live_table(opened.entry, opened.state).spec, sort_keys=("rating",))
    rewrite_table(lake.store, lake.root, opened.entry.table_id, spec, on_progress=on_progress)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rewrite looks for claims at once."""
    monkeypatch.setattr(claims, "POLL", 0.001)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("to", ["other keys", "no rows"])
def test_a_rewrite_of_the_table_waits(to: str, table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with paused(table, lake, monkeypatch, "_written") as load:
        run = runs_of(lake.open().opened.state, "LOAD_COLUMNS")[0].run_id
        heard: list[str] = []

        def hear(now: Progress) -> None:
            heard.append(now.doing)
            if now.doing.startswith("waiting"):
                load.go()

        if to == "other keys":
            sorted_by_rating(lake, hear)
        else:
            opened = lake.open().opened
            reinitialise_table(lake.store, lake.root, opened.entry.table_id, allow_destroy=True, on_progress=hear)
    assert heard[0] == f"waiting, as run {run} of LOAD_COLUMNS writes label of fragments 0, 1, 2"
    assert lake.open().opened.state.dataset > 1
    assert len(values(table, "label")) == (30 if to == "other keys" else 0)
    labels(table)


@pytest.mark.usefixtures("quick")
def test_a_rewrite_does_not_wait_for_ever(table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "WAIT", 0.0)
    with paused(table, lake, monkeypatch, "_written") as load:
        before = lake.open().opened.state
        run = runs_of(before, "LOAD_COLUMNS")[0].run_id
        with pytest.raises(Conflict, match=f"run {run} of LOAD_COLUMNS writes label of fragments 0, 1, 2"):
            sorted_by_rating(lake)
        after = lake.open().opened.state
        assert (after.dataset, after.datasets, after.lance_version) == (1, before.datasets, before.lance_version)
        load.go()
    labels(table)


def test_a_rewrite_waits_for_no_run_whose_lease_is_over(
    table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with paused(table, lake, monkeypatch, "_written") as load:
        monkeypatch.setattr(claims, "fail_dead_runs", partial(fail_dead_runs, now=1 << 50))
        sorted_by_rating(lake)
        with pytest.raises(Conflict):
            load.go()
    assert lake.open().opened.state.dataset == 2
    assert runs_of(lake.open().opened.state, "LOAD_COLUMNS")[0].status == "FAILED"


@pytest.mark.usefixtures("quick")
def test_a_load_that_begins_during_a_rewrite_is_in_the_copy(
    table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is made again with its values; the copy that lacks them does not take the table's place."""
    path = str(lake.file(source(range(100))))
    loads: list[str] = []

    def load(point: str) -> None:
        if point == "tables.rewrite.committed" and not loads:
            loads.append(table.load_columns(path, "id", ["label"]))

    monkeypatch.setattr(rewrite, "reached", load)
    sorted_by_rating(lake)
    assert len(loads) == 1 and lake.open().opened.state.dataset > 1
    labels(table)


def test_a_restore_is_refused_meanwhile(table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    from deployer.services.registry import run_service
    from deployer.services.savepoints.savepoints import make_savepoint

    make_savepoint(lake.store, lake.root, [lake.open().opened.entry], "before", author="me", note="", expires_at=None)
    with paused(table, lake, monkeypatch, "_written") as load:
        with pytest.raises((Conflict, Refused), match="LOAD_COLUMNS"):
            run_service(lake.root, "flights", "RESTORE")
        load.go()
    labels(table)
