"""Jobs and streams of Spark, with processes killed at random: what is in the tables equals a model of what was written.

Each seed is a list of writes and batches. A session runs what is left of it, until a job fails or all is done; in each
session the driver with everything, a Python process, or an executor is killed at a random moment. The long form tries
new seeds.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Sequence

import pytest

from tests.services.test_due import attach
from tests.spark.sessions import Process, Program, Step, collect_files, files_left, program
from tests.spark.test_kill_driver import after, stream, write
from tests.spark.test_writes import rows_in
from tests.tables.lakes import Lake, flights

pytestmark = [pytest.mark.spark, pytest.mark.own_session]

Victims = Callable[[Sequence[Process]], list[Process]]


def everything(found: Sequence[Process]) -> list[Process]:
    return list(found)


def a_python_process(found: Sequence[Process]) -> list[Process]:
    """A process that runs tasks, the commit or plans, or the one that starts these."""
    return [each for each in found if each.is_python_worker]


def an_executor(found: Sequence[Process]) -> list[Process]:
    return [each for each in found if each.is_executor]


@pytest.mark.parametrize(
    ("seed", "steps", "cluster"),
    [
        pytest.param(1, 5, False, id="local"),
        pytest.param(2, 12, False, marks=pytest.mark.slow, id="local-more"),
        pytest.param(3, 8, True, marks=pytest.mark.slow, id="cluster"),
        pytest.param(None, 30, False, marks=pytest.mark.slow, id="local-long"),
        pytest.param(None, 20, True, marks=pytest.mark.slow, id="cluster-long"),
    ],
)
def test_tables_equal_a_model_after_random_kills(lake: Lake, seed: int | None, steps: int, cluster: bool) -> None:
    seed = int.from_bytes(os.urandom(4)) if seed is None else seed
    print("seed", seed)  # where it fails
    dice = random.Random(seed)  # noqa: S311 -- chooses what is killed
    lake.table()
    attach(lake, {"commits": 4})
    left, model = planned(lake, dice, steps)
    length = 5.0  #: seconds of a step
    while left:
        kind = dice.choice([everything, a_python_process, an_executor if cluster else a_python_process])
        begun = time.monotonic()
        with program(lake, left, cluster=cluster, stops_at_failure=True) as running:
            kill_once(running, kind, dice.uniform(0, 1.5 * length), dice)
        done = [each["step"] for each in running.events if each["event"] == "ended"]
        if done:
            length = min(length, (time.monotonic() - begun) / len(done))
        assert done == list(range(len(done))), running.events
        left = left[len(done) :]
    assert rows_in(lake) == model
    assert not lake.open().opened.state.intents
    files_before = lake.data_files()
    collect_files(lake)
    assert not files_left(lake) and rows_in(lake) == model and lake.data_files() <= files_before


def planned(lake: Lake, dice: random.Random, steps: int) -> tuple[list[Step], list[dict[str, object]]]:
    """Writes and batches, and the rows after all of them."""
    found, model = list[Step](), after("append", [], flights(0))
    for number in range(steps):
        mode = dice.choice(["upsert", "upsert", "stream", "stream", "overwrite"])
        batches = [flights(dice.randrange(2, 60), dice.randrange(300)) for _ in range(dice.randrange(1, 4))]
        if mode == "stream":
            found.append(stream(lake, *batches, upsert=True))
        else:
            batches = batches[:1]
            found.append(write(lake, batches[0], str(number), mode))
        for rows in batches:
            model = after("upsert" if mode == "stream" else mode, model, rows)
    return found, model


def kill_once(running: Program, kind: Victims, delay: float, dice: random.Random) -> None:
    """Kills what is chosen, that long after the first step begins, and waits for the end of the program, which stops
    after a step that fails."""
    moment: float | None = None
    for found in running.watch():
        if moment is None and running.events:
            moment = time.monotonic() + delay
        if moment is not None and time.monotonic() >= moment:
            victims = kind(found)
            chosen = victims if kind is everything else dice.sample(victims, min(1, len(victims)))
            for each in chosen:
                each.send(signal.SIGKILL)
            moment = float("inf") if chosen else moment
            if kind is everything:
                running.kill()
                return
