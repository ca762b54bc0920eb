"""Programs of Python in processes that start at once: forks of a process that has imported everything.

To import Lance, Arrow and deployer takes most of a second of processor time, and the gate starts hundreds of processes
to kill them, stop them, or have them race. Each is still a process of its own and a child of the test's process, with
its arguments, folder, environment and streams. On other systems than Linux they are started as ever.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import types
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import boto3

from deployer.platform.isolation.host import leave
from tests.state.aws_server import read_models_once

REPOSITORY = Path(__file__).resolve().parent.parent
#: What programs import; none of the modules that are run themselves.
LOADED = (
    "deployer.cli.main", "deployer.engine.embedded", "deployer.services.registry", "deployer.services.restore",
    "deployer.state.open_s3", "deployer.tables.admin.tables", "deployer.tables.append",
    "deployer.tables.maintenance.collect.garbage", "deployer.tables.maintenance.verify.verify", "lance", "pyarrow.compute", "pyarrow.dataset",
    "pyarrow.parquet", "tests.tables.lakes",
)  # fmt: skip
_SET_CHILD_SUBREAPER = 36  #: of linux/prctl.h


class Popen(subprocess.Popen[Any]):
    """`subprocess.Popen` of this Python with a module, a file or code to run, in the session of this process."""

    def _execute_child(self, args: Sequence[str], *others: Any) -> None:
        if sys.platform != "linux":
            super()._execute_child(args, *others)  # type: ignore[misc]
            return
        if args[0] != sys.executable:
            raise ValueError(f"this starts no {args[0]}")
        pipes = others[9:15]
        streams = [given if given != -1 else number for number, given in enumerate((pipes[0], pipes[3], pipes[5]))]
        folder, environment = others[4] or Path.cwd(), others[5] if others[5] is not None else os.environ
        wanted = {"command": [*map(str, args[1:])], "folder": str(folder), "environment": dict(environment)}
        try:
            self.pid = _server().start(wanted, streams)
            self._child_created = True
        finally:
            self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


def run(command: Sequence[str | Path], timeout: float = 600, **settings: Any) -> subprocess.CompletedProcess[Any]:
    """How such a program ends, however that is, with what it prints."""
    with Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **settings) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        finally:
            process.kill()
    return subprocess.CompletedProcess(command, process.returncode, out, err)


class _Server:
    """The process that forks. It ends with this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forks", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                cwd=REPOSITORY,
                env={**os.environ, "LANCE_LOG": "lance=off", "OPENBLAS_NUM_THREADS": "1"},
            )
        self._answers = self._ours.makefile("rb")
        atexit.register(self._end)

    def start(self, wanted: dict[str, Any], streams: list[int]) -> int:
        """The process id of a fork, which becomes a child of this process: an orphan, when this one adopts those."""
        data = json.dumps(wanted).encode()
        with self._lock:
            _adopt_orphans(True)
            try:
                socket.send_fds(self._ours, [len(data).to_bytes(4)], streams)
                self._ours.sendall(data)
                return int(self._answers.readline())
            finally:
                _adopt_orphans(False)

    def _end(self) -> None:
        self._ours.close()
        self._answers.close()
        self._process.wait()


@cache
def _server() -> _Server:
    return _Server()


def _adopt_orphans(adopts: bool) -> None:
    if ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, int(adopts), 0, 0, 0):
        raise OSError("this process cannot adopt orphans")


# --- the process that forks


def serve(control: socket.socket) -> None:
    """Forks for each request, until there are no more."""
    for module in LOADED:
        importlib.import_module(module)
    read_models_once()
    for service in ("dynamodb", "s3"):
        boto3.client(service, "eu-central-1", aws_access_key_id="test", aws_secret_access_key="test")
    # Nothing has begun a thread but Arrow's allocator, which takes care of forks.
    warnings.filterwarnings("ignore", "lance is not fork-safe|.*is multi-threaded, use of fork")
    gc.collect()
    gc.freeze()
    while True:
        head, streams, _, _ = socket.recv_fds(control, 4, 3)
        if not head:
            return
        wanted = json.loads(_read(control, int.from_bytes(head)))
        ours, theirs = os.pipe()
        between = os.fork()
        if between == 0:
            pid = os.fork()
            if pid == 0:
                for descriptor in (ours, theirs, control.fileno()):
                    os.close(descriptor)
                _live(wanted, streams)
            os.write(theirs, b"%d\n" % pid)
            os._exit(0)
        os.close(theirs)
        for stream in streams:
            os.close(stream)
        os.waitpid(between, 0)  # now its child is the test's
        control.sendall(os.read(ours, 100))
        os.close(ours)


def _read(control: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        parts += control.recv(size - len(parts))
    return bytes(parts)


def _live(wanted: dict[str, Any], streams: list[int]) -> NoReturn:
    """The whole life of a program."""
    code = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc]  # noqa: SIM115
        sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # type: ignore[misc]  # noqa: SIM115
        sys.stderr = sys.__stderr__ = open(2, "w", 1, errors="backslashreplace", closefd=False)  # type: ignore[misc]  # noqa: SIM115
        os.environ.clear()
        os.environ.update(wanted["environment"])
        os.chdir(wanted["folder"])
        time.tzset()
        tempfile.tempdir = None
        from deployer.platform.system import failpoints

        failpoints._SETTING = os.environ.get("DEPLOYER_FAILPOINT", "")
        code = _ran(wanted["command"])
    except BaseException:
        traceback.print_exc()
    finally:
        leave(code)


def _ran(command: list[str]) -> int:
    """The exit code of the program."""
    try:
        if command[0] == "-m":
            sys.argv, sys.path[0] = command[1:], str(Path.cwd())
            runpy.run_module(command[1], run_name="__main__", alter_sys=True)
        elif command[0] == "-c":
            sys.argv, sys.path[0] = ["-c", *command[2:]], ""
            sys.modules["__main__"] = module = types.ModuleType("__main__")
            exec(compile(command[1], "<string>", "exec"), module.__dict__)  # noqa: S102
        else:
            sys.argv, sys.path[0] = command, str(Path(command[0]).parent)
            runpy.run_path(command[0], run_name="__main__")
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a run in the background ignores
    serve(socket.socket(fileno=int(sys.argv[1])))
