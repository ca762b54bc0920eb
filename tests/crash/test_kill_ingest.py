"""INGEST killed or stopped between any two side effects: in the end each row is there exactly once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from deployer.platform.system.clock import Clock
from deployer.runs.records import fail_dead_runs
from deployer.state import open_store
from deployer.tables.maintenance.verify.verify import verify
from tests import forks
from tests.services.ingest.landings import Landing

WORKER = str(Path(__file__).with_name("ingest_worker.py"))
DEPLOYER = Path(__file__).resolve().parents[2]
ALWAYS = (
    "services.ingest.before-load",
    "services.ingest.after-list",
    "services.ingest.after-commit",
    "services.ingest.after-set-aside",
)
APPEND = ("tables.commit.before-intent", "tables.commit.before-lance", "tables.commit.after-lance")
AFTER_APPEND = ("tables.commit.after-state",)
UPSERT = (
    "tables.rows.before-intent",
    "tables.rows.before-lance",
    "tables.rows.after-lance",
    "tables.rows.after-state",
)
POINTS = {"append": (*ALWAYS, *APPEND, *AFTER_APPEND), "upsert": (*ALWAYS, *UPSERT)}
EVERY = [(mode, point) for mode, points in POINTS.items() for point in points]


def environment(failpoint: str) -> dict[str, str]:
    return {**os.environ, "DEPLOYER_FAILPOINT": failpoint, "PYTHONPATH": str(DEPLOYER)}


def command(landing: Landing, mode: str) -> list[str]:
    options = [f"mode={mode}", "max_files=4", "ignore_extra=false"]
    return [sys.executable, WORKER, landing.lake.root, f"{landing.place}/*", *options]


def work(landing: Landing, mode: str, failpoint: str = "") -> bool:
    """Runs INGEST in a process of its own; returns whether it was killed. The next run need not wait for its lease."""
    done = forks.run(command(landing, mode), env=environment(failpoint), text=True)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    bury(landing)
    return bool(done.returncode)


def bury(landing: Landing) -> None:
    """Ends runs as if their leases were over."""
    with closing(open_store(landing.lake.root)) as store:
        [table_id] = store.instance().tables
        fail_dead_runs(store, table_id, Clock().now() + 10**9)


@dataclass
class Model:
    """What is at the place, and what the table is to hold once a run has ended."""

    landing: Landing
    mode: str
    rng: random.Random
    ids: Iterator[int] = field(default_factory=lambda: iter(range(10**9)))
    good: dict[str, list[tuple[int, str]]] = field(default_factory=dict)  #: rows by file
    bad: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    expected: list[tuple[int, str]] = field(default_factory=list)
    moment: int = 1

    def _land(self, name: str, rows: list[tuple[int, str]]) -> None:
        text = "id,value\n" + "".join(f"{number},{value}\n" for number, value in rows)
        path = self.landing.write(f".{name}", text.encode())
        self.moment += 1
        os.utime(path, ns=(0, self.moment * 10**9))  # the order of files is the one in which they came
        path.rename(self.landing.place / name)

    def new(self) -> None:
        name = f"f{next(self.ids)}.csv"
        numbers = [next(self.ids) for _ in range(self.rng.randint(0, 5))]
        if self.mode == "upsert" and self.expected and self.rng.random() < 0.5:
            numbers.append(self.rng.choice(self.expected)[0])
        rows = [(number, name) for number in dict.fromkeys(numbers)]
        self._land(name, rows)
        self.good[name] = rows
        replaced = {number for number, _ in rows}
        self.expected = [row for row in self.expected if row[0] not in replaced] + rows

    def new_bad(self) -> None:
        name = f"b{next(self.ids)}.csv"
        self.landing.write(name, self.rng.choice([b"", b"id,value\nx,y\n", b"id\n1\n", b"id,value,z\n1,2,3\n"]))
        self.bad.add(name)

    def fix(self) -> None:
        if self.bad:
            name = self.rng.choice(sorted(self.bad))
            self.bad.remove(name)
            rows = [(next(self.ids), name)]
            self._land(name, rows)
            self.good[name] = rows
            self.expected += rows

    def change(self) -> None:
        """Changes a file that a run has loaded: what it holds now does not count."""
        loaded = [name for name, each in self.landing.files().items() if each.status == "LOADED"]
        if loaded:
            name = self.rng.choice(sorted(loaded))
            self._land(name, [(next(self.ids), "changed")])
            self.changed.add(name)

    def step(self) -> None:
        for _ in range(self.rng.randint(1, 6)):
            self.rng.choice([self.new, self.new, self.new, self.new_bad, self.fix, self.change])()

    def check(self) -> None:
        assert self.landing.rows() == sorted(self.expected)
        by_status: Mapping[str, set[str]] = {
            status: {name for name, each in self.landing.files().items() if each.status == status}
            for status in ("LOADED", "SET ASIDE", "CHANGED")
        }
        assert by_status["SET ASIDE"] == self.bad and by_status["CHANGED"] == self.changed
        assert by_status["LOADED"] == self.good.keys() - self.changed
        with closing(open_store(self.landing.lake.root)) as store:
            differences = [
                str(one) for each in verify(store, self.landing.lake.root, full=True) for one in each.differences
            ]
        assert differences == []


def model(folder: Path, mode: str, seed: int) -> Model:
    return Model(Landing(folder, ("id",)), mode, random.Random(seed))  # noqa: S311 (the same each time)


@pytest.mark.parametrize(("mode", "point"), EVERY, ids=[f"{mode}-{point}" for mode, point in EVERY])
def test_a_run_that_is_killed_loads_each_row_once(tmp_path: Path, mode: str, point: str) -> None:
    found = model(tmp_path, mode, 7)
    for _ in range(6):
        found.new()
    found.new_bad()
    assert work(found.landing, mode, point)
    found.new()
    work(found.landing, mode)
    found.check()


@pytest.mark.full
@pytest.mark.thinned(3)
@pytest.mark.parametrize("mode", POINTS)
@pytest.mark.parametrize("seed", range(6))
def test_random_files_and_kills_beside_a_model(tmp_path: Path, mode: str, seed: int) -> None:
    found = model(tmp_path, mode, seed)
    kills = 0
    for _ in range(10):
        found.step()
        point = found.rng.choice([*POINTS[mode], ""])
        kills += work(found.landing, mode, f"{point}@{found.rng.randint(1, 2)}" if point else "")
        if found.rng.random() < 0.5:
            work(found.landing, mode)
            found.check()
    work(found.landing, mode)
    found.check()
    assert kills


@pytest.mark.full
@pytest.mark.parametrize(
    ("mode", "point"),
    [
        *(("append", point) for point in ("services.ingest.after-list", *APPEND)),
        *(("upsert", point) for point in ("services.ingest.after-list", *UPSERT[:3])),
    ],
)
def test_a_run_that_was_taken_for_dead_and_goes_on_loads_nothing_twice(tmp_path: Path, mode: str, point: str) -> None:
    found = model(tmp_path, mode, 3)
    for _ in range(6):
        found.new()
    stopped = subprocess.Popen(
        command(found.landing, mode), env=environment(f"{point}=stop"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        wait_until_stopped(stopped.pid)
        bury(found.landing)
        found.new()
        second = subprocess.Popen(
            command(found.landing, mode), env=environment(""), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        if point in ("services.ingest.after-list", APPEND[0], UPSERT[0], UPSERT[1]):
            assert second.wait(300) == 0  # nothing is locked
        stopped.send_signal(signal.SIGCONT)
        stopped.communicate(timeout=300)
        second.communicate(timeout=300)
    finally:
        stopped.kill()
        stopped.wait()
    bury(found.landing)
    work(found.landing, mode)
    found.check()


def wait_until_stopped(pid: int) -> None:
    until = time.monotonic() + 300
    while time.monotonic() < until:
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T":
            return
        time.sleep(0.02)
    raise AssertionError("it was not stopped")
