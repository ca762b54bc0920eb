"""Loads, COMPACT, CLUSTER, CLEAN and readers at once, the services killed again and again: nothing lost or doubled.

The long form (`--long`) goes on for minutes.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import pytest

from deployer.errors import Conflict
from deployer.services.kinds.compact import compact_table
from tests import forks
from tests.services.compact.test_compact import differences
from tests.services.mixed_worker import ROWS, numbers
from tests.tables.lakes import Lake

WORKER = str(Path(__file__).with_name("mixed_worker.py"))
REPOSITORY = Path(__file__).resolve().parents[2]
SERVICES = ("compact", "cluster", "clean")
KEYS = ("carrier", "flight")


class Worker:
    """One process; `lines` are what it has printed."""

    def __init__(self, folder: Path, root: str, what: str, number: int) -> None:
        self.out, self.what = folder / f"{what}-{number}.out", what
        self._err = folder / f"{what}-{number}.err"
        with self.out.open("w") as out, self._err.open("w") as err:
            self.process = forks.Popen(
                [sys.executable, WORKER, root, what, str(number)],
                env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
            )

    @property
    def lines(self) -> list[str]:
        return self.out.read_text().splitlines()

    @property
    def message(self) -> str:
        return self._err.read_text()

    def stop(self) -> None:
        """Lets it do what it is at, and waits for its end."""
        stdin: IO[bytes] | None = self.process.stdin
        assert stdin is not None
        stdin.close()
        assert self.process.wait(300) == 0, (self.what, self.message)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def worker(folder: Path, root: str, what: str, number: int) -> Iterator[Worker]:
    made = Worker(folder, root, what, number)
    try:
        yield made
    finally:
        made.kill()


def until(workers: list[Worker], so: Callable[[], bool]) -> None:
    """Waits for it; nobody has failed."""
    while not so():
        for each in workers:
            assert each.process.poll() is None, (each.what, each.message)
        time.sleep(0.02)


def compacted(lake: Lake) -> str:
    """The status of a run of COMPACT. The lease of one that was killed at the end is waited for."""
    try:
        return compact_table(lake.root, "flights").status
    except Conflict:
        time.sleep(0.1)
        return "CONFLICT"


@pytest.mark.parametrize(
    ("row_keys", "kills"),
    [
        pytest.param(KEYS, 2, id="keyed"),
        pytest.param(KEYS, 5, marks=pytest.mark.full, id="keyed-more"),
        pytest.param(KEYS, 150, marks=pytest.mark.slow, id="keyed-long"),
        pytest.param((), 150, marks=pytest.mark.slow, id="keyless-long"),
    ],
)
def test_nothing_is_lost_whoever_is_killed(tmp_path: Path, row_keys: tuple[str, ...], kills: int) -> None:
    seed = kills if kills < 150 else int.from_bytes(os.urandom(4))  # the long form tries new ones
    print("seed", seed)  # where it fails
    chance = random.Random(seed)  # noqa: S311 -- chooses what is killed
    lake = Lake(tmp_path)
    lake.table(row_keys=row_keys)
    numbered = iter(range(10_000))
    ended: list[Worker] = []
    with ExitStack() as stack:

        def start(what: str) -> Worker:
            return stack.enter_context(worker(tmp_path, lake.root, what, next(numbered)))

        loads, reader = [start("load"), start("load")], start("read")
        services = {what: start(what) for what in SERVICES}
        others = [*loads, reader]
        until(others, lambda: all(each.lines for each in (*others, *services.values())))
        for _ in range(kills):
            what = chance.choice(SERVICES)
            seen = len(services[what].lines)
            time.sleep(chance.uniform(0, 0.5))
            until([*others, *services.values()], lambda had=seen, of=services[what]: len(of.lines) > had)  # type: ignore[misc]
            time.sleep(chance.uniform(0, 0.2))  # into the next run
            services[what].kill()
            ended.append(services[what])
            services[what] = start(what)
        for each in (*loads, *services.values(), reader):
            each.stop()
    done = [int(job) for each in loads for job in each.lines]
    assert Counter(numbers(lake.open().scan().to_table())) == Counter(
        job * ROWS + row for job in done for row in range(ROWS)
    )
    assert int(reader.lines[-1]) > 0
    assert differences(lake.root) == []
    lines = Counter(line for each in (*ended, *services.values()) for line in each.lines)
    print(lines)
    assert lines["SUCCEEDED"] > 0, lines
    give_up = time.monotonic() + 300
    while (status := compacted(lake)) != "SKIPPED":
        assert status != "CONFLICT" or time.monotonic() < give_up
    assert differences(lake.root) == []
