"""Taking turns among the threads and processes of one machine, so that writers seldom lose races to each other.

SQLite's own waiting sleeps ever longer (up to 100 ms), and a lost race costs a whole attempt: eight writers that take
turns commit several times as often. A process that is stopped while it has the turn must hold nobody up, so the wait
is short, and who waited in vain does without for a while. Threads of one process queue for a plain lock first: they are
stopped together, and starve each other where they poll.
"""

from __future__ import annotations

import fcntl
import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PATIENCE = 0.25  #: seconds that one waits for the turn unless told otherwise
DOING_WITHOUT = 10.0  #: seconds in which one does not wait again after waiting in vain
_SHORTEST, _LONGEST = 0.0001, 0.001  # seconds between two looks


class Turns:
    """Turns on one lock file. Thread-safe; safe to use after a fork."""

    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        self._path, self._patience = path, patience
        self._without_until = 0.0
        self._threads, self._process = threading.Lock(), os.getpid()

    @contextmanager
    def taken(self) -> Iterator[bool]:
        """Waits for the turn, at most `patience` seconds among processes, and goes on with it or without.

        Gives whether another process had it, and so may have changed what this one knows.
        """
        if self._process != os.getpid():  # after a fork the lock may be held by a thread that is not here
            self._threads, self._process = threading.Lock(), os.getpid()
        with self._threads, self._taken_here() as waited:
            yield waited

    @contextmanager
    def _taken_here(self) -> Iterator[bool]:
        if time.monotonic() < self._without_until:
            yield True
            return
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:  # whatever is wrong with the place, the commit itself will say
            yield False
            return
        try:
            yield self._waited(descriptor)
        finally:
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child forked meanwhile would keep it
            os.close(descriptor)

    def _waited(self, descriptor: int) -> bool:
        deadline = time.monotonic() + self._patience
        pause, waited = _SHORTEST, False
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waited = True
                if time.monotonic() > deadline:
                    self._without_until = time.monotonic() + DOING_WITHOUT
                    return waited
                time.sleep(random.uniform(_SHORTEST, pause))  # noqa: S311
                pause = min(2 * pause, _LONGEST)
            except OSError:  # a file system without locks
                self._without_until = float("inf")
                return waited
            else:
                return waited
