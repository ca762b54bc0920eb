"""What schedules ask for, and what is overdue: tables of states and clocks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace

import pytest

from deployer.services.triggers.due import due_in, retry_at, scheduled_run_id
from deployer.services.triggers.status import ServiceStatus, service_statuses
from deployer.specs.values.schedules import firing_times, last_firing
from deployer.state.model.entities import File, Files, Partition, TableProperties, TableState
from deployer.state.model.services import Figures, Run, RunStatus, Service

MINUTE, HOUR = 60_000, 3_600_000
THREE = round(dt.datetime(2026, 1, 31, 3, tzinfo=dt.UTC).timestamp() * 1000)
DAY = 24 * HOUR
CLEAN = Service("CLEAN", "AUTOMATIC", {"schedule": "0 3 * * *"}, since=1)
COMPACT = Service("COMPACT", "AUTOMATIC", {"small_files": 2, "deleted_share": 0.5}, since=1)
FIRED = scheduled_run_id("CLEAN", "2026-01-31T03:00:00Z")


def run(status: RunStatus, at: int, *, run_id: str = "", service: Service = CLEAN, reason: str = "") -> Run:
    """One that was queued at that time and, if it is over, ended a minute later."""
    is_over = status not in ("QUEUED", "RUNNING")
    version = 4 if status in ("SUCCEEDED", "SKIPPED") else None
    return Run(
        run_id or f"run-{at}",
        service.kind,
        status,
        "schedule",
        "ann",
        None,
        at,
        None if status == "QUEUED" else at,
        at + MINUTE if is_over else None,
        lease_until=at + MINUTE if status == "RUNNING" else None,
        figures=Figures(lance_version_after=version),
        reason=reason,
    )


def state(*runs: Run, service: Service = CLEAN, files: int = 0, version: int = 5, online: bool = True) -> TableState:
    return TableState(
        5,
        "t",
        TableProperties(online=online),
        lance_version=version,
        partitions={"root": Partition("root", None)},
        files=Files(File(number, "root", 10, 100, None, None) for number in range(files)),
        services={service.kind: service},
        runs={each.run_id: each for each in runs},
    )


def none_deleted() -> dict[int, int]:
    raise AssertionError("the dataset is not to be opened")


@pytest.mark.parametrize(
    ("runs", "at", "due"),
    [
        pytest.param((), -1, "clean-20260130T030000Z", id="the day before, never run"),
        pytest.param((run("SUCCEEDED", THREE - DAY),), -1, "", id="run the day before"),
        pytest.param((run("SUCCEEDED", THREE - DAY),), 0, FIRED, id="at the very moment"),
        pytest.param((run("SUCCEEDED", THREE - DAY),), 5 * HOUR, FIRED, id="missed for hours"),
        pytest.param((run("SUCCEEDED", THREE + 5),), 5 * HOUR, "", id="done"),
        pytest.param((run("SKIPPED", THREE + 5),), 5 * HOUR, "", id="nothing to do"),
        pytest.param((run("SUCCEEDED", THREE - 5, run_id=FIRED),), HOUR, "", id="done by a clock that is slow"),
        pytest.param((run("RUNNING", THREE + 5),), 5 * HOUR, "", id="running"),
        pytest.param((run("FAILED", THREE + 5),), MINUTE, "", id="failed just now"),
        pytest.param((run("FAILED", THREE + 5),), HOUR, "another", id="failed, and tried again"),
        pytest.param((run("CANCELLED", THREE + 5, reason="interrupted"),), HOUR, "another", id="stopped"),
        pytest.param((run("CANCELLED", THREE + 5, reason="the run was cancelled"),), 9 * HOUR, "", id="cancelled"),
    ],
)
def test_a_schedule_asks_once_for_each_of_its_times(runs: Sequence[Run], at: int, due: str) -> None:
    found = [each.run_id for each in due_in(state(*runs), none_deleted, THREE + at)]
    assert found == ([] if not due else found if due == "another" and found[0] != FIRED else [due])
    assert due_in(state(*runs), none_deleted) == []  # a load does not look at schedules


def test_who_looks_at_the_same_state_asks_for_the_same_run() -> None:
    failed = state(run("FAILED", THREE + 5))
    [first], [second] = due_in(failed, none_deleted, THREE + HOUR), due_in(failed, none_deleted, THREE + 2 * HOUR)
    assert first == second
    assert due_in(replace(failed, table_id="u"), none_deleted, THREE + HOUR) != [first]


def test_failures_are_tried_again_later_and_later() -> None:
    runs = [run("FAILED", THREE + number * DAY) for number in range(7)]
    waits = [
        (retry_at(state(*runs[:number]), "CLEAN") - (runs[number - 1].ended_at or 0)) // MINUTE
        for number in range(1, 8)
    ]
    assert waits == [1, 5, 30, 180, 360, 360, 360]
    assert retry_at(state(runs[0], run("SUCCEEDED", THREE + DAY)), "CLEAN") == 0


def one(now: TableState, at: int, before: TableState | None = None) -> ServiceStatus:
    [found] = service_statuses(now, at, dict, lambda: before)
    return found


@pytest.mark.parametrize(
    ("now", "at", "message"),
    [
        pytest.param(state(), 2 * HOUR, "required a run at 2026-01-31 03:00:00 UTC, and none started", id="never"),
        pytest.param(
            state(run("SUCCEEDED", THREE - DAY)), 2 * HOUR, "last run was queued at 2026-01-30", id="not since"
        ),
        pytest.param(state(run("SUCCEEDED", THREE - DAY)), HOUR - 1, "", id="in its grace"),
        pytest.param(state(run("SUCCEEDED", THREE + HOUR)), 5 * HOUR, "", id="late but done"),
        pytest.param(state(run("FAILED", THREE + 5)), 5 * HOUR, "", id="failed"),
        pytest.param(state(service=replace(CLEAN, paused=True)), 5 * HOUR, "", id="paused"),
        pytest.param(state(service=replace(CLEAN, since=THREE + 1)), 5 * HOUR, "", id="attached since"),
        pytest.param(state(online=False), 5 * HOUR, "", id="offline"),
        pytest.param(state(service=Service("CLEAN")), 5 * HOUR, "", id="on demand"),
        pytest.param(state(run("QUEUED", THREE)), HOUR, "", id="queued"),
        pytest.param(state(run("QUEUED", THREE)), 2 * HOUR, "and no agent starts it", id="queued for long"),
        pytest.param(state(run("RUNNING", THREE)), 3 * HOUR, "expired at 2026-01-31 03:01:00", id="dead"),
    ],
)
def test_what_did_not_run_is_overdue(now: TableState, at: int, message: str) -> None:
    found = one(now, THREE + at)
    assert bool(found.overdue) is bool(message) and message in found.overdue
    assert (found.label == "OVERDUE") is bool(message)


SMALL = state(run("SUCCEEDED", THREE, service=COMPACT), service=COMPACT, files=3)


@pytest.mark.parametrize(
    ("now", "before", "is_overdue"),
    [
        pytest.param(SMALL, SMALL, True, id="held a grace ago"),
        pytest.param(SMALL, replace(SMALL, files=Files()), False, id="not yet a grace ago"),
        pytest.param(SMALL, replace(SMALL, runs={}), False, id="has run in between"),
        pytest.param(SMALL, None, False, id="not known"),
        pytest.param(replace(SMALL, lance_version=4), SMALL, False, id="nothing was written since"),
    ],
)
def test_a_condition_that_held_a_grace_ago_is_overdue(
    now: TableState, before: TableState | None, is_overdue: bool
) -> None:
    found = one(now, THREE + 5 * HOUR, before)
    assert bool(found.overdue) is is_overdue
    if is_overdue:
        assert "3 small files" in found.overdue


def test_a_failure_is_told_with_its_reason() -> None:
    found = one(state(run("FAILED", THREE, reason="the disk is full")), THREE + HOUR)
    assert "the disk is full" in found.failed and not found.is_well
    assert one(state(run("FAILED", THREE), run("SUCCEEDED", THREE + HOUR)), THREE + 2 * HOUR).is_well


@pytest.mark.parametrize("expression", ["30 2 * * *", "*/15 * * * *", "15 */2 * * *", "0 3 * * *"])
def test_looking_back_and_forward_agree_while_clocks_change(expression: str) -> None:
    """Berlin's clocks go from 2 to 3 on 28 March 2027, and from 3 to 2 on 31 October."""
    for start in (dt.datetime(2027, 3, 28, tzinfo=dt.UTC), dt.datetime(2027, 10, 31, tzinfo=dt.UTC)):
        times = [start + dt.timedelta(minutes=5 * number, seconds=7 * (number % 3)) for number in range(50)]
        for now in times:
            last = last_firing(expression, "Europe/Berlin", now)
            following = next(firing_times(expression, "Europe/Berlin", now))
            assert last is not None and last.timestamp() <= now.timestamp() < following.timestamp()
            assert next(firing_times(expression, "Europe/Berlin", last)).timestamp() == following.timestamp()
