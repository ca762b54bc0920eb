"""The process that runs the program.

The SDK's services reach the engine through the channel. The engine does not trust this process, because the program can
change all of it. The process is a fork of `isolation.host`, which imports this module.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import runpy
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import grpc
import pulumi
from google.protobuf import empty_pb2
from pulumi.runtime import config as runtime_config
from pulumi.runtime import resource as sdk_resource
from pulumi.runtime import settings as runtime_settings
from pulumi.runtime.proto import engine_pb2, source_pb2
from pulumi.runtime.stack import run_in_stack

from deployer.engine.program.frames import (
    ANSWER,
    ANSWER_HEADER,
    CALL,
    CALL_HEADER,
    DONE,
    ENGINE,
    FAILED,
    MONITOR,
    WARNING,
    Method,
    methods,
)
from deployer.engine.program.service import RefusedCall
from deployer.engine.project.hidden_config import hidden_config
from deployer.engine.steps.scheduling import busy_interpreter
from deployer.errors import DeployerError, EngineFailed
from deployer.platform.isolation.carried import error_as_bytes
from deployer.platform.isolation.channel import Channel
from deployer.platform.isolation.sources import import_from_sources
from deployer.platform.isolation.surroundings import open_memory
from deployer.specs.loading.known import learn

#: the message of an unhandled rejected promise; a program can have many
_LONGEST_WARNING = 4_000


def main(channel: Channel) -> None:
    """Runs the program that the first frame names, and reports its outcome."""
    with busy_interpreter():
        asked: dict[str, Any] = json.loads(channel.receive() or b"{}")
        open_memory()  # a program may read its own
        learn(asked["known"])
        _run_to_the_end(asked, _Calls(channel))


def _run_to_the_end(asked: Mapping[str, Any], calls: _Calls) -> None:
    try:
        _run(asked, calls)
    except DeployerError as error:
        calls.end(FAILED + error_as_bytes(error))
    else:
        calls.end(DONE)


def _run(asked: Mapping[str, Any], calls: _Calls) -> None:
    runtime_settings.ROOT.set(None)
    runtime_settings.configure(
        runtime_settings.Settings(
            project=asked["project"],
            stack=asked["stack"],
            monitor=_Service(calls, MONITOR),
            engine=_Service(calls, ENGINE),
            parallel=asked["parallel"],
            dry_run=asked["dry_run"],
            organization="organization",
            root_directory=asked["root_directory"],
        )
    )
    runtime_config.set_all_config(asked["config"], asked["secret_keys"])
    main, folder, project = Path(asked["main"]), Path(asked["folder"]), Path(asked["root_directory"])
    import_from_sources(project)
    os.chdir(folder)
    sys.path[:] = [str(folder), *sys.path, str(project)]
    sdk_resource._get_stack_trace = _short_stack_traces()
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _, context: calls.warn(f"{context['message']}: {context.get('exception')}"))
    loop.set_default_executor(_CallsFirst())
    try:
        asyncio.set_event_loop(loop)
        with hidden_config(asked["hidden_keys"]):
            loop.run_until_complete(run_in_stack(lambda: _to_the_end(main)))
    except BaseException as error:
        _ignore_followers(loop)
        if isinstance(error, DeployerError):
            raise
        raise _failure(error, folder, project, is_sealed=bool(asked["hidden_keys"])) from None
    finally:
        with contextlib.suppress(Exception):
            _drain(loop)
        _ignore_followers(loop)
        asyncio.set_event_loop(None)
        loop.close()


# --- calls of the engine


class _Called(BaseException):
    """Leaves the event loop's thread: the call was sent, and resumes when its `answer` arrives."""

    def __init__(self, answer: Future[bytes]) -> None:
        super().__init__()
        self.answer = answer


_here = threading.local()


class _CallsFirst(ThreadPoolExecutor):
    """Makes the SDK's calls without threads: a call is sent immediately, and resumes when its answer arrives."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def go_on(_: Future[bytes]) -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:
                future.set_exception(error)

        _here.sends_only = True
        try:
            result = fn(*args, **kwargs)
        except _Called as called:
            _here.sends_only = False
            called.answer.add_done_callback(go_on)
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(result)
        finally:
            _here.sends_only = False
        return future


class _Calls:
    """The pending calls. A thread reads the answers, and ends the process when the engine no longer exists."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._last, self._ended = 0, False
        self._waiting: dict[int, Future[bytes]] = {}
        self._sent: dict[int, tuple[Any, Future[bytes]]] = {}  #: by the identity of the request, which is stored too
        self._reader = threading.Thread(target=self._read, daemon=True, name="answers")
        self._reader.start()

    def call(self, method: Method, request: Any) -> Any:
        """Returns the answer. In the event loop's thread it raises `_Called` once, after the request was sent."""
        sent = self._sent.pop(id(request), None)
        if sent is None:
            answer = self._send(method, request)
            if getattr(_here, "sends_only", False):
                self._sent[id(request)] = (request, answer)
                raise _Called(answer)
        else:
            answer = sent[1]
        while threading.current_thread() is self._reader and not answer.done():
            self._take_one()
        return method.answer.FromString(answer.result())

    def end(self, frame: bytes) -> None:
        """Sends the last frame. Threads and exit handlers of the program may still run for a moment."""
        self._ended = True
        self._channel.send(frame)

    def warn(self, text: str) -> None:
        self._channel.send(WARNING + text[:_LONGEST_WARNING].encode(errors="replace"))

    def _send(self, method: Method, request: Any) -> Future[bytes]:
        answer: Future[bytes] = Future()
        with self._lock:
            self._last += 1
            number = self._last
            self._waiting[number] = answer
        self._channel.send(CALL + CALL_HEADER.pack(number, method.number) + request.SerializeToString())
        return answer

    def _read(self) -> None:
        while not self._ended:
            self._take_one()

    def _take_one(self) -> None:
        frame = self._channel.receive()
        if frame is None:
            if self._ended:
                return
            os._exit(1)
        (number,) = ANSWER_HEADER.unpack_from(frame, 1)
        answer, content = self._waiting.pop(number), frame[1 + ANSWER_HEADER.size :]
        if frame[:1] == ANSWER:
            answer.set_result(content)
        else:
            refused = json.loads(content)
            answer.set_exception(RefusedCall(refused["details"], grpc.StatusCode[refused["code"]]))


class _Service:
    """One of the SDK's services, as an object with its methods."""

    def __init__(self, calls: _Calls, name: str) -> None:
        self._calls, self._methods = calls, {each.name: each for each in methods() if each.service == name}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = self._methods.get(name)
        if method is None:
            raise AttributeError(name)
        return lambda request, *_, **__: self._call(method, request)

    def _call(self, method: Method, request: Any) -> Any:
        # the SDK sends four debug messages for each resource, which nothing reads
        if method.name == "Log" and request.severity == engine_pb2.DEBUG and not request.ephemeral:
            return empty_pb2.Empty()
        return self._calls.call(method, request)


# --- the program


async def _to_the_end(main: Path) -> None:
    """Executes the program and waits for the tasks that it started.

    The SDK waits too, but examines every outstanding task again whenever one ends, which is quadratic in resources. The
    SDK finds and reports failed tasks.
    """
    _execute(main)
    while pending := [task for task in list(runtime_settings.SETTINGS.outputs) if not task.done()]:
        done, _ = await asyncio.wait(pending, return_when=asyncio.FIRST_EXCEPTION)
        if any(task.cancelled() or task.exception() for task in done):
            return


def _execute(main: Path) -> None:
    """Runs the program from its source. For a folder, Python would use bytecode whose age it compares only to the
    second."""
    runpy.run_path(str(main / "__main__.py" if main.is_dir() else main), run_name="__main__")


def _ignore_followers(loop: asyncio.AbstractEventLoop) -> None:
    """Once the program's error is known, unhandled outputs with the same error are not reported."""
    loop.set_exception_handler(lambda _, __: None)


def _drain(loop: asyncio.AbstractEventLoop) -> None:
    """Ends the tasks of a failed program, without the warnings that asyncio prints about them."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())


def _short_stack_traces() -> Callable[[], source_pb2.StackTrace]:
    """Returns a function that finds only the line that declares a resource. The SDK's own function makes the whole
    stack with every file's URI, which takes an eighth of the time of a preview of a thousand resources. The engine uses
    only the line."""

    @cache
    def uri(file: str) -> str:
        return Path(file).as_uri() if Path(file).is_absolute() else ""  # such as <string>

    def short() -> source_pb2.StackTrace:
        """Returns the caller of the third constructor, counted from the innermost: two of the SDK, then the resource's
        own class."""
        frame: FrameType | None = sys._getframe(1)
        constructors = 0
        while frame is not None and constructors < 3:
            constructors += frame.f_code.co_name == "__init__"
            frame = frame.f_back
        if frame is None:
            return source_pb2.StackTrace()
        position = source_pb2.SourcePosition(uri=uri(frame.f_code.co_filename), line=frame.f_lineno)
        return source_pb2.StackTrace(frames=[source_pb2.StackFrame(pc=position)])

    return short


def _failure(error: BaseException, folder: Path, project: Path, *, is_sealed: bool) -> EngineFailed:
    """Returns an error of the program in one line, with the innermost line in the program's own files."""
    remedy = "correct the program"
    if is_sealed:
        remedy += "; a preview decrypts no secret configuration: read it with require_secret and the like"
    if isinstance(error, SyntaxError) and error.filename:
        return EngineFailed(
            f"the program does not parse: {error.msg}",
            where=f"{error.filename}:{error.lineno}",
            remedy="correct that line",
        )
    if isinstance(error, SystemExit):
        return EngineFailed(f"the program ended itself with {error.code!r}", where=_place(error, folder, project))
    if isinstance(error, pulumi.RunError):
        return EngineFailed(str(error), where=_place(error, folder, project))
    text = str(error) or "no message"
    kind = "" if type(error) is Exception else f"{type(error).__name__}: "
    return EngineFailed(f"the program failed: {kind}{text}", where=_place(error, folder, project), remedy=remedy)


def _place(error: BaseException, folder: Path, project: Path) -> str | None:
    seen: set[int] = set()
    current: BaseException | None = error
    best: str | None = None
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        for frame in traceback.extract_tb(current.__traceback__):
            file = Path(frame.filename)
            own = file.is_relative_to(folder) or (file.is_relative_to(project) and "site-packages" not in file.parts)
            if own and not file.is_relative_to(Path(__file__).parent):
                best = f"{file}:{frame.lineno}"
        current = current.__cause__ or current.__context__
    return best
