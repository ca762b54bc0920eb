"""How far work is: lines now and then where there is no terminal, a bar on one, JSON documents for machines."""

from __future__ import annotations

import json
import sys
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from deployer.cli.console import progress_display as meter
from deployer.cli.console.drawing import Drawing
from deployer.cli.console.progress_display import INTERVAL, Meter
from deployer.cli.console.step_view import StepView
from deployer.engine import Diagnostic, Event, StepFailed, StepFinished, StepProgress, StepStarted
from deployer.platform.system.progress import Progress, describe_progress
from tests import forks
from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, make_project, table

URN = "urn:pulumi:dev::demo::lake:index:Table::air.t"
LEAVES = 16


class Clock:
    """A clock that goes where it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("told", "words"),
    [
        pytest.param(("writing", 1_200, 3_400, "rows"), "writing: 1,200 of 3,400 rows (35%)", id="part"),
        pytest.param(("writing", 3_400, 3_400, "rows"), "writing: 3,400 of 3,400 rows", id="whole"),
        pytest.param(("reading", 0, 3_400, "rows"), "reading: 0 of 3,400 rows (0%)", id="nothing yet"),
        pytest.param(("reading", 12, None, "rows"), "reading: 12 rows", id="of how many is unknown"),
        pytest.param(("copying 3 of 4", 0, None, ""), "copying 3 of 4", id="words alone"),
    ],
)
def test_in_words(told: tuple[str, int, int | None, str], words: str) -> None:
    assert describe_progress(*told) == words


def follow(view: StepView, clock: Clock) -> None:
    """A step that lasts four intervals and tells ten times in each."""
    view(StepStarted(URN, "update"))
    for tenth in range(41):
        clock.now = tenth * INTERVAL / 10
        view(StepProgress(URN, "writing", tenth, 40, "rows"))
    view(StepFinished(URN, "update", clock.now))
    clock.now += INTERVAL
    view(StepProgress(URN, "writing", 40, 40, "rows"))  # too late: it has ended


def test_lines_come_at_intervals_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with StepView(as_json=False, clock=clock) as view:
        follow(view, clock)
    assert capsys.readouterr().err.splitlines() == [
        "  updating table/air.t: writing: 10 of 40 rows (25%), 1m 0s left",
        "  updating table/air.t: writing: 20 of 40 rows (50%), 40s left",
        "  updating table/air.t: writing: 30 of 40 rows (75%), 20s left",
        "  updating table/air.t: writing: 40 of 40 rows",
        "  updated table/air.t (80.00 s)",
    ]


def test_short_work_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with StepView(as_json=False, clock=Clock()) as view:
        view(StepStarted(URN, "update"))
        view(StepProgress(URN, "writing", 1, 2, "rows"))
    assert capsys.readouterr().err == ""


def test_machines_get_a_document_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    events: list[Event] = [
        StepStarted(URN, "same"),
        StepFailed(URN, "update", "no disk"),
        Diagnostic("", "warning", "slow"),
        Diagnostic("", "info", "nobody reads this"),
    ]
    with StepView(as_json=True, clock=clock) as view:
        follow(view, clock)
        for event in events:
            view(event)
    documents = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert documents[:2] == [
        {"event": "started", "address": "table/air.t", "op": "update"},
        {"event": "progress", "address": "table/air.t", "doing": "writing", "done": 10, "total": 40, "unit": "rows"},
    ]
    assert documents[-3:] == [
        {"event": "finished", "address": "table/air.t", "op": "update", "seconds": 80.0},
        {"event": "failed", "address": "table/air.t", "op": "update", "message": "no disk"},
        {"event": "message", "address": None, "severity": "warning", "message": "slow"},
    ]
    assert len(documents) == 8


def test_a_terminal_shows_a_bar_for_each_piece_of_work() -> None:
    drawn = Meter(as_json=False, clock=Clock())
    for number in range(12):
        drawn.begin(f"t{number}", f"updating t{number}")
    drawn.report("t0", Progress("writing", 30, 40))
    drawn.end("t1")
    console = Console(width=120, force_terminal=True, color_system=None, record=True, file=StringIO())
    console.print(Drawing(console, drawn._copied, Clock()).render())
    lines = [line.strip() for line in console.export_text().splitlines()]
    assert "updating t0" in lines[0] and "━" in lines[0] and "writing: 30 of 40 rows (75%)" in lines[0]
    assert [line.split()[-1] for line in lines[1:10]] == ["t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "t10"]
    assert lines[10] == "and 1 more"


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deployer: Deployer) -> Path:
    """A project with one table of 1,600 rows in one leaf, which the specs now want in sixteen."""
    folder = make_project(tmp_path / "project", {"demo.yaml": INSTANCE, "t.yaml": table("t", "value: string")})
    monkeypatch.chdir(folder)
    assert deployer("up", "--yes").code == 0
    rows = pa.table({"id": range(100 * LEAVES), "value": ["x"] * 100 * LEAVES})
    pq.write_table(rows, folder / "rows.parquet")
    assert deployer("ingest", "air.t", "rows.parquet").code == 0
    points = ", ".join(str(100 * leaf) for leaf in range(1, LEAVES))
    spec = table("t", "value: string", more=f"partitions: {{split_points: [{points}]}}\n")
    (folder / "specs" / "t.yaml").write_text(spec, encoding="utf-8")
    return folder


def test_a_rewrite_tells_rows_of_rows(loaded: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter, "INTERVAL", 0.0)
    ran = deployer("up", "--yes")
    assert ran.code == 0
    assert "  updating table/air.t: writing: 800 of 1,600 rows (50%)\n" in ran.err
    assert "  updating table/air.t: writing: 1,600 of 1,600 rows\n" in ran.err


CHANGED: dict[str, tuple[str, str]] = {
    "index": (table("t", "value: string", more="indexes: [{columns: [value], kind: btree}]\n"), "building index value"),
    "column": (
        table("t", "value: string").replace("'string'", "binary, using: value"),
        "writing column value: 0 of 1,600 rows (0%)",
    ),
}


@pytest.mark.parametrize("name", CHANGED)
def test_other_long_work_tells_too(
    name: str, loaded: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter, "INTERVAL", 0.0)
    spec, told = CHANGED[name]
    (loaded / "specs" / "t.yaml").write_text(spec, encoding="utf-8")
    ran = deployer("up", "--yes")
    assert ran.code == 0, ran.err
    assert f"  updating table/air.t: {told}" in ran.err


#: `deployer up` that gets Ctrl-C when it has written its second range, and goes on when that was taken.
INTERRUPTED = """
import os, signal, time
from deployer.__main__ import main
from deployer.tables.evolution.rewrite.progress import RangeLedger
before, record = signal.getsignal(signal.SIGINT), RangeLedger.record
def recorded(self, number, written):
    record(self, number, written)
    if number == 1:
        os.kill(os.getpid(), signal.SIGINT)
        while signal.getsignal(signal.SIGINT) is not before:
            time.sleep(0.001)
RangeLedger.record = recorded
main()
"""


def test_ctrl_c_stops_a_rewrite_in_words_and_the_next_up_goes_on_with_what_is_left(
    loaded: Path, deployer: Deployer
) -> None:
    command = [sys.executable, "-c", INTERRUPTED, "up", "--yes"]
    ran = forks.run(command, text=True)
    said = ran.stderr
    assert ran.returncode == 130, said
    assert "Stopping. Running steps finish or pause" in said
    assert "table/air.t: stopped while its rows are being copied; the table is unchanged" in said
    assert "resumes with the rows that are left" in said
    assert "Traceback" not in said
    [notes] = (loaded / "lakes").rglob("_rewrite/round-1")
    before = {note: note.stat().st_mtime_ns for note in notes.glob("[0-9]*.json")}
    assert len(before) == 2
    data = {file: file.stat().st_mtime_ns for file in notes.parent.parent.glob("data/*.lance")}
    assert deployer("up", "--yes").code == 0
    assert {file: file.stat().st_mtime_ns for file in data} == data  # none of them was written again
    assert deployer("preview", "--exit-code").code == 0


@pytest.mark.parametrize(
    ("done", "at", "left"),
    [
        pytest.param(0, 100, "", id="nothing is done yet"),
        pytest.param(10, 1, "", id="too early to say"),
        pytest.param(10, 10, "30s left", id="seconds"),
        pytest.param(10, 61, "3m 3s left", id="minutes"),
        pytest.param(10, 3600, "3h 0m left", id="hours"),
        pytest.param(40, 10, "", id="all is done"),
    ],
)
def test_the_time_left_is_that_of_the_pace_so_far(
    capsys: pytest.CaptureFixture[str], done: int, at: float, left: str
) -> None:
    clock = Clock()
    with Meter(as_json=False, clock=clock) as shown:
        shown.begin("it", "writing it")
        shown.report("it", Progress("writing", 0, 40))
        clock.now = at
        piece = shown._pieces["it"]
        piece.done = done
        assert piece.time_left(at) == left


def test_another_phase_begins_its_own_pace() -> None:
    clock = Clock()
    with Meter(as_json=False, clock=clock) as shown:
        shown.begin("it", "it")
        for second, doing, done in ((0, "reading", 0), (50, "reading", 40), (50, "writing", 10), (60, "writing", 20)):
            clock.now = second
            shown.report("it", Progress(doing, done, 40))
        assert shown._pieces["it"].time_left(clock.now) == "20s left"
