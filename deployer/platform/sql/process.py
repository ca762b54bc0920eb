"""Computes SQL of specs and policies in a process of its own, with limits of memory and time.

A scalar function may take any memory (`repeat('a', 2000000000)`), a planner any time or stack, and neither can be
stopped from within. The process starts when it is first needed. It gets only the environment variables that Python
needs. It is ended when it exceeds a limit, and reused otherwise. It ends with this process at the latest.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deployer.platform.sql.worker import read_frame, write_frame

if TYPE_CHECKING:
    import pyarrow as pa

MEMORY = 2**30  #: bytes that one expression or query may take
ANSWER = 2**28  #: bytes that its values or rows may have
SECONDS = 20.0  #: seconds of one request: a batch of rows, or the rows of a plan
_START_SECONDS = 60.0

#: variables that Python and its libraries need; none contains a secret
_NEEDED = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "SYSTEMROOT", "TMPDIR", "TZ")
_FEW_THREADS = {"TOKIO_WORKER_THREADS": "2", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2", "RUST_BACKTRACE": "0"}


class OverLimit(Exception):
    """The SQL exceeds the limit of memory or time. The message completes "it ..."."""


class SqlFailed(Exception):
    """DataFusion reports an error in the SQL, or a failure for some row."""


def compute(rows: pa.Table, expression: str) -> pa.ChunkedArray:
    """Returns one value of the expression for each row. Raises SqlFailed and OverLimit."""
    return _shared.ask({"expression": expression}, [rows])["value"]


def query(text: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Returns the rows of a SELECT over the tables. Raises SqlFailed and OverLimit."""
    return _shared.ask({"query": text, "names": list(tables)}, list(tables.values()))


class SqlProcess:
    """The process, which serves one request at a time. It is safe for threads and after a fork."""

    def __init__(self, memory: int = MEMORY, seconds: float = SECONDS, answer: int = ANSWER) -> None:
        self.memory, self.seconds, self.answer = memory, seconds, answer
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._lock = threading.Lock()

    def ask(self, header: Mapping[str, Any], tables: list[pa.Table]) -> pa.Table:
        """Returns the table that answers a request. Raises SqlFailed and OverLimit."""
        if self._owner not in (0, os.getpid()):  # a child after a fork: the parent has the process, and maybe the lock
            self._process, self._owner, self._lock = None, 0, threading.Lock()
        with self._lock:
            process = self._started()
            try:
                answer, found = self._answered(process, header, tables)
            except BaseException:
                self._end()
                raise
        if "error" in answer:
            raise SqlFailed(answer["error"])
        if "too_large" in answer:
            raise OverLimit(f"gives more than {self.answer / 2**20:,.0f} MiB")
        [table] = found
        return table

    def close(self) -> None:
        """Ends the process, if there is one."""
        if self._owner == os.getpid():
            with self._lock:
                self._end()

    def _answered(
        self, process: subprocess.Popen[bytes], header: Mapping[str, Any], tables: list[pa.Table]
    ) -> tuple[dict[str, Any], list[pa.Table]]:
        assert process.stdin is not None  # noqa: S101
        try:
            write_frame(process.stdin, header, tables)
            return self._read(process, self.seconds)
        except (EOFError, BrokenPipeError):
            raise OverLimit(self._how_it_ended(process)) from None

    def _how_it_ended(self, process: subprocess.Popen[bytes]) -> str:
        code = process.wait()
        if code == -signal.SIGABRT:
            return f"needs more than {self.memory / 2**20:,.0f} MiB of memory"
        named = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"ends the process that computes it ({named})"

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._end()
        package = Path(__file__).resolve().parents[3]
        environment = {name: os.environ[name] for name in _NEEDED if name in os.environ}
        paths = (str(package), *filter(os.path.isabs, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "deployer.platform.sql.worker", str(self.memory), str(self.answer)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**environment, **_FEW_THREADS, "PYTHONPATH": os.pathsep.join(paths)},
            cwd="/",
            start_new_session=True,  # only this process handles Ctrl-C; it then ends the other one
        )
        self._owner = os.getpid()
        try:
            self._read(self._process, _START_SECONDS)
        except (EOFError, OverLimit):
            self._end()
            raise SqlFailed("the process that computes SQL does not start") from None
        except BaseException:
            self._end()
            raise
        return self._process

    def _read(self, process: subprocess.Popen[bytes], seconds: float) -> tuple[dict[str, Any], list[pa.Table]]:
        assert process.stdout is not None  # noqa: S101
        descriptor, until = process.stdout.fileno(), time.monotonic() + seconds
        polled = select.poll()
        polled.register(descriptor, select.POLLIN)

        def read(size: int) -> bytes:
            parts = bytearray()
            while len(parts) < size:
                left = until - time.monotonic()
                if left <= 0 or not polled.poll(1000 * left):
                    raise OverLimit(f"takes more than {seconds:g} s")
                part = os.read(descriptor, min(size - len(parts), 2**20))
                if not part:
                    raise EOFError
                parts += part
            return bytes(parts)

        return read_frame(read)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


_shared = SqlProcess()
atexit.register(_shared.close)
