"""The stack's lock, as the CLI's own backend writes it: one JSON object for each holder in the stack's lock folder.

A process that wants the lock writes its own object and lists the folder. If it finds another object, it removes its
own.
"""

from __future__ import annotations

import getpass
import json
import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime

from deployer.engine.persistence.backend import StackFiles
from deployer.errors import Conflict, DeployerError
from deployer.platform.files.json_documents import read_document
from deployer.platform.storage.objects import Missing
from deployer.platform.system.processes import is_running, start_of
from deployer.platform.system.retry import Backoff

_ATTEMPTS = 4  # two runs that start at the same time see each other's object, remove their own, and try again
_BACKOFF = Backoff(first=0.2, longest=0.8)
_held: ContextVar[frozenset[str]] = ContextVar("held", default=frozenset())  #: lock folders that the caller holds


@dataclass(frozen=True)
class Holder:
    """The process that wrote a lock."""

    path: str  #: the path in the backend
    pid: int
    username: str
    hostname: str
    since: str
    start: str = ""  #: start time of the process in its system's unit; the Pulumi CLI does not write it

    def is_gone(self) -> bool:
        """Returns whether the holder was a process of this machine that no longer runs."""
        if self.hostname != socket.gethostname() or self.pid <= 0:
            return False
        return not is_running(self.pid, self.start)

    def __str__(self) -> str:
        return f"{self.username}@{self.hostname} (process {self.pid}) since {_readable(self.since)}"


@contextmanager
def locked(files: StackFiles, *, shared_with_pulumi: bool = True) -> Iterator[None]:
    """Holds the stack's lock during the block; raises `Conflict` with the holder's name.

    A lock of this machine whose process no longer exists was left by a crash, and is taken over. Within the block the
    same caller may hold the lock again. If not `shared_with_pulumi`, the lock excludes only deployer's own runs. It is
    used around runs of the Pulumi CLI, which takes its own lock and would be blocked by a shared one.
    """
    folder = files.locks if shared_with_pulumi else files.own_locks
    held = files.backend.where(folder)
    if held in _held.get():
        yield
        return
    mine = _take(files, folder)
    token = _held.set(_held.get() | {held})
    try:
        yield
    except BaseException:
        _held.reset(token)
        with suppress(DeployerError):  # the first error is reported
            files.backend.objects.delete([mine])
        raise
    _held.reset(token)
    files.backend.objects.delete([mine])


def _take(files: StackFiles, folder: str) -> str:
    mine = f"{folder}/{uuid.uuid4()}.json"
    objects = files.backend.objects
    for attempt in _BACKOFF.attempts(_ATTEMPTS):
        _refuse_if_held(files, folder, mine)
        objects.put(mine, _content())
        try:
            _refuse_if_held(files, folder, mine)
            break
        except Conflict:
            objects.delete([mine])
            if attempt == _ATTEMPTS - 1:
                raise
    return mine


def holders(files: StackFiles, folder: str, besides: str = "") -> list[Holder]:
    """Returns the holders of the locks of a folder, without the lock at the path `besides`."""
    found = []
    for path in sorted(files.backend.objects.list(folder)):
        if path == besides or not path.endswith(".json"):
            continue
        try:
            doc = read_document(files.backend.objects.get(path))
            who = (int(doc["pid"]), str(doc["username"]), str(doc["hostname"]), str(doc["timestamp"]))
            found.append(Holder(path, *who, str(doc.get("processStart") or "")))
        except Missing:
            continue  # released meanwhile
        except (ValueError, KeyError, TypeError):
            found.append(Holder(path, 0, "an unknown user", "an unknown host", "an unknown time"))
    return found


def break_locks(files: StackFiles) -> tuple[str, ...]:
    """Removes every lock of the stack, and returns the holders."""
    broken = [*holders(files, files.locks), *holders(files, files.own_locks)]
    files.backend.objects.delete([holder.path for holder in broken])
    return tuple(str(holder) for holder in broken)


def _refuse_if_held(files: StackFiles, folder: str, mine: str) -> None:
    others = holders(files, folder, besides=mine)
    gone = [holder for holder in others if holder.is_gone()]
    files.backend.objects.delete([holder.path for holder in gone])
    others = [holder for holder in others if holder not in gone]
    if others:
        raise Conflict(
            "another run holds the stack: " + "; ".join(map(str, others)),
            where=f"{files.project}/{files.stack}",
            remedy="nothing was changed; wait until it ends. If its machine no longer exists, the run has "
            "ended: then delete " + ", ".join(files.backend.where(holder.path) for holder in others),
        )


def _readable(timestamp: str) -> str:
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return timestamp
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if moment.tzinfo else timestamp


def _content() -> bytes:
    content = {
        "pid": os.getpid(),
        "username": _username(),
        "hostname": socket.gethostname(),
        "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "processStart": start_of(os.getpid()),
    }
    return json.dumps(content, separators=(",", ":")).encode()


def _username() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
