"""Group commit: writers on one machine queue for a log, and the writer with the lock may commit for waiting ones.

A writer that finds the lock taken leaves a *commit request*: a file with its commit, and a pipe for the answer. The
writer with the lock may take requests and commit them with its own work, so that many commits cost little more than
one. The lock is only an optimization, and several writers may hold it at once. The request itself prevents a double
commit (see `commit_requests`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from deployer.platform.files.private import open_lock
from deployer.platform.system.clock import Clock
from deployer.state.backends.commit_requests import (
    CommitRequest,
    OwnCommitRequest,
    call,
    locked,
    opened,
    unlock,
    waiting,
)

PATIENCE = 1.5  #: seconds to wait for the lock
DOING_WITHOUT = 10.0  #: seconds without waiting after a failed wait
TAKEN_PATIENCE = 1.0  #: seconds to wait for the writer that took the request
POLL_SECONDS = 0.05  #: poll interval while waiting; the holder may have died without notifying


@dataclass(slots=True)
class Ticket:
    """The result of waiting for the lock.

    `waited`: others held the lock, and may have changed the state. `answer`: the answer of another writer that took the
    request. `taker_gone`: another writer took the request and ended without an answer. `in_doubt`: another writer took
    the request and did not answer in time; it may still commit it. In all other cases the request was not taken and
    will not be.
    """

    waited: bool = False
    answer: bytes | None = None
    taker_gone: bool = False
    in_doubt: bool = False
    _folder: Path | None = None
    _give_up: Callable[[], None] = field(default=lambda: None, compare=False)
    _requests: list[CommitRequest] = field(default_factory=list)

    def requests(self) -> list[CommitRequest]:
        """Returns the requests of other writers, the oldest first; none if this writer proceeds without the lock."""
        if self._folder is not None and not self._requests:
            self._requests = [request for path in waiting(self._folder) if (request := opened(path)) is not None]
        return self._requests

    def pass_on(self) -> None:
        """Releases the lock early, before work that does not need it. Taken requests must still be answered."""
        self._give_up()


class CommitQueue:
    """The queue for one lock file. It is safe for threads, for processes, and after a fork."""

    def __init__(self, lock: Path, folder: Path, clock: Clock | None = None) -> None:
        self._lock, self._folder, self._clock = lock, folder, clock or Clock()
        self._without_until = 0.0

    @contextmanager
    def turn(self, would_do: Callable[[], bytes] | None = None) -> Iterator[Ticket]:
        """Waits for the lock, at most `PATIENCE` seconds, and proceeds with or without it.

        `would_do` returns the body of the request that is left while waiting. Without it, no other writer may do this
        work. Once another writer has taken the request, this waits for the answer instead, at most `TAKEN_PATIENCE`
        seconds.
        """
        if self._clock.monotonic() < self._without_until:
            yield Ticket(waited=True)
            return
        try:
            descriptor = open_lock(self._lock)
        except OSError:  # the commit itself will report what is wrong with the folder
            yield Ticket()
            return
        has_it, turn = False, Ticket()

        def give_up() -> None:
            nonlocal has_it
            if has_it:
                has_it = False
                self._given_back(descriptor)

        try:
            has_it = locked(descriptor)
            if not has_it:
                has_it, turn = self._waited(descriptor, would_do)
            if has_it and turn.answer is None:
                turn._folder, turn._give_up = self._folder, give_up
            yield turn
        finally:
            for request in turn._requests:
                request.close()
            give_up()
            os.close(descriptor)

    def _waited(self, descriptor: int, would_do: Callable[[], bytes] | None) -> tuple[bool, Ticket]:
        """Waits for the lock or an answer. Returns whether the lock was acquired, and the result of waiting."""
        try:
            own = OwnCommitRequest.made(self._folder, would_do()) if would_do is not None else None
        except OSError:  # a file system without pipes
            own = None
        has_it = False
        try:
            since = self._clock.monotonic()
            while not (has_it := locked(descriptor)) and (left := since + PATIENCE - self._clock.monotonic()) > 0:
                if own is None:
                    time.sleep(min(left, POLL_SECONDS / 10))
                elif (answer := own.poll_result(min(left, POLL_SECONDS))) is not None:
                    return False, Ticket(waited=True, answer=answer)
                elif own.is_taken():
                    break
            if own is None or own.withdrawn():
                self._does_without(not has_it)
                return has_it, Ticket(waited=True)
            if has_it:  # the taker of the request released the lock before it answered; others need it
                has_it = False
                self._given_back(descriptor)
            turn = self._settled(own)
            self._does_without(turn.in_doubt)
            return False, turn
        except BaseException:
            if has_it:
                unlock(descriptor)
            raise
        finally:
            if own is not None:
                own.remove()

    def _does_without(self, in_vain: bool) -> None:
        if in_vain:
            self._without_until = self._clock.monotonic() + DOING_WITHOUT

    def _settled(self, own: OwnCommitRequest) -> Ticket:
        """Waits for the answer to a taken request, and returns the result of waiting."""
        since = self._clock.monotonic()
        while (left := since + TAKEN_PATIENCE - self._clock.monotonic()) > 0:
            answer, gone = own.settled(min(left, POLL_SECONDS))
            if answer is not None or gone:
                return Ticket(waited=True, answer=answer, taker_gone=answer is None)
        return Ticket(waited=True, in_doubt=True)

    def _given_back(self, descriptor: int) -> None:
        unlock(descriptor)
        call(self._folder)
