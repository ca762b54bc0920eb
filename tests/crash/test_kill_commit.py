"""A writer killed between two side effects of a commit: rows are those acknowledged, or the one in flight, whole."""

from __future__ import annotations

import os
import re
import signal
import sys
from contextlib import closing
from pathlib import Path

import lance
import pytest

from deployer.state import open_store
from deployer.tables.maintenance.verify.verify import repair, verify
from tests import forks
from tests.tables.lakes import Lake, flights

WORKER = str(Path(__file__).with_name("append_worker.py"))
DEPLOYER = Path(__file__).resolve().parents[2] / "deployer"
LOADS, ROWS = 6, 10

#: Every point that these commits pass, with a pass at which it is reached well within the run.
POINTS = {
    "tables.commit.before-intent": 4,
    "tables.commit.before-lance": 4,
    "tables.commit.after-lance": 4,
    "tables.commit.after-state": 4,
    "tables.schema.before-lance": 1,
    "tables.schema.after-lance": 1,
    "tables.schema.after-state": 1,
    "commit:before-put": 6,
    "commit:after-put": 7,
    "snapshot:before-part": 2,
    "snapshot:before-pointer": 1,
    "snapshot:after-pointer": 2,
    "retention:before-truncate": 1,
    "retention:before-delete": 1,
}
EVERY_PASS = [(point, number) for point in POINTS for number in range(1, LOADS * 2)]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    lake.table()
    for number in range(LOADS):
        lake.file(flights(ROWS, ROWS * number), f"load-{number}.parquet")
    return lake


def work(lake: Lake, failpoint: str = "") -> tuple[int, list[str]]:
    files = [str(lake.folder / f"load-{number}.parquet") for number in range(LOADS)]
    done = forks.run(
        [sys.executable, WORKER, lake.root, *files],
        env={**os.environ, "DEPLOYER_FAILPOINT": failpoint, "PYTHONPATH": str(DEPLOYER.parent)},
        text=True,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode, done.stdout.split()


def differences(lake: Lake) -> list[str]:
    with closing(open_store(lake.root)) as store:
        return [str(one) for each in verify(store, lake.root, full=True) for one in each.differences]


def loaded(lake: Lake) -> list[int]:
    """How many rows of each load are there, by what Lance holds: the state store takes no part in this."""
    dataset = lance.dataset(lake.open().opened.location)
    keys = dataset.to_table(columns=["at"])["at"].cast("int64").to_pylist()
    return [sum((key - 1_367_409_600_000_000) // ROWS == number for key in keys) for number in range(LOADS)]


def check_after(lake: Lake, point: str, number: int, *, must_die: bool) -> None:
    code, said = work(lake, f"{point}@{number}")
    assert code == -signal.SIGKILL or not must_die, said
    acknowledged = [each for each in said if each != "column"]
    with closing(open_store(lake.root)) as store:
        steps = list(repair(store, lake.root, now=1 << 50, grace=0))
    assert not [step for step in steps if step.left]
    assert differences(lake) == []
    rows = loaded(lake)
    whole = [ROWS] * len(acknowledged)
    assert rows[: len(whole)] == whole
    assert rows[len(whole) :] in ([0] * (LOADS - len(whole)), [ROWS] + [0] * (LOADS - len(whole) - 1))
    state = lake.open().opened.state
    assert [job for job in state.jobs if job.startswith("load-")] == [f"load-{i}" for i in range(sum(rows) // ROWS)]
    assert not state.intents
    assert work(lake) == (0, [*(f"load-{i}" for i in range(3)), "column", *(f"load-{i}" for i in range(3, LOADS))])
    assert loaded(lake) == [ROWS] * LOADS
    assert differences(lake) == []
    assert "note" in lake.open().schema.names


@pytest.mark.parametrize("point", POINTS)
def test_a_commit_that_is_killed_is_whole_or_not_there(lake: Lake, point: str) -> None:
    check_after(lake, point, POINTS[point], must_die=True)


@pytest.mark.slow
@pytest.mark.parametrize(("point", "number"), EVERY_PASS, ids=[f"{point}-{number}" for point, number in EVERY_PASS])
def test_a_commit_that_is_killed_at_any_pass_is_whole_or_not_there(lake: Lake, point: str, number: int) -> None:
    check_after(lake, point, number, must_die=False)


def test_every_point_in_the_code_is_known_to_a_test() -> None:
    named = {
        name
        for file in DEPLOYER.rglob("*.py")
        for name in re.findall(r'\breached\("([^"]+)"\)', file.read_text(encoding="utf-8"))
    }
    tests = "".join(file.read_text(encoding="utf-8") for file in (DEPLOYER.parent / "tests").rglob("*.py"))
    assert POINTS.keys() <= named
    assert {name for name in named if not re.search(rf'"{re.escape(name)}["@=]', tests)} == set()
