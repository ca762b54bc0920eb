"""Excludes other processes from a rewrite: by a kernel lock on a local disk, by a lease in a bucket.

A kernel lock ends with its process, so its next holder resumes the work. A lease expires, and its former holder may
only have stalled. So the next holder begins again at another place, and the dataset that the former holder may still
write belongs to no table. When a cluster reports that a job has ended, the job no longer writes: its lease is taken
over immediately, and its work is resumed.
"""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import platform
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deployer.errors import Conflict, Corrupt, DeployerError, Refused
from deployer.platform.files.private import open_lock

if TYPE_CHECKING:
    from deployer.platform.storage.s3_objects import S3Objects


@dataclass(frozen=True, slots=True)
class Holder:
    """The rewriting process: its attempt at a job, if it has one, and the attempts that have ended."""

    attempt: str = ""
    over: frozenset[str] = frozenset()


NO_JOB = Holder()
LEASE = 60.0  #: seconds that a lease lasts unless it is renewed
SKEW = 30.0  #: seconds by which clocks may differ


@contextmanager
def held(location: str, path: str, holder: Holder = NO_JOB, lease: float = LEASE) -> Iterator[bool]:
    """Holds the lock `path` of the dataset at `location`. Yields False when another holder's lease was taken over; then
    the rewrite has to begin again.

    Raises Conflict while another process holds it.
    """
    if location.startswith("s3://"):
        from deployer.platform.storage.s3_objects import S3Objects

        with _leased(S3Objects(location), path, location, holder, lease) as is_first:
            yield is_first
        return
    file = Path(location) / path
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = open_lock(file)
    except OSError as error:
        raise Refused(
            f"the lock of a rewrite cannot be opened: {error}",
            where=file,
            remedy="find out what created it; remove it when no rewrite runs",
        ) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _taken(location, "") from None
        yield True
    finally:
        os.close(handle)


@contextmanager
def _leased(objects: S3Objects, path: str, location: str, holder: Holder, lease: float) -> Iterator[bool]:
    token, stopped = uuid.uuid4().hex, threading.Event()
    taken, is_first = _taken_up(objects, path, location, holder, token, lease)
    tag: str | None = taken

    def renew() -> None:
        nonlocal tag
        while tag is not None and not stopped.wait(lease / 4):
            try:
                tag = objects.replace(path, _lease(holder, token, lease), tag)
            except DeployerError:
                continue  # no answer: the next renewal may succeed in time

    renewing = threading.Thread(target=renew, name="lease", daemon=True)
    renewing.start()
    try:
        yield is_first
    finally:
        stopped.set()
        renewing.join()
        if tag is not None:
            objects.delete([path])


def _taken_up(objects: S3Objects, path: str, location: str, own: Holder, token: str, lease: float) -> tuple[str, bool]:
    """Returns the tag of the held lease, and whether no process that may still write had one."""
    found, is_over = objects.tagged(path), False
    if found is not None:
        try:
            other: dict[str, Any] = json.loads(found[0])
            until, holder = float(other["until"]), str(other["holder"])
            is_over = other.get("attempt") in own.over
        except (KeyError, TypeError, ValueError, RecursionError):
            raise Corrupt(
                "the lease of an unfinished rewrite cannot be read", where=f"{location}/{path}", remedy="delete it"
            ) from None
        if not is_over and until + SKEW > time.time():
            raise _taken(location, f", which is {holder}")
    tag = objects.replace(path, _lease(own, token, lease), None if found is None else found[1])
    if tag is None:
        raise _taken(location, "")
    return tag, found is None or is_over


def _lease(own: Holder, token: str, lease: float) -> bytes:
    holder = f"{getpass.getuser()}@{platform.node()} (process {os.getpid()})"
    until = time.time() + lease
    return json.dumps({"holder": holder, "attempt": own.attempt, "until": until, "token": token}).encode()


def _taken(location: str, holder: str) -> Conflict:
    return Conflict(f"another process rewrites the table{holder}", where=location, remedy="wait until it is done")
