"""Writers that wait in line may have the one that has the turn do what they wait to do: once, or not at all."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from deployer.platform.system.clock import Clock
from deployer.state.backends import group_commit as line
from deployer.state.backends.commit_requests import CommitRequest, opened
from deployer.state.backends.group_commit import CommitQueue, Ticket

LONG = 600.0


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommitQueue]:
    monkeypatch.setattr(line, "PATIENCE", LONG)
    yield CommitQueue(tmp_path / "lock", tmp_path / "line")
    assert not list((tmp_path / "line").glob("*"))


def offered_to(own: Ticket) -> list[CommitRequest]:
    """What somebody offers to the one that has the turn, once that is there; nothing when it does not come."""
    until = time.monotonic() + LONG
    while not own.requests() and time.monotonic() < until:
        time.sleep(0.001)
    return own.requests()


def beside(
    at: CommitQueue, does: Callable[[Callable[[], list[CommitRequest]]], None], offered: bytes = b"rows"
) -> Ticket:
    """How the waiting of another ends, while `does` has the turn; it is given what lists the offers, of which there is
    one."""

    def wait() -> Ticket:
        with at.turn(lambda: offered) as turn:
            return turn

    with ThreadPoolExecutor(1) as threads:
        with at.turn() as own:
            waiting: Future[Ticket] = threads.submit(wait)
            assert offered_to(own)
            does(own.requests)
        return waiting.result(LONG)


def test_a_free_turn_is_taken_without_waiting(at: CommitQueue) -> None:
    for _ in range(3):
        with at.turn(lambda: b"rows") as turn:
            assert turn == Ticket(_folder=turn._folder) and turn.requests() == []


def test_what_was_taken_is_answered(at: CommitQueue) -> None:
    def does(requests: Callable[[], list[CommitRequest]]) -> None:
        [offer] = requests()
        assert offer.body == b"rows" and offer.take() and offer.take()
        offer.answer(b"done")
        offer.answer(b"not heard")

    turn = beside(at, does)
    assert turn.answer == b"done" and turn.waited and turn.requests() == []


def test_who_has_the_turn_passes_it_on_and_answers_afterwards(at: CommitQueue) -> None:
    """Neither the one that waits for its answer nor the one that owes it keeps others from the turn."""
    begins, passed, goes_on = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        with at.turn() as own:
            begins.set()
            [offer] = offered_to(own)
            assert offer.take()
            own.pass_on()
            passed.set()
            assert goes_on.wait(LONG)
            offer.answer(b"done")

    def second() -> Ticket:
        with at.turn(lambda: b"rows") as turn:
            return turn

    with ThreadPoolExecutor(2) as threads:
        begun = threads.submit(first)
        assert begins.wait(LONG)
        waiting = threads.submit(second)
        assert passed.wait(LONG)
        for _ in range(3):
            with at.turn() as own:
                assert own.requests() == []
            threading.Event().wait(2 * line.POLL_SECONDS)
        assert not waiting.done()
        goes_on.set()
        begun.result(LONG)
        assert waiting.result(LONG).answer == b"done"


def test_what_was_not_taken_is_its_own_to_do(at: CommitQueue) -> None:
    turn = beside(at, lambda requests: None)
    assert turn.waited and turn.answer is None and not turn.taker_gone and not turn.in_doubt


def test_a_taker_that_ends_without_an_answer_is_seen_to_be_gone(at: CommitQueue) -> None:
    turn = beside(at, lambda requests: None if requests()[0].take() else pytest.fail("it was not offered"))
    assert turn.taker_gone and turn.answer is None


@pytest.mark.parametrize("before", [0, 20], ids=["at once", "after a second"])
def test_whoever_took_an_offer_and_is_silent_holds_its_writer_for_two_seconds(
    before: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From when it took it, on a clock that goes a twentieth of a second between two looks."""
    monkeypatch.setattr(line, "POLL_SECONDS", 0)
    looks, taken_at = itertools.count(), list[int]()
    lock, folder = tmp_path / "lock", tmp_path / "line"

    def monotonic() -> float:
        look = next(looks)
        if look >= before and not taken_at and own.requests():
            assert own.requests()[0].take()
            taken_at.append(look)
        return look / 20

    waiting = CommitQueue(lock, folder, Clock(monotonic=monotonic))
    with CommitQueue(lock, folder).turn() as own:
        with waiting.turn(lambda: b"rows") as turn:
            assert turn.in_doubt and turn.answer is None and not turn.taker_gone
        assert next(looks) - taken_at[0] <= 2 * 20
        since = next(looks)
        with waiting.turn(lambda: b"rows") as turn:  # it does without, and waits for nobody
            assert not turn.in_doubt and turn.waited
        assert next(looks) - since <= 3


def test_who_waits_in_vain_takes_the_offer_back_or_is_in_doubt(
    at: CommitQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    for taken in (False, True):
        ended = threading.Event()

        def wait(ended: threading.Event = ended) -> Ticket:
            with CommitQueue(at._lock, at._folder).turn(lambda: b"rows") as turn:
                ended.set()
                return turn

        with ThreadPoolExecutor(1) as threads, at.turn() as own:
            monkeypatch.setattr(line, "PATIENCE", LONG)
            waiting = threads.submit(wait)
            assert offered_to(own)
            assert not taken or own.requests()[0].take()
            monkeypatch.setattr(line, "PATIENCE", 0)
            monkeypatch.setattr(line, "TAKEN_PATIENCE", 0.1)
            assert ended.wait(LONG)
            turn = waiting.result(LONG)
            assert own.requests()[0].take() is taken  # what was taken back is nobody else's to do
            assert turn.in_doubt is taken and turn.answer is None and not turn.taker_gone


def test_offers_of_other_users_are_theirs(at: CommitQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    def does(requests: Callable[[], list[CommitRequest]]) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
        assert opened(next(at._folder.glob("*.offer"))) is None

    assert beside(at, does).answer is None


def test_what_killed_writers_left_is_removed(at: CommitQueue) -> None:
    at._folder.mkdir()
    for stem in ("00000000000000000001-dead", "99999999999999999999-dead"):
        os.mkfifo(at._folder / f"{stem}.pipe")
        (at._folder / f"{stem}.{'taken' if stem.startswith('0') else 'offer'}").write_bytes(b"rows")
    with at.turn() as turn:
        assert turn.requests() == []
    assert not list(at._folder.iterdir())


def test_without_pipes_one_waits_all_the_same(at: CommitQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = threading.Event()

    def refused(*_: object) -> None:
        tried.set()
        raise OSError("no pipes here")

    monkeypatch.setattr(os, "mkfifo", refused)
    with ThreadPoolExecutor(1) as threads:
        with at.turn():
            waiting = threads.submit(lambda: at.turn(lambda: b"rows").__enter__().waited)
            assert tried.wait(LONG)
        assert waiting.result(LONG)
