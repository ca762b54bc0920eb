"""The host: a process without secrets, memory or open files of the command, whose forks run code of the project.

It imports the modules that such code needs once, so that each fork has them, and does not run the code itself. Requests
and answers are lines of JSON over a Unix socket, one after the other:

    {"load": ["MODULE" or "MODULE:FUNCTION", …]}
        imports them, where they are installed, and calls the functions, which keep what they return; there is no answer
    {"start": "MODULE:FUNCTION", "environment": {…}, "folder": PATH}
        comes with a channel's and an output's descriptor; {"pid": PID}
    {"end": PID, "seconds": S}
        waits for the process, then kills it, its group and what it left elsewhere; {"status": CODE, "killed": BOOL}

The end of the socket ends the host and all that it started.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, TextIO

from deployer.platform.isolation.channel import Channel
from deployer.platform.isolation.orphans import end_orphans, has_ended
from deployer.platform.isolation.surroundings import adopt_orphans, close_memory

_MOST_BYTES = 1 << 16
#: the command's messages are trusted, and long for a lake of many tables
_FROM_COMMAND = 1 << 31
_LOOK_SECONDS = 0.002
#: As in the command itself: modules make no garbage, and garbage collection while they load takes time.
_COLLECT = (500_000, 50, 50)

Main = Callable[[Channel], None]


def main(arguments: Sequence[str]) -> NoReturn:
    """Serves requests until the command ends; the argument is the descriptor of the socket."""
    gc.set_threshold(*_COLLECT)
    control = socket.socket(fileno=int(arguments[0]))
    close_memory()
    adopt_orphans()
    children: set[int] = set()
    try:
        for request, descriptors in _requests(control):
            if "load" in request:
                for name in request["load"]:
                    with contextlib.suppress(Exception):  # the later import raises the error
                        _load(name)
                continue
            if "start" in request:
                answer: dict[str, Any] = {"pid": _start(request, control, *descriptors)}
                children.add(answer["pid"])
            else:
                answer = _end(request["end"], request["seconds"])
                children.discard(request["end"])
                end_orphans(children)
            control.sendall(json.dumps(answer).encode() + b"\n")
    except BaseException:
        traceback.print_exc()
    finally:
        for pid in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        end_orphans(())
        os._exit(0)


def _requests(control: socket.socket) -> Iterator[tuple[dict[str, Any], list[int]]]:
    """Requests with their descriptors. Only one with descriptors is answered before the next is sent."""
    rest, descriptors = b"", []
    while True:
        data, received, _, _ = socket.recv_fds(control, _MOST_BYTES, 2)
        if not data:
            return
        descriptors += received
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield json.loads(line), descriptors
        if lines:
            descriptors = []


def _load(name: str) -> None:
    """Imports a module, and calls the function if one is named."""
    module, _, function = name.partition(":")
    loaded = importlib.import_module(module)
    if function:
        getattr(loaded, function)()
    else:
        getattr(loaded, "__all__", None)  # Pulumi runs a package of its SDKs at the first look-up of an attribute


def _start(request: dict[str, Any], control: socket.socket, channel: int, output: int) -> int:
    module, _, name = request["start"].partition(":")
    function: Main = getattr(importlib.import_module(module), name)
    pid = os.fork()
    if pid == 0:
        _live(function, request, control, channel, output)
    os.close(channel)
    os.close(output)
    return pid


def _live(function: Main, request: dict[str, Any], control: socket.socket, channel: int, output: int) -> NoReturn:
    """Runs a fork from its start to its end. The fork has no terminal, and its output goes to the command."""
    code = 1
    try:
        os.setsid()
        control.close()
        os.set_inheritable(channel, False)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        sys.stdout, sys.stderr = _writing(1), _writing(2)
        function(Channel(socket.socket(fileno=channel), _FROM_COMMAND))
        code = 0
    except SystemExit:
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        leave(code)


def _writing(descriptor: int) -> TextIO:
    return open(descriptor, "w", 1, "utf-8", "backslashreplace", closefd=False)


def leave(code: int) -> NoReturn:
    """Ends a fork as Python ends a process, without destroying the interpreter."""
    try:
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _end(pid: int, seconds: float) -> dict[str, Any]:
    """Waits for a process to end, and kills it after that many seconds together with the rest of its group."""
    until = time.monotonic() + seconds
    while not (ended := has_ended(pid)) and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
    # The system reserves its number until it is waited for, so that no other process can be killed.
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return {"status": os.waitstatus_to_exitcode(status), "killed": not ended}
