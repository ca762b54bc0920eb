"""Jobs in threads of their own: described, followed and cancelled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from deployer.columns.job_list import job_of
from deployer.errors import InvalidInput, NotFound
from deployer.functions import udf
from deployer.runs.runner import RunCancelled
from deployer.table import Table
from tests.columns.backfill.functions import scalar, strict, tenfold
from tests.columns.rows import values


class Gate:
    """A function that waits: `begun` is set by its first call, and `over` lets it return."""

    def __init__(self) -> None:
        self.begun, self.over = threading.Event(), threading.Event()

        @udf(data_type=pa.float64(), version="1")
        def waiting(rating: float) -> float:
            self.begun.set()
            assert self.over.wait(300)
            return rating * 2 + 1

        self.udf = waiting


@pytest.fixture
def gate() -> Iterator[Gate]:
    found = Gate()
    yield found
    found.over.set()


def test_a_job_is_described_while_it_runs_and_after(table: Table, gate: Gate) -> None:
    job = table.backfill_async("score", udf=gate.udf, job_id="monday")
    assert gate.begun.wait(300)
    now = job.describe()
    assert (job.status, now.columns, now.kind, now.is_over) == ("RUNNING", ("score",), "BACKFILL", False)
    assert not job.done() and [each.job_id for each in table.list_jobs()] == ["monday"]
    gate.over.set()
    assert job.result(60).rows == 30 and job.status == "DONE"
    assert [each.status for each in job.follow()] == ["DONE"]
    then = table.get_job("monday")
    assert (then.rows, then.errors, then.runs, then.is_over, then.seconds_left) == (30, 0, 1, True, None)
    with pytest.raises(NotFound, match="there is no job 'tuesday'"):
        table.get_job("tuesday")


def test_arguments_without_a_meaning_are_accepted_and_reported_once(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deployer.columns.jobs._reported", set())
    given: dict[str, Any] = {
        "intra_applier_concurrency": 4, "_enable_job_tracker_saves": False, "task_shuffle_diversity": 8,
    }  # fmt: skip
    with pytest.warns(UserWarning, match="intra_applier_concurrency, _enable_job_tracker_saves, task_shuffle") as seen:
        assert table.backfill("score", **given).rows == 30
        table.backfill("score", where="1=1", **given)
        table.backfill_async("score", **given).result(60)
    assert len(seen) == 1


def test_a_job_is_followed_to_its_end(table: Table, gate: Gate) -> None:
    job = table.backfill_async("score", udf=gate.udf)
    seen = []
    for each in job.follow():
        seen.append(each.status)
        gate.over.set()
    assert seen[0] in ("RUNNING", "DONE") and seen[-1] == "DONE"


def test_a_job_is_cancelled_and_resumed(table: Table, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deployer.runs.records.LOOK", 0.001)
    job = table.backfill_async("score", udf=gate.udf, job_id="monday", commit_granularity=1, concurrency=1)
    assert gate.begun.wait(300) and table.cancel_job("monday")
    gate.over.set()
    with pytest.raises(RunCancelled):
        job.result(60)
    assert job.status == "CANCELLED" and not job.cancel()
    table.backfill("score", udf=gate.udf, job_id="monday")
    assert values(table, "score") == {i: i * 2 + 1.0 for i in range(30)}
    assert (table.get_job("monday").status, table.get_job("monday").runs) == ("DONE", 2)


def test_the_id_of_a_job_that_was_done_otherwise(table: Table) -> None:
    table.backfill("score", udf=tenfold, job_id="monday", where="id > 1")
    before = table._newest().state
    cases: list[tuple[dict[str, Any], str]] = [
        ({"udf": scalar, "where": "id > 1"}, "another function"),
        ({"udf": tenfold}, "another condition"),
        ({"udf": tenfold, "where": "id > 1", "num_frags": 1}, "another num_frags"),
    ]
    for given, words in cases:
        with pytest.raises(InvalidInput, match=f"job monday was done with {words}"):
            table.backfill("score", job_id="monday", **given)
    assert table.backfill("score", udf=tenfold, job_id="monday", where="id > 1").already_done
    assert table._newest().state == before


def test_a_job_that_fails_says_why(table: Table) -> None:
    job = table.backfill_async("score", udf=strict, job_id="monday")
    assert "thirteen" in str(job.exception(60))
    found = table.get_job("monday")
    assert found.status == job.status == "FAILED" and "the row id 13" in found.reason


def test_rate_and_time_left(table: Table) -> None:
    table.backfill("score", udf=scalar, job_id="monday")
    opened = table._newest()
    [run] = opened.state.runs.values()
    assert run.started_at is not None
    half = replace(run, status="RUNNING", ended_at=None, progress={"doing": "writing score", "done": 10, "total": 30})
    state = replace(opened.state, runs={run.run_id: half})
    job = job_of(opened.entry, state, "monday", now=run.started_at / 1000 + 5)
    assert (job.rows_per_second, job.seconds_left, job.doing) == (2.0, 10.0, "writing score")
