"""The line of writers on one machine that wait for the turn at a log: whoever has it may do what others wait to do.

A writer that finds the turn taken leaves an *offer*: a file that says what it would do, and a pipe for the answer. The
writer that has the turn may take offers and do them along with its own work, so that many cost little more than one.
Files of an offer, in the line's folder, are named by its time and a random id:

    ID.pipe    whoever waits has it open: without a reader, that writer is gone
    ID.offer   what it would do; renamed to
    ID.taken   by the one who does it, who holds a lock on the file until it has answered or is gone

Taking is the rename, withdrawing is the removal, and only one of them succeeds: what was withdrawn is done by nobody
else, and what was taken is not done again before its taker has answered or is gone, which the lock on it tells. None of
that depends on time, nor on the turn itself, which is a courtesy: it may be given to several at once.
"""

from __future__ import annotations

import fcntl
import os
import select
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from deployer.state.failpoints import reached

PATIENCE = 2.0  #: seconds that one waits for the turn
DOING_WITHOUT = 10.0  #: seconds in which one does not wait again after waiting in vain
TAKEN_PATIENCE = 30.0  #: seconds that one waits for whoever took its offer
AT_ONCE = 32  #: offers that one turn looks at
LOOKING = 0.05  #: seconds after which one looks whether the turn is free, told or not: who had it may have been killed
LEFT_BEHIND = 60  #: seconds after which a pipe without an offer and without a reader was left behind

_TURN, _ANSWER = b"turn", b"answer "
_LONGEST = select.PIPE_BUF - 16  # a message is written whole or not at all


@dataclass(slots=True)
class Offer:
    """What another writer would do. It is to be answered if it was taken, before the turn ends."""

    body: bytes
    _path: Path
    _pipe: int
    _file: int
    _taken: bool = False

    def take(self) -> bool:
        """Whether it is to be done here: True once, and from then on nobody else does it."""
        if not self._taken:
            reached("line.before-take")
            with suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._path.rename(self._path.with_suffix(".taken"))
                self._taken = True
            reached("line.after-take")
        return self._taken

    def answer(self, body: bytes) -> None:
        """Tells the writer what came of it, once: one line, at most about 4,000 bytes."""
        if self._pipe < 0:
            return
        reached("line.before-answer")
        if b"\n" in body or len(body) > _LONGEST:
            raise ValueError("an answer is one short line")
        with suppress(OSError):  # it is gone
            os.write(self._pipe, _ANSWER + body + b"\n")
        self.close()

    def close(self) -> None:
        for descriptor in (self._pipe, self._file):
            with suppress(OSError):
                os.close(descriptor)
        self._pipe = self._file = -1


@dataclass(slots=True)
class Turn:
    """How the waiting ended.

    `waited`: others had the turn, and so may have changed what this one knows. `answer`: another writer took the offer
    and says what came of it. `taker_gone`: another took it and ended without an answer. `in_doubt`: another took it and
    did not answer for long, and may do it yet. Else nobody took it, and nobody will.
    """

    waited: bool = False
    answer: bytes | None = None
    taker_gone: bool = False
    in_doubt: bool = False
    _folder: Path | None = None
    _offers: list[Offer] = field(default_factory=list)

    def offers(self) -> list[Offer]:
        """What others wait to do, the oldest first; none for one that goes on without the turn."""
        if self._folder is not None and not self._offers:
            self._offers = [offer for path in _waiting(self._folder) if (offer := _opened(path)) is not None]
        return self._offers


class Line:
    """The line at one lock file. Safe for threads, processes, and after a fork."""

    def __init__(self, lock: Path, folder: Path) -> None:
        self._lock, self._folder = lock, folder
        self._without_until = 0.0

    @contextmanager
    def turn(self, would_do: Callable[[], bytes] | None = None) -> Iterator[Turn]:
        """Waits for the turn, at most `PATIENCE` seconds, and goes on with it or without.

        `would_do` gives the offer to make while waiting; None: what this writer does is for nobody else to do.
        """
        if time.monotonic() < self._without_until:
            yield Turn(waited=True)
            return
        try:
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:  # whatever is wrong with the place, the commit itself will say
            yield Turn()
            return
        has_it, turn = False, Turn()
        try:
            has_it = _locked(descriptor)
            if not has_it:
                has_it, turn = self._waited(descriptor, would_do)
            if has_it and turn.answer is None:
                turn._folder = self._folder
            yield turn
        finally:
            for offer in turn._offers:
                offer.close()
            if has_it:
                _unlock(descriptor)
            os.close(descriptor)
            if has_it:
                _call(self._folder)

    def _waited(self, descriptor: int, would_do: Callable[[], bytes] | None) -> tuple[bool, Turn]:
        """Whether the turn was got, and how the waiting ended."""
        try:
            own = _Own.made(self._folder, would_do()) if would_do is not None else None
        except OSError:  # a file system without pipes
            own = None
        has_it = False
        try:
            since = time.monotonic()
            while not (has_it := _locked(descriptor)) and (left := since + PATIENCE - time.monotonic()) > 0:
                if own is None:
                    time.sleep(min(left, LOOKING / 10))
                elif (answer := own.told(min(left, LOOKING))) is not None:
                    return False, Turn(waited=True, answer=answer)
            if not has_it:
                self._without_until = time.monotonic() + DOING_WITHOUT
            if own is None or own.withdrawn():
                return has_it, Turn(waited=True)
            return has_it, own.settled()
        except BaseException:
            if has_it:
                _unlock(descriptor)
            raise
        finally:
            if own is not None:
                own.remove()


@dataclass(slots=True)
class _Own:
    """The offer that this writer made."""

    path: Path
    pipe: int
    file: int

    @staticmethod
    def made(folder: Path, body: bytes) -> _Own:
        folder.mkdir(exist_ok=True)
        path = folder / f"{time.time_ns():020}-{uuid.uuid4().hex}.offer"
        pipe, written = path.with_suffix(".pipe"), path.with_suffix(".new")
        own = _Own(path, -1, -1)
        try:
            os.mkfifo(pipe, 0o600)
            own.pipe = os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            own.file = os.open(written, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(own.file, "wb", closefd=False) as file:
                file.write(body)
            written.rename(path)  # now it can be seen, whole
        except BaseException:
            own.remove()
            raise
        reached("line.offered")
        return own

    def told(self, seconds: float) -> bytes | None:
        """The answer, if it comes within so many seconds; ends earlier when this one is called to take the turn."""
        polled = select.poll()
        polled.register(self.pipe, select.POLLIN)
        if not polled.poll(1000 * seconds):
            return None
        with suppress(BlockingIOError):
            for line in os.read(self.pipe, 16 * select.PIPE_BUF).splitlines():
                if line.startswith(_ANSWER):
                    return line.removeprefix(_ANSWER)
        return None

    def withdrawn(self) -> bool:
        """Whether nobody took it; then nobody will."""
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        return True

    def settled(self) -> Turn:
        """How it ended, after it was taken."""
        deadline = time.monotonic() + TAKEN_PATIENCE
        while time.monotonic() < deadline:
            gone = _locked(self.file)  # whoever took it holds this until it has answered or is gone
            if (answer := self.told(0 if gone else LOOKING)) is not None or gone:
                return Turn(waited=True, answer=answer, taker_gone=answer is None)
        return Turn(waited=True, in_doubt=True)

    def remove(self) -> None:
        _remove(self.path)
        for descriptor in (self.pipe, self.file):
            if descriptor >= 0:
                with suppress(OSError):
                    os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _unlock(descriptor: int) -> None:
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child forked meanwhile would keep it


def _waiting(folder: Path) -> list[Path]:
    """The offers that were made, the oldest first. What was left behind by writers that are gone is removed."""
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 -- for every turn, and paths take longer
    except OSError:
        return []
    offers = [name for name in names if name.endswith(".offer")]
    found = {name.removesuffix(".offer") for name in offers}
    for name in names:
        stem, _, kind = name.partition(".")
        if kind in ("pipe", "taken", "new") and stem not in found:
            _remove_left_behind(folder / f"{stem}.offer")
    return [folder / name for name in offers[:AT_ONCE]]


def _remove_left_behind(path: Path) -> None:
    made = path.name.partition("-")[0]
    if made.isdecimal() and time.time_ns() - int(made) < LEFT_BEHIND * 10**9:
        return  # it is being made, or just being removed
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
    """The pipe, opened for writing; None when nobody reads it."""
    try:
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def _opened(path: Path) -> Offer | None:
    """The offer; None when it was withdrawn, is another user's, or was made by a writer that is gone."""
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
            return Offer(opened.read(), path, pipe, file)
    os.close(pipe)
    os.close(file)
    return None


def _call(folder: Path) -> None:
    """Tells the one who waits longest that the turn is free."""
    for path in _waiting(folder):
        pipe = _writable(path.with_suffix(".pipe"))
        if pipe is not None:
            with suppress(OSError):
                os.write(pipe, _TURN + b"\n")
            os.close(pipe)
            return
