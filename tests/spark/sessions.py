"""Programs with a Spark session, all of whose processes a test sees, stops and kills: Java's and Python's."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deployer.datasets.files.unreferenced_files import unneeded
from deployer.tables.maintenance.collect.garbage import collect_garbage
from tests.projects import REPOSITORY
from tests.tables.lakes import Lake

LONGEST = 500  #: seconds that a step of a program may take on a busy machine

Step = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a program. `leader` is the first one of its session of Linux's; `state` T is stopped."""

    pid: int
    parent: int
    leader: int
    state: str
    command: str

    @property
    def is_executor(self) -> bool:
        return "CoarseGrainedExecutorBackend" in self.command

    @property
    def is_python_worker(self) -> bool:
        return "pyspark.daemon" in self.command or "pyspark.worker" in self.command

    def send(self, number: signal.Signals) -> None:
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return


class Program:
    """A running program. It is the first process of a session of Linux's, which all of its processes stay in."""

    def __init__(self, lake: Lake, steps: Sequence[Step], *, cluster: bool, stops_at_failure: bool) -> None:
        folder = lake.folder / f"spark-{uuid.uuid4().hex[:8]}"
        folder.mkdir()
        plan: dict[str, object] = {"folder": str(folder), "root": lake.root, "steps": list(steps)}
        plan |= {"cluster": cluster, "stops_at_failure": stops_at_failure}
        (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        self.log = folder / "log"
        with self.log.open("wb") as sink:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.session_program", str(folder / "plan.json")],
                cwd=REPOSITORY,
                env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
                stdout=subprocess.PIPE,
                stderr=sink,
                start_new_session=True,
            )
        self.events: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._deadline = time.monotonic() + LONGEST
        self._reader.start()

    def _read(self) -> None:
        assert self._popen.stdout is not None
        for line in self._popen.stdout:
            self.events.append(json.loads(line))
            self._deadline = time.monotonic() + LONGEST

    @property
    def is_running(self) -> bool:
        return self._popen.poll() is None

    def has_begun(self, step: int) -> bool:
        return any(each["step"] == step for each in self.events)

    def processes(self) -> list[Process]:
        """All of the program's processes that run or are stopped."""
        return processes_of(self._popen.pid)

    def watch(self) -> Iterator[list[Process]]:
        """Yields the processes again and again until the program ends. Raises where a step takes too long."""
        while self.is_running:
            yield self.processes()
            if time.monotonic() > self._deadline:
                raise TimeoutError(f"{self.events}\n{self.text()[-5000:]}")
            time.sleep(0.02)

    def kill(self) -> None:
        """Kills all processes at once, so that none of them can act upon the end of another."""
        kill_session(self._popen.pid)
        self._popen.wait()
        self._reader.join()
        assert self._popen.stdout is not None
        self._popen.stdout.close()

    def text(self) -> str:
        """What Spark logged."""
        return self.log.read_text(encoding="utf-8", errors="replace")


@contextmanager
def program(
    lake: Lake, steps: Sequence[Step], *, cluster: bool = False, stops_at_failure: bool = False
) -> Iterator[Program]:
    """A running program, of which no process outlives the block."""
    running = Program(lake, steps, cluster=cluster, stops_at_failure=stops_at_failure)
    try:
        yield running
    finally:
        running.kill()


def run(lake: Lake, steps: Sequence[Step], *, cluster: bool = False) -> list[str]:
    """Runs the steps to their end; how each ended. A process that stops at a failpoint is continued."""
    with program(lake, steps, cluster=cluster) as running:
        for found in running.watch():
            for each in found:
                if each.state == "T":
                    each.send(signal.SIGCONT)
    return outcomes(running, len(steps))


def outcomes(ended: Program, steps: int) -> list[str]:
    """How each step ended: `ended`, or the text of its error."""
    found = {each["step"]: each["error"] or each["event"] for each in ended.events if each["event"] != "begins"}
    assert len(found) == steps, ended.text()[-5000:]
    return [found[number] for number in range(steps)]


def kill_driver_at_stop(lake: Lake, steps: Sequence[Step]) -> None:
    """Runs the steps until a process stops at a failpoint, and kills the whole program then."""
    with program(lake, steps) as running:
        for found in running.watch():
            if any(each.state == "T" for each in found):
                return
    raise AssertionError(f"no process stopped at the failpoint: {running.events} {running.text()[-3000:]}")


Victim = Callable[[Process, Sequence[Process]], Process | None]


def itself(stopped: Process, found: Sequence[Process]) -> Process:
    """The Python process that stopped."""
    return stopped


def its_executor(stopped: Process, found: Sequence[Process]) -> Process:
    """The executor, a process of Java, of which the stopped process runs a task."""
    by_pid = {each.pid: each for each in found}
    each = stopped
    while not each.is_executor:
        each = by_pid[each.parent]
    return each


def nobody(stopped: Process, found: Sequence[Process]) -> None:
    """Leaves the process stopped, as a task that takes forever."""


@dataclass(frozen=True, slots=True)
class Kill:
    """Whom to kill where a process stops in a step, and how often."""

    victim: Victim = itself
    times: int = 1


def kill_at_stops(lake: Lake, steps: Sequence[Step], kills: Mapping[int, Kill], *, cluster: bool = False) -> list[str]:
    """Runs the steps to their end, with the kills of each, by its number. Processes that stop besides are continued.
    Returns how the steps ended."""
    chosen, done = set[int](), Counter[int]()
    with program(lake, steps, cluster=cluster) as running:
        for found in running.watch():
            step = running.events[-1]["step"] if running.events else 0
            for each in found:
                if each.state != "T" or each.pid in chosen:
                    continue
                if step in kills and done[step] < kills[step].times:
                    done[step] += 1
                    chosen.add(each.pid)
                    if (one := kills[step].victim(each, found)) is not None:
                        one.send(signal.SIGKILL)
                else:
                    each.send(signal.SIGCONT)
    assert set(done) == set(kills), f"of {set(kills)}, processes stopped in {set(done)}: {running.text()[-3000:]}"
    return outcomes(running, len(steps))


def processes_of(leader: int) -> list[Process]:
    """The processes of a session of Linux's, by the process that began it, that run or are stopped."""
    return [each for each in _processes() if each.leader == leader and each.state not in "ZX"]


def kill_session(leader: int) -> None:
    """Kills all processes of a session of Linux's at once, so that none of them can act upon the end of another."""
    while found := processes_of(leader):
        for each in found:
            each.send(signal.SIGKILL)


def _processes() -> Iterator[Process]:
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        try:
            stat = (place / "stat").read_text(encoding="utf-8", errors="replace")
            command = (place / "cmdline").read_text(encoding="utf-8", errors="replace")
        except OSError:  # it ended
            continue
        state, parent, _, leader, *_ = stat[stat.rindex(")") + 2 :].split()
        yield Process(int(place.name), int(parent), int(leader), state, command.replace("\0", " "))


def source(lake: Lake, *files: pa.Table) -> str:
    """A folder of Parquet files, which a stream takes in their order, one a batch."""
    folder = lake.folder / f"source-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    for number, rows in enumerate(files):
        put(folder, number, rows)
    return str(folder)


def put(folder: Path, number: int, rows: pa.Table) -> None:
    """Puts a file for one more batch, whole at once."""
    pq.write_table(rows, folder / f".{number}")
    os.utime(folder / f".{number}", (1e9 + number, 1e9 + number))
    (folder / f".{number}").rename(folder / f"{number}.parquet")


def files_left(lake: Lake, name: str = "flights") -> set[str]:
    """Files of the table that no version has, as `table gc` finds them; here or on S3."""
    old, _ = unneeded(lake.open(name).opened.location, before=math.inf)
    return {each.path for unit in old for each in unit.files}


def collect_files(lake: Lake, name: str = "flights") -> None:
    """Runs `table gc` as it is once all files are old."""
    table_id = lake.open(name).opened.entry.table_id
    collect_garbage(lake.store, lake.root, table_id, now=time.time() + 365 * 86_400)
