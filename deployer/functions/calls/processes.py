"""Calls with a timeout.

They run in a process of their own, which is killed when a call takes longer. In Python, a call cannot be ended from
outside: a thread cannot be killed, and an alarm reaches only the main thread and no code in C. So the function is set
up once in a process; a killed process is replaced before the next call.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa

from deployer.errors import FunctionFailed
from deployer.functions.calls.failures import FailureLog
from deployer.functions.calls.messages import ERROR, unpacked
from deployer.functions.model import UDF
from deployer.platform.isolation.process import command_of
from deployer.platform.isolation.surroundings import environment_for_project_code
from deployer.platform.system.clock import Clock
from deployer.platform.system.retry import Backoff

CHILD = "deployer.functions.calls.child"
_PATIENCE = 5.0  #: seconds for `teardown`


class ProcessEnded(RuntimeError):
    """The process of the function ended during a call."""


class ProcessRunner:
    """Calls the function in a process of its own (see `RowRunner`, `ArrayRunner`); a call that exceeds the timeout
    raises TimeoutError."""

    def __init__(self, udf: UDF, clock: Clock) -> None:
        self._udf, self._clock = udf, clock
        self._timeout = udf.timeout
        self._child: _Child | None = _Child(udf)

    def call_rows(self, columns: Sequence[list[Any]], rows: int, log: FailureLog, first: int) -> list[Any]:
        """Calls the function for each row (see `RowRunner`). The process gets all rows at once, and returns one value
        after the other."""
        values: list[Any] = []
        calls = list(zip(*columns, strict=True))
        try:
            while len(values) < rows:
                failed = self._stream(calls[len(values) :], values)
                for row, error in failed:  # after the process has answered all calls that were sent
                    values[row] = self._repeated(calls[row], error, first + row, log)
        except FunctionFailed:
            self._kill()
            raise
        return values

    def _stream(self, calls: Sequence[Any], values: list[Any]) -> list[tuple[int, Exception]]:
        """Adds the values of the calls up to the one that ended the process; returns the rows that failed."""
        failed: list[tuple[int, Exception]] = []
        child = self._alive()
        child.send(calls)
        for outcome in self._outcomes(child, len(calls)):
            if isinstance(outcome, _Raised):
                failed.append((len(values), outcome.error))
                values.append(None)
                if not self._udf.on_error.rules:
                    break  # the first failure ends the work
            else:
                values.append(outcome)
        return failed

    def call_arrays(self, part: pa.RecordBatch) -> Any:
        """Calls the function for a batch (see `ArrayRunner`)."""
        arguments = (part,) if self._udf.form == "batch" else tuple(part.columns)
        return self._single(arguments)

    def close(self) -> None:
        """Ends the process after it has called the instance's `teardown`."""
        child, self._child = self._child, None
        if child is not None:
            child.end(_PATIENCE)

    def _alive(self) -> _Child:
        if self._child is None:
            self._child = _Child(self._udf)
        return self._child

    def _repeated(self, arguments: Sequence[Any], error: Exception, row: int, log: FailureLog) -> Any:
        """Repeats a failed call, and returns its value; None where it fails again, or is not repeated."""
        attempts = 1
        while (rule := self._udf.on_error.retry_for(error, attempts)) is not None:
            Backoff(rule.first_pause, rule.longest_pause).wait(attempts, self._clock)
            attempts += 1
            try:
                return self._single(arguments)
            except Exception as again:
                error = again
        log.decide(row, error, attempts)
        return None

    def _single(self, arguments: Sequence[Any]) -> Any:
        child = self._alive()
        child.send([arguments])
        outcome = next(iter(self._outcomes(child, 1)))
        if isinstance(outcome, _Raised):
            raise outcome.error
        return outcome

    def _outcomes(self, child: _Child, calls: int) -> Iterable[Any]:
        for _ in range(calls):
            try:
                kind, value = child.receive(self._timeout)
            except TimeoutError:
                self._kill()
                yield _Raised(TimeoutError(f"the call took longer than {self._timeout:g} s"))
                return
            except EOFError:
                self._child = None
                yield _Raised(ProcessEnded(f"the process of the function ended: {child.end(_PATIENCE)}"))
                return
            yield _Raised(value) if kind == ERROR else value

    def _kill(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end(0)


class _Raised:
    """An exception as the outcome of a call."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class _Child:
    """The process. Its constructor sets the function up, and raises the errors of the set-up."""

    def __init__(self, udf: UDF) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                command_of(CHILD, str(theirs.fileno())),
                pass_fds=[theirs.fileno()],
                env=environment_for_project_code(),
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # only the job handles Ctrl-C; it ends this process
            )
        self._connection = Connection(ours.detach())
        try:
            self._connection.send_bytes(pickle.dumps([each or os.getcwd() for each in sys.path]))  # noqa: PTH109
            self._connection.send_bytes(pickle.dumps(udf))
            kind, value = self.receive(None)
        except EOFError:
            raise ProcessEnded(f"the process of the function ended: {self.end(_PATIENCE)}") from None
        except BaseException:
            self.end(0)
            raise
        if kind == ERROR:
            self.end(0)
            raise value

    def send(self, calls: Sequence[Sequence[Any]]) -> None:
        """Sends the arguments of calls. Calls that were sent before are answered first."""
        with suppress(
            BrokenPipeError, ConnectionResetError
        ):  # the end of the process is found when an answer is awaited
            self._connection.send_bytes(pickle.dumps(calls))

    def receive(self, timeout: float | None) -> tuple[str, Any]:
        """Returns the next answer. Raises TimeoutError when none arrives within this many seconds, EOFError when the
        process has ended."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if deadline is not None and not self._connection.poll(max(0.0, deadline - time.monotonic())):
            raise TimeoutError
        try:
            return unpacked(self._connection.recv_bytes())
        except OSError:
            raise EOFError from None

    def end(self, patience: float) -> str:
        """Gives the process this many seconds to end by itself, then ends it; returns how it ended."""
        self._connection.close()
        try:
            status = self._process.wait(patience) if patience else None
        except subprocess.TimeoutExpired:
            status = None
        if status is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            status = self._process.wait()
        return f"signal {signal.strsignal(-status)}" if status < 0 else f"exit code {status}"
