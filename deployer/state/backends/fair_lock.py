"""A lock that the threads and processes of one machine take in order, so that writers rarely lose races to each other.

SQLite's own wait sleeps for increasing times (up to 100 ms), and a lost race costs a whole attempt. With the lock,
eight writers commit several times as often. A process that is stopped while it holds the lock must not block others, so
the wait is short, and after a failed wait a process does not wait for some time. The threads of one process first queue
for a plain lock, because they are stopped together. So only one of them at a time waits for other processes.
"""

from __future__ import annotations

import _thread
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from deployer.platform.files.private import open_lock

LOCK_TIMEOUT = 0.25  #: default seconds to wait for the lock
DOING_WITHOUT = 10.0  #: seconds without waiting after a failed wait


class FairLock:
    """A lock on one lock file. It is safe for threads, and after a fork. `patience` is in seconds."""

    def __init__(self, path: Path, patience: float = LOCK_TIMEOUT) -> None:
        self._path, self._patience = path, patience
        self._without_until = 0.0
        self._threads, self._process = threading.Lock(), os.getpid()

    @contextmanager
    def taken(self) -> Iterator[bool]:
        """Waits for the lock, at most `patience` seconds for other processes, and proceeds with or without it.

        Yields whether another process held the lock, and so may have changed the state that this process has read.
        """
        if self._process != os.getpid():  # after a fork, a thread of the parent process may hold the lock
            self._threads, self._process = threading.Lock(), os.getpid()
        with self._threads, self._taken_here() as waited:
            yield waited

    @contextmanager
    def _taken_here(self) -> Iterator[bool]:
        if time.monotonic() < self._without_until:
            yield True
            return
        try:
            descriptor = open_lock(self._path)
        except OSError:  # the commit itself will report what is wrong with the folder
            yield False
            return
        wait = None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            wait = _Wait(descriptor)
        except OSError:  # a file system without locks
            self._without_until = float("inf")
        got = wait is None or wait.ended(self._patience)
        if not got:
            self._without_until = time.monotonic() + DOING_WITHOUT
        try:
            yield wait is not None
        finally:
            if got:
                _give_up(descriptor)


class _Wait:
    """A wait for the lock in the kernel, on a separate thread, because such a wait has no timeout.

    Polling instead would take a tenth of two cores with eight writers. When a process stops waiting, the thread
    releases the lock as soon as it gets it.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._mutex = threading.Lock()
        self._has_it, self._given_up = False, False
        self._done = threading.Lock()
        self._done.acquire()
        _thread.start_new_thread(self._wait, ())

    def ended(self, patience: float) -> bool:
        """Waits at most `patience` seconds. Returns whether this process has the lock."""
        if self._done.acquire(timeout=patience):
            return self._has_it
        with self._mutex:
            self._given_up = not self._has_it
            return self._has_it

    def _wait(self) -> None:
        held = True
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        except OSError:
            held = False
        with self._mutex:
            self._has_it = held and not self._given_up
            given_up = self._given_up
        if given_up or not held:
            _give_up(self._descriptor)
        self._done.release()


def _give_up(descriptor: int) -> None:
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing alone would not release it while a forked child has it open
    os.close(descriptor)
