"""Services in the report of a lake: how they stand, their runs on one axis of time, what the next ones would do."""

from __future__ import annotations

import datetime as dt
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from deployer.app.report_page.services import DRAWN, runs_drawn
from deployer.runs.records import queue_run, start_run
from deployer.services.triggers.health import depth, meets
from deployer.state import open_store
from deployer.state.model.entities import Dataset, File, TableState
from deployer.state.model.location import Location
from deployer.state.model.services import Figures, Run, RunStatus, ServiceKind
from tests.cli.conftest import Deployer
from tests.cli.test_review_report import HOSTILE, parsed
from tests.projects import table

NOON = round(dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC).timestamp() * 1000)
HOUR = 3_600_000
SERVICES = """services:
  compact: {trigger: {small_files: 3, schedule: "0 0 29 2 *"}}
  clean: {trigger: {commits: 100}, options: {older_than: 0h}}
  autosavepoint: {trigger_mode: ON_DEMAND}
"""


@pytest.fixture
def page(project: Path, deployer: Deployer) -> str:
    """Of flights, with four loads, one run that was skipped and a hostile one that failed; planes has no services."""
    (project / "specs" / "flights.yaml").write_text(table("flights", "delay: int32", more=SERVICES), encoding="utf-8")
    (project / "rows.csv").write_text("id,delay\n1,5\n2,6\n", encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    assert deployer("service", "run", "air.flights", "COMPACT").code == 0
    for _ in range(4):
        assert deployer("ingest", "air.flights", "rows.csv", "--no-services").code == 0
    with closing(open_store(str(project / "lakes" / "demo"))) as store:
        entry = store.instance().by_name("air.flights")
        assert entry is not None
        run = queue_run(store, entry.table_id, "CLEAN", cause=HOSTILE)
        start_run(store, entry.table_id, run.run_id).finish("FAILED", reason=f"no space left: {HOSTILE}")
    assert deployer("report", "--html", "lake.html").code == 0
    return (project / "lake.html").read_text(encoding="utf-8")


def test_services_stand_run_and_will_do(page: str) -> None:
    found = parsed(page)
    text = " ".join(" ".join(found.text).split())
    for said in (
        "Services 1 not well",
        "failed its last run failed at",
        f"no space left: {HOSTILE}",
        "Small files 4 of 4",
        "Deleted rows 0%",
        "Files that a file overlaps by key 3",
        "COMPACT due at 0 0 29 2 * UTC, or after 3 small files due: 4 small files",
        "4 files become about 1: 8 rows rewritten",
        "removes 4 versions:",
        "AUTOSAVEPOINT ok on demand",
        "makes a savepoint of the table as it is now",
        "Runs · 2",
    ):
        assert said in text, (said, text)
    assert found.tags.count("rect.run skipped") == found.tags.count("rect.run failed") == 1
    assert "<script" not in page
    assert found.links <= found.ids


def a_run(number: int, status: RunStatus = "SUCCEEDED", service: ServiceKind = "COMPACT") -> Run:
    """That began `number` hours before noon, and took half an hour if it is over."""
    at = NOON - number * HOUR
    is_over = status not in ("RUNNING", "QUEUED")
    figures = Figures(before={"files": 9, "rows": 5, "leaves": {}}, after={"files": 1, "rows": 5, "leaves": {"a": 1}})
    return Run(
        f"run-{number}",
        service,
        status,
        "schedule",
        "ann",
        None,
        at,
        at if status != "QUEUED" else None,
        at + HOUR // 2 if is_over else None,
        figures=figures,
    )


def test_runs_are_bars_on_one_axis() -> None:
    drawn = runs_drawn([a_run(1, "RUNNING"), a_run(2, "FAILED", "CLEAN"), a_run(10)], NOON)
    assert drawn is not None
    compact, clean = drawn.lanes
    assert [each.name for each in drawn.lanes] == ["COMPACT", "CLEAN"]
    running, oldest = compact.bars
    [failed] = clean.bars
    assert oldest.left == drawn.names and running.left + running.width == pytest.approx(99.5)
    assert oldest.left < failed.left < running.left and failed.top > running.top
    assert [each.kind for each in (running, oldest, failed)] == ["running", "succeeded", "failed"]
    assert running.width == pytest.approx(2 * oldest.width, rel=0.01)
    assert oldest.title == "COMPACT SUCCEEDED, 2026-01-31 02:00:00 UTC, 1,800.0 s (schedule): files 9 → 1"
    assert (drawn.since, drawn.until) == ("2026-01-31 02:00", "2026-01-31 12:00")
    assert runs_drawn([], NOON) is None


def test_seconds_are_told_where_minutes_tell_nothing() -> None:
    drawn = runs_drawn([a_run(0, "RUNNING")], NOON + 30_000)
    assert drawn is not None and (drawn.since, drawn.until) == ("2026-01-31 12:00:00", "2026-01-31 12:00:30")


@pytest.mark.parametrize("number", [1, DRAWN + 5, 100])
def test_all_bars_are_within_the_page(number: int) -> None:
    drawn = runs_drawn([a_run(each) for each in range(number)], NOON)
    assert drawn is not None and drawn.dropped == max(0, number - DRAWN)
    for bar in drawn.lanes[0].bars:
        assert drawn.names <= bar.left and bar.left + bar.width <= 100 and bar.width > 0


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        pytest.param([], 0, id="none"),
        pytest.param([("a", "c", "x"), ("d", "f", "x")], 0, id="apart"),
        pytest.param([("a", "d", "x"), ("d", "f", "x")], 1, id="one key in common"),
        pytest.param([("a", "z", "x"), ("b", "c", "x"), ("d", "e", "x")], (2 + 1 + 1) / 3, id="one over two"),
        pytest.param([("a", "z", "x"), ("a", "z", "y")], 0, id="of two leaves"),
    ],
)
def test_how_many_files_a_file_overlaps(ranges: list[tuple[str, str, str]], expected: float) -> None:
    files = [
        File(number, leaf, 10, 100, low.encode(), high.encode()) for number, (low, high, leaf) in enumerate(ranges)
    ]
    assert meets(files) == pytest.approx(expected)


@pytest.mark.parametrize(("rewritten", "expected"), [(None, (1.53, 200)), (150, (1.53, 200)), (300, None)])
def test_the_overlap_depth_is_gone_when_the_table_is_rewritten(
    rewritten: int | None, expected: tuple[float, int] | None
) -> None:
    run = Run("1", "CLUSTER", "SUCCEEDED", "on demand", "ann", None, 100, ended_at=200)
    run = replace(run, figures=Figures(after={"depth": 1.53}))
    datasets = () if rewritten is None else (Dataset(2, Location("a.lance"), "current", rewritten),)
    assert depth(TableState(runs={"1": run}, datasets=datasets)) == expected
