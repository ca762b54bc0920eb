"""The stack's lock, as the CLI's file backend writes it: one JSON file a holder in the stack's lock folder."""

from __future__ import annotations

import getpass
import json
import os
import random
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from deployer.engine.backend import StackFiles
from deployer.engine.running import is_running, start_of
from deployer.errors import Conflict

_ATTEMPTS = 4  # two runs that start at the same instant see each other's file and both step back; then they try again
_held: ContextVar[frozenset[Path]] = ContextVar("held", default=frozenset())  #: lock folders that the caller holds


@dataclass(frozen=True)
class Holder:
    """Who wrote a lock file."""

    path: Path
    pid: int
    username: str
    hostname: str
    since: str
    start: str = ""  #: of the process, as its system counts; the Pulumi CLI does not write it

    def is_gone(self) -> bool:
        """Whether the holder was a process of this machine that does not run any more."""
        if self.hostname != socket.gethostname() or self.pid <= 0:
            return False
        return not is_running(self.pid, self.start)

    def __str__(self) -> str:
        return f"{self.username}@{self.hostname} (process {self.pid}) since {_readable(self.since)}"


@contextmanager
def locked(files: StackFiles, *, shared_with_pulumi: bool = True) -> Iterator[None]:
    """Holds the stack for the time of the block; raises `Conflict` naming who holds it.

    A lock whose process is gone from this machine was left by a crash, and is taken over. Within the block the same
    caller may hold the stack once more. Not `shared_with_pulumi`, it is a lock among deployer's own runs: around one of
    the Pulumi CLI, which takes its own and would be kept out by this one.
    """
    folder = files.locks if shared_with_pulumi else files.own_locks
    if folder in _held.get():
        yield
        return
    mine = _take(folder, f"{files.project}/{files.stack}")
    token = _held.set(_held.get() | {folder})
    try:
        yield
    finally:
        _held.reset(token)
        mine.unlink(missing_ok=True)


def _take(folder: Path, stack: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    mine = folder / f"{uuid.uuid4()}.json"
    for attempt in range(_ATTEMPTS):
        _refuse_if_held(folder, mine, stack)
        _write(mine)
        try:
            _refuse_if_held(folder, mine, stack)
            break
        except Conflict:
            mine.unlink(missing_ok=True)
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(random.uniform(0.01, 0.2) * (attempt + 1))  # noqa: S311 -- only to get out of step
    return mine


def holders(folder: Path) -> list[Holder]:
    """Who holds the locks of a folder."""
    found = []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else []:
        try:
            doc = json.loads(path.read_bytes())
            who = (int(doc["pid"]), str(doc["username"]), str(doc["hostname"]), str(doc["timestamp"]))
            found.append(Holder(path, *who, str(doc.get("processStart") or "")))
        except FileNotFoundError:
            continue  # released meanwhile
        except (ValueError, KeyError, TypeError):
            found.append(Holder(path, 0, "somebody", "an unknown host", "an unknown time"))
    return found


def break_locks(files: StackFiles) -> tuple[str, ...]:
    """Removes every lock of the stack, and says whose they were."""
    broken = [*holders(files.locks), *holders(files.own_locks)]
    for holder in broken:
        holder.path.unlink(missing_ok=True)
    return tuple(str(holder) for holder in broken)


def _refuse_if_held(folder: Path, mine: Path, stack: str) -> None:
    others = []
    for holder in holders(folder):
        if holder.path == mine:
            continue
        if holder.is_gone():
            holder.path.unlink(missing_ok=True)
        else:
            others.append(holder)
    if others:
        raise Conflict(
            "another run holds the stack: " + "; ".join(map(str, others)),
            where=stack,
            remedy="nothing was changed; wait until it ends. If its machine is gone, and it with that, delete "
            + ", ".join(str(holder.path) for holder in others),
        )


def _readable(timestamp: str) -> str:
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return timestamp
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if moment.tzinfo else timestamp


def _write(path: Path) -> None:
    content = {
        "pid": os.getpid(),
        "username": _username(),
        "hostname": socket.gethostname(),
        "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "processStart": start_of(os.getpid()),
    }
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, separators=(",", ":")), encoding="utf-8")
    temporary.replace(path)


def _username() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
