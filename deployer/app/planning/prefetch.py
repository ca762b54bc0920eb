"""Live state that a second process reads while this process reads the specs: the two parts of a preview in parallel.

The second process is a fork that is made before heavy libraries are loaded. It reads the lake that Pulumi's state of
the stack names, and sends the result through a pipe. Where anything is not as expected (another root, an error, no
second processor), this process reads the lake itself and reports errors.
"""

from __future__ import annotations

import gc
import io
import mmap
import os
import pickle
import select
import signal
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copyreg import dispatch_table
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol

from deployer.app.stack.fast_path import Recorded, read_recorded
from deployer.app.workspace import Workspace
from deployer.live.model import LiveLake, LiveTable, TableStatistics
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.specs.model import Storage, TableSpec
from deployer.specs.types.types import Column
from deployer.specs.values.root import resolve_root

#: Classes with many instances. Unpickling them by their constructor takes half the time of the default of dataclasses.
_MANY = (Column, LiveTable, Storage, TableSpec, TableStatistics)

_PROGRESS = struct.Struct(
    "QQ"
)  #: in shared memory: how many tables the second process has read, and how many there are
_PROGRESS_SECONDS = 0.1  #: seconds between two reads of that, while this process waits


@dataclass(frozen=True, slots=True)
class Prefetched:
    """The state that was read ahead: the lake at `root`, an absolute path, and the contents of Pulumi's state."""

    root: str
    live: LiveLake
    recorded: Recorded


class Received(Protocol):
    """A function that waits for the second process and returns what it read; None when it read nothing."""

    def __call__(self, on_progress: OnProgress = no_progress) -> Prefetched | None: ...


def nothing_ahead(on_progress: OnProgress = no_progress) -> None:
    """Returns None: nothing was read ahead."""


@contextmanager
def reading_ahead(workspace: Workspace) -> Iterator[Received]:
    """Starts to read ahead. Inside the block, the yielded function waits for the result.

    The second process ends with the block, however the block ends.
    """
    if not workspace.project.backend_url.startswith("file://") or not _may_fork():
        yield nothing_ahead
        return
    progress = mmap.mmap(-1, _PROGRESS.size)
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiver)
        _send(workspace, sender, progress)
    os.close(sender)
    with os.fdopen(receiver, "rb") as pipe:
        try:
            yield lambda on_progress=no_progress: _received(pipe, progress, on_progress)
        finally:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _may_fork() -> bool:
    """Returns whether a fork is useful and safe. A fork has only the thread that made it, so no other thread may exist
    that could hold a lock."""
    if not sys.platform.startswith("linux") or len(os.sched_getaffinity(0)) < 2:
        return False
    try:
        return len(list(Path("/proc/self/task").iterdir())) == 1
    except OSError:
        return False


def _received(pipe: io.BufferedReader, progress: mmap.mmap, on_progress: OnProgress) -> Prefetched | None:
    """Returns what the second process sent. That process is a fork of this one, so its pickles can be trusted."""
    while on_progress is not no_progress and not select.select([pipe], [], [], _PROGRESS_SECONDS)[0]:
        done, total = _PROGRESS.unpack_from(progress)
        on_progress(Progress("reading live state", done, total or None, "tables" if total else ""))
    try:
        found = pickle.load(pipe)  # noqa: S301
    except (EOFError, pickle.UnpicklingError):
        return None  # the second process sent nothing
    return found if isinstance(found, Prefetched) else None


def _send(workspace: Workspace, sender: int, progress: mmap.mmap) -> None:
    """Runs the second process: it prints nothing, leaves no files and never returns."""
    try:
        for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
            signal.signal(stop, signal.SIG_DFL)
        gc.disable()
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        found = _read(workspace, lambda now: _PROGRESS.pack_into(progress, 0, now.done, now.total or 0))
        if found is not None:
            with os.fdopen(sender, "wb") as pipe:
                pipe.write(_pickled(found))
    finally:
        os._exit(0)


def _read(workspace: Workspace, on_progress: OnProgress) -> Prefetched | None:
    from deployer.provider.resources.run_context import Stores

    recorded = read_recorded(workspace.stack_ref)
    if len(recorded.roots) != 1:
        return None
    (declared,) = recorded.roots.values()
    if "://" in declared:
        return None
    root = resolve_root(workspace.dir, declared)
    return Prefetched(root, Stores(workspace.dir).live_lake(root, on_progress=on_progress), recorded)


def _pickled(found: Prefetched) -> bytes:
    written = io.BytesIO()
    pickler = pickle.Pickler(written, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = {**dispatch_table, **{kind: _by_constructor(kind) for kind in _MANY}}
    pickler.dump(found)
    return written.getvalue()


def _by_constructor(kind: type[Any]) -> Callable[[Any], tuple[type[Any], tuple[Any, ...]]]:
    values = attrgetter(*(field.name for field in fields(kind)))
    return lambda made: (kind, values(made))
