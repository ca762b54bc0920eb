"""Starts and ends processes that run code of a project (see `host`)."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from deployer.errors import DeployerError, EngineFailed
from deployer.platform.isolation.channel import Channel
from deployer.platform.isolation.output import relay
from deployer.platform.isolation.surroundings import close_memory, environment_for_project_code

#: largest bytes of one message of a project's code; a resource or the findings of a rule are much smaller
LONGEST_MESSAGE = 64 << 20
#: time limit for threads and exit handlers after a process has reported its result
PATIENCE_SECONDS = 5.0
_STOP_SECONDS = 1.0

OnLine = Callable[[str], None]

#: the code that `command_of` runs: deployer of this process, independent of its place and of the current folder
_BOOT = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("deployer", sys.argv[1])
sys.modules["deployer"] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
importlib.import_module(sys.argv[2]).main(sys.argv[3:])
"""


class Isolated:
    """A process that runs `entry`, `MODULE:FUNCTION` of deployer, with its side of the channel as the argument.

    Code of the project makes the frames of `channel`. `on_line` gets each line that the process or its children print,
    in a thread of its own. The context kills the process, unless `end` was called. Raises EngineFailed when the process
    cannot be started.
    """

    def __init__(self, entry: str, on_line: OnLine) -> None:
        ours, theirs = socket.socketpair()
        output, writing = os.pipe()
        self.channel = Channel(ours, LONGEST_MESSAGE)
        close_memory()
        try:
            self._host = _host()
            self._pid: int | None = self._host.start(entry, theirs.fileno(), writing)
        except BaseException:
            self.channel.close()
            os.close(output)
            raise
        finally:
            theirs.close()
            os.close(writing)
        self._stop_relay = relay(output, on_line)

    def __enter__(self) -> Isolated:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(0)

    def end(self, patience: float = PATIENCE_SECONDS) -> str:
        """Waits for the end, then kills remaining processes; returns a text about how the process ended, empty for a
        normal end."""
        if self._pid is None:
            return ""
        pid, self._pid = self._pid, None
        self.channel.finish()
        try:
            ended = self._host.end(pid, patience)
        finally:
            self._stop_relay()
            self.channel.close()
        if ended is None:
            return "the process that started it was killed"
        if ended["killed"]:
            return f"it was still running after {patience:g} s and was killed"
        status = int(ended["status"])
        if status < 0:
            return f"signal {signal.strsignal(-status) or -status}"
        return f"exit code {status}" if status else ""


def prepare(*modules: str) -> None:
    """Starts the host, which imports these modules in the background, so that a process that starts later has them.

    `MODULE:FUNCTION` also calls a function, which keeps what it returns.
    """
    with contextlib.suppress(DeployerError):  # reported when a process is started
        _host().load(modules)


# --- the host


class _Host:
    """The host of this process. Its socket is used by one thread at a time."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._lock = threading.Lock()
        self._loaded: set[str] = set()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                command_of("deployer.platform.isolation.host", str(theirs.fileno())),
                pass_fds=[theirs.fileno()],
                env=environment_for_project_code(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,  # no terminal, and only the command handles Ctrl-C
            )
        self._control = ours
        self._answers = ours.makefile("rb")

    @property
    def is_usable(self) -> bool:
        """Returns whether the process runs and belongs to this process; that of a fork does not."""
        return self.owner == os.getpid() and self._process.poll() is None

    def load(self, modules: Sequence[str]) -> None:
        new = [module for module in modules if module not in self._loaded]
        if not new:
            return
        self._loaded.update(new)
        with self._lock, contextlib.suppress(OSError):
            self._control.sendall(_line({"load": new}))

    def start(self, entry: str, channel: int, output: int) -> int:
        request = {"start": entry, "environment": environment_for_project_code(), "folder": str(Path.cwd())}
        answer = self._ask(request, channel, output)
        if answer is None:
            said = self.close()
            raise EngineFailed(f"no process can be started for the project's code{f': {said}' if said else ''}")
        return int(answer["pid"])

    def end(self, pid: int, seconds: float) -> dict[str, Any] | None:
        """Ends the process; returns how it ended, None when the host has ended."""
        answer = None
        try:
            answer = self._ask({"end": pid, "seconds": seconds})
        finally:
            if answer is None:  # the host has ended, or Ctrl-C ended the wait for it
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
        return answer

    def close(self) -> str:
        """Ends the host and all processes that it started; returns the last line that the host wrote, such as an import
        error."""
        if self.owner != os.getpid():
            return ""
        self._control.close()
        self._answers.close()
        try:
            _, said = self._process.communicate(timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, said = self._process.communicate()
        except ValueError:
            return ""  # it was closed before
        lines = said.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def _ask(self, request: dict[str, Any], *descriptors: int) -> dict[str, Any] | None:
        with self._lock:
            try:
                socket.send_fds(self._control, [_line(request)], descriptors)
                line = self._answers.readline()
            except OSError:
                return None
            except BaseException:
                self._process.kill()  # its answer would count as the answer to the next request
                raise
        answer: dict[str, Any] | None = json.loads(line) if line else None
        return answer


def _line(request: dict[str, Any]) -> bytes:
    return json.dumps(request).encode() + b"\n"


def command_of(module: str, *arguments: str, alone: bool = False) -> list[str]:
    """Returns a command that calls `main` of a module of deployer with these arguments.

    `alone`: the module needs only Python's own library, so that it starts faster.
    """
    package = Path(__file__).resolve().parents[2] / "__init__.py"
    return [sys.executable, *(("-I", "-S") if alone else ("-P",)), "-c", _BOOT, str(package), module, *arguments]


_current: _Host | None = None
_choosing = threading.Lock()


def _host() -> _Host:
    global _current
    with _choosing:
        if _current is None or not _current.is_usable:
            if _current is not None and _current.owner == os.getpid():
                _current.close()
            try:
                _current = _Host()
            except OSError as error:
                raise EngineFailed(f"no process can be started for the project's code: {error}") from error
        return _current


@atexit.register
def _close() -> None:
    if _current is not None:
        _current.close()
