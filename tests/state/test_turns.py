"""Writers on one machine take turns; one that is stopped with the turn holds nobody up for long."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
from pathlib import Path
from typing import Any

from deployer.state.backends.fair_lock import FairLock

LONG = 60.0


def holding(path: Path, held: Any, let_go: Any) -> None:
    with FairLock(path, LONG).taken():
        held.set()
        let_go.wait(LONG)


def counting(path: Path, counter: Path, times: int) -> None:
    for _ in range(times):
        with FairLock(path, LONG).taken():
            counter.write_text(str(int(counter.read_text()) + 1))


def test_a_free_turn_is_taken_without_waiting(tmp_path: Path) -> None:
    turns = FairLock(tmp_path / "turn")
    for _ in range(3):
        with turns.taken() as waited:
            assert not waited


def test_who_waited_has_the_turn_alone(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=counting, args=(tmp_path / "turn", counter, 50)) for _ in range(4)]
    for each in writers:
        each.start()
    for each in writers:
        each.join(LONG)
    assert [each.exitcode for each in writers] == [0] * 4
    assert counter.read_text() == "200"


def test_who_waits_in_vain_goes_on_and_leaves_the_lock_free(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    held, let_go = context.Event(), context.Event()
    holder = context.Process(target=holding, args=(tmp_path / "turn", held, let_go))
    holder.start()
    assert held.wait(LONG)
    turns = FairLock(tmp_path / "turn", patience=0.01)
    with turns.taken() as waited:
        assert waited
    let_go.set()
    holder.join(LONG)
    with FairLock(tmp_path / "turn", LONG).taken():  # the wait that was given up lets go as soon as it has the lock
        descriptor = os.open(tmp_path / "turn", os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            taken = True
        else:
            taken = False
        finally:
            os.close(descriptor)
        assert taken
