"""Commit requests of waiting writers: files with their commits, and pipes for the answers.

Files of a request are named by its time and a random id:

    ID.pipe    the pipe for the answer; the waiting writer has it open, so a pipe without a reader means it has ended
    ID.offer   the request: the commit that the writer waits to make
    ID.taken   the request after another writer, the taker, has renamed it; the taker holds a lock on the file until
               it has answered or has ended

Taking is the rename, and withdrawing is the removal; only one of them can succeed. Others do not carry out a withdrawn
request. The writer repeats a taken request only after the taker has answered, has ended (then the lock on the file is
free), or can no longer carry it out, which the writer ensures. This does not depend on time or on the queue's lock,
which is only an optimization: several writers may hold that lock at once.
"""

from __future__ import annotations

import fcntl
import os
import select
import stat
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from deployer.platform.files.private import create_file, make_private_folder
from deployer.platform.system.failpoints import reached

AT_ONCE = 32  #: maximum number of requests that are read at once
LEFT_BEHIND = 60  #: seconds after which a pipe without a request and without a reader is removed

_TURN, _ANSWER = b"turn", b"answer "
_LONGEST = select.PIPE_BUF - 16  # bytes of an answer; up to PIPE_BUF, a message is written whole or not at all


@dataclass(slots=True)
class CommitRequest:
    """The commit request of another writer. The taker must answer it before it releases the lock."""

    body: bytes
    _path: Path
    _pipe: int
    _file: int
    _taken: bool = False

    def take(self) -> bool:
        """Takes the request. Returns True if this writer has taken it; then no other writer commits it."""
        if not self._taken:
            reached("line.before-take")
            with suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._path.rename(self._path.with_suffix(".taken"))
                self._taken = True
            reached("line.after-take")
        return self._taken

    def answer(self, body: bytes) -> None:
        """Sends the outcome to the writer, once. Raises ValueError unless it is one line of at most about 4,000
        bytes."""
        if self._pipe < 0:
            return
        reached("line.before-answer")
        if b"\n" in body or len(body) > _LONGEST:
            raise ValueError("an answer is one short line")
        with suppress(OSError):  # the writer has ended
            os.write(self._pipe, _ANSWER + body + b"\n")
        self.close()

    def close(self) -> None:
        for descriptor in (self._pipe, self._file):
            with suppress(OSError):
                os.close(descriptor)
        self._pipe = self._file = -1


@dataclass(slots=True)
class OwnCommitRequest:
    """The commit request of this writer."""

    path: Path
    pipe: int
    file: int

    @staticmethod
    def made(folder: Path, body: bytes) -> OwnCommitRequest:
        make_private_folder(folder, folder.parent)
        path = folder / f"{time.time_ns():020}-{uuid.uuid4().hex}.offer"
        pipe, written = path.with_suffix(".pipe"), path.with_suffix(".new")
        own = OwnCommitRequest(path, -1, -1)
        try:
            os.mkfifo(pipe, 0o600)
            own.pipe = os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            own.file = create_file(written, shared=False)  # only the same user takes requests
            with os.fdopen(own.file, "wb", closefd=False) as file:
                file.write(body)
            written.rename(path)  # from now on, other writers see the complete request
        except BaseException:
            own.remove()
            raise
        reached("line.offered")
        return own

    def poll_result(self, seconds: float) -> bytes | None:
        """Returns the answer if it arrives within this many seconds; otherwise None.

        Returns earlier when another writer signals that the lock is free.
        """
        polled = select.poll()
        polled.register(self.pipe, select.POLLIN)
        if not polled.poll(1000 * seconds):
            return None
        with suppress(BlockingIOError):
            for line in os.read(self.pipe, 16 * select.PIPE_BUF).splitlines():
                if line.startswith(_ANSWER):
                    return line.removeprefix(_ANSWER)
        return None

    def is_taken(self) -> bool:
        return not self.path.exists()

    def withdrawn(self) -> bool:
        """Withdraws the request. Returns True if it was not taken before; then it will never be taken."""
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        return True

    def settled(self, seconds: float) -> tuple[bytes | None, bool]:
        """Waits this many seconds for the answer to a taken request. Returns the answer, and whether the process that
        took the request has ended."""
        gone = locked(self.file)  # the taker holds the lock until it has answered
        return self.poll_result(0 if gone else seconds), gone

    def remove(self) -> None:
        _remove(self.path)
        for descriptor in (self.pipe, self.file):
            if descriptor >= 0:
                with suppress(OSError):
                    os.close(descriptor)


def locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def unlock(descriptor: int) -> None:
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing alone would not release it while a forked child has it open


def waiting(folder: Path) -> list[Path]:
    """Returns the paths of at most `AT_ONCE` requests, the oldest first. Removes files of writers that have ended."""
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 -- runs for every commit, and Path.iterdir is slower
    except OSError:
        return []
    requests = [name for name in names if name.endswith(".offer")]
    found = {name.removesuffix(".offer") for name in requests}
    for name in names:
        stem, _, kind = name.partition(".")
        if kind in ("pipe", "taken", "new") and stem not in found:
            _remove_left_behind(folder / f"{stem}.offer")
    return [folder / name for name in requests[:AT_ONCE]]


def _remove_left_behind(path: Path) -> None:
    made = path.name.partition("-")[0]
    if made.isdecimal() and time.time_ns() - int(made) < LEFT_BEHIND * 10**9:
        return  # the request may be in the process of being made or removed
    pipe = _writable(path.with_suffix(".pipe"))
    if pipe is None:
        _remove(path)
    else:
        os.close(pipe)


def _remove(path: Path) -> None:
    for suffix in (".offer", ".taken", ".new", ".pipe"):
        with suppress(OSError):
            path.with_suffix(suffix).unlink()


def _writable(pipe: Path) -> int | None:
    """Returns the pipe, opened for writing; None if the pipe has no reader."""
    try:
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def opened(path: Path) -> CommitRequest | None:
    """Returns the request; None when it was withdrawn, belongs to another user, or its writer has ended."""
    pipe = _writable(path.with_suffix(".pipe"))
    if pipe is None:
        _remove(path)
        return None
    try:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        os.close(pipe)
        return None
    if os.fstat(file).st_uid == os.geteuid():
        with os.fdopen(file, "rb", closefd=False) as opened:
            return CommitRequest(opened.read(), path, pipe, file)
    os.close(pipe)
    os.close(file)
    return None


def call(folder: Path) -> None:
    """Notifies the writer that has waited longest that the lock is free."""
    for path in waiting(folder):
        pipe = _writable(path.with_suffix(".pipe"))
        if pipe is not None:
            with suppress(OSError):
                os.write(pipe, _TURN + b"\n")
            os.close(pipe)
            return
