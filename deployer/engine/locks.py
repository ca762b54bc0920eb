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
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from deployer.engine.backend import StackFiles
from deployer.errors import Conflict

_ATTEMPTS = 4  # two runs that start at the same instant see each other's file and both step back; then they try again


@dataclass(frozen=True)
class Holder:
    """Who wrote a lock file."""

    path: Path
    pid: int
    username: str
    hostname: str
    since: str

    def is_gone(self) -> bool:
        """Whether the holder was a process of this machine that does not run any more."""
        if self.hostname != socket.gethostname() or self.pid <= 0:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False

    def __str__(self) -> str:
        return f"{self.username}@{self.hostname} (process {self.pid}) since {self.since}"


@contextmanager
def locked(files: StackFiles) -> Iterator[None]:
    """Holds the stack for the time of the block; raises `Conflict` naming who holds it.

    A lock whose process is gone from this machine was left by a crash, and is taken over.
    """
    files.locks.mkdir(parents=True, exist_ok=True)
    mine = files.locks / f"{uuid.uuid4()}.json"
    for attempt in range(_ATTEMPTS):
        _refuse_if_held(files, mine)
        _write(mine)
        try:
            _refuse_if_held(files, mine)
            break
        except Conflict:
            mine.unlink(missing_ok=True)
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(random.uniform(0.01, 0.2) * (attempt + 1))  # noqa: S311 -- only to get out of step
    try:
        yield
    finally:
        mine.unlink(missing_ok=True)


def holders(files: StackFiles) -> list[Holder]:
    found = []
    for path in sorted(files.locks.glob("*.json")) if files.locks.is_dir() else []:
        try:
            doc = json.loads(path.read_bytes())
            found.append(
                Holder(path, int(doc["pid"]), str(doc["username"]), str(doc["hostname"]), str(doc["timestamp"]))
            )
        except FileNotFoundError:
            continue  # released meanwhile
        except (ValueError, KeyError, TypeError):
            found.append(Holder(path, 0, "somebody", "an unknown host", "an unknown time"))
    return found


def break_locks(files: StackFiles) -> tuple[str, ...]:
    """Removes every lock of the stack, and says whose they were."""
    broken = holders(files)
    for holder in broken:
        holder.path.unlink(missing_ok=True)
    return tuple(str(holder) for holder in broken)


def _refuse_if_held(files: StackFiles, mine: Path) -> None:
    others = []
    for holder in holders(files):
        if holder.path == mine:
            continue
        if holder.is_gone():
            holder.path.unlink(missing_ok=True)
        else:
            others.append(holder)
    if others:
        raise Conflict(
            "the stack is locked by " + "; ".join(map(str, others)),
            where=f"{files.project}/{files.stack}",
            remedy="wait for that run to end; if there is none any more, remove "
            + ", ".join(str(holder.path) for holder in others),
        )


def _write(path: Path) -> None:
    content = {
        "pid": os.getpid(),
        "username": _username(),
        "hostname": socket.gethostname(),
        "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
    }
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, separators=(",", ":")), encoding="utf-8")
    temporary.replace(path)


def _username() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
