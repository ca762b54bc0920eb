"""Runs the stack's program in a process of its own, whose calls this process answers.

As under the CLI, the program reaches the engine only by Pulumi's protocol. Changes that the program makes to its own
process do not affect the engine, and so do not affect a plan.
"""

from __future__ import annotations

import json
import struct
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from deployer.engine.interfaces.engine import PROGRAM_PROCESS, ProgramOutput
from deployer.engine.program.frames import (
    ANSWER,
    ANSWER_HEADER,
    CALL,
    CALL_HEADER,
    DONE,
    ENGINE,
    ERROR,
    FAILED,
    MONITOR,
    WARNING,
    methods,
)
from deployer.engine.program.service import RefusedCall
from deployer.engine.project.config import StackConfig
from deployer.engine.project.project import StackRef
from deployer.engine.steps.run import Run
from deployer.engine.steps.scheduling import StepExecutor
from deployer.errors import EngineFailed
from deployer.platform.isolation.carried import error_of
from deployer.platform.isolation.channel import Channel, ChannelBroken
from deployer.platform.isolation.process import Isolated
from deployer.specs.loading.known import known_as_json

_LONGEST_WARNING = 10_000


def run_program(stack: StackRef, config: StackConfig, run: Run, *, monitor: Any, engine: Any) -> None:
    """Runs the program to its end, the SDK's outstanding work included.

    `monitor` and `engine` are the services as objects. Registrations are carried out by up to as many threads as the
    run's settings say. As under the CLI, the working directory is the program's folder. Raises `EngineFailed` naming
    the program's own line, and InvalidSpecs for specs that the program cannot read.
    """
    settings = {
        "project": stack.project.name,
        "stack": stack.name,
        "parallel": run.settings.parallel,
        "dry_run": run.settings.dry_run,
        "root_directory": str(stack.project.dir),
        "main": str(stack.project.main),
        "folder": str(stack.project.program_folder),
        "config": dict(config.values),
        "secret_keys": sorted(config.secret_keys),
        "hidden_keys": sorted(config.hidden),
        "known": known_as_json(),
    }
    with Isolated(f"{PROGRAM_PROCESS}:main", lambda line: run.emit(ProgramOutput(line))) as process:
        with suppress(OSError):  # the channel's content, or its end, shows the cause
            process.channel.send(json.dumps(settings).encode())
        try:
            _ProgramServices(process.channel, {MONITOR: monitor, ENGINE: engine}, run).serve()
            early = False
        except _EndedEarly:
            early = True
        ended = process.end()
    if early:
        raise EngineFailed(
            f"the program's process ended before the program did: {ended or 'exit code 0'}",
            where=stack.project.main,
            remedy="let the program run to its last line",
        )
    if ended:
        run.report("warning", f"the program ended, but its process did not: {ended}")


class _EndedEarly(Exception):
    """The process of the program ended without reporting that the program completed."""


class _ProgramServices:
    """The services for one run of the program."""

    def __init__(self, channel: Channel, services: dict[str, Any], run: Run) -> None:
        self._channel, self._services, self._run = channel, services, run
        self._executor = StepExecutor(run.settings.parallel, thread_name_prefix="register")

    def serve(self) -> None:
        """Answers calls until the program ends.

        Steps that began are finished in any case. Raises the program's error, and _EndedEarly.
        """
        try:
            while (frame := self._channel.receive()) is not None:
                kind, rest = frame[:1], frame[1:]
                if kind == CALL:
                    self._call(rest)
                elif kind == WARNING:
                    self._run.report("warning", rest[:_LONGEST_WARNING].decode(errors="replace"))
                elif kind == FAILED:
                    raise error_of(rest)
                elif kind == DONE:
                    return
                else:
                    raise ChannelBroken("a message of an unknown kind")
            raise _EndedEarly
        except ChannelBroken as broken:
            raise EngineFailed(
                f"the program violates Pulumi's protocol: {broken}",
                remedy="use Pulumi's SDK in the program, and no calls below it",
            ) from None
        finally:
            self._executor.shutdown(wait=True, cancel_futures=True)

    def _call(self, frame: bytes) -> None:
        try:
            number, place = CALL_HEADER.unpack_from(frame)
            method = methods()[place]
            message = method.request.FromString(frame[CALL_HEADER.size :])
        except (struct.error, IndexError, DecodeError) as error:
            raise ChannelBroken(f"a call that cannot be read: {error}") from None
        call = getattr(self._services[method.service], method.name, _unknown)
        future = self._executor.submit(call, message)
        future.add_done_callback(partial(self._answer, number))

    def _answer(self, number: int, future: Future[Any]) -> None:
        head = ANSWER_HEADER.pack(number)
        if future.cancelled():
            return
        error = future.exception()
        if error is None:
            frame = ANSWER + head + future.result().SerializeToString()
        else:
            refused = error if isinstance(error, RefusedCall) else self._unexpected(error)
            answer = {"code": refused.code().name, "details": refused.details()}
            frame = ERROR + head + json.dumps(answer).encode()
        with suppress(OSError):  # the program's process ended, which `serve` finds
            self._channel.send(frame)

    def _unexpected(self, error: BaseException) -> RefusedCall:
        """Returns the error for an unexpected failure of a call: a program can send requests that are not valid."""
        failure = EngineFailed(f"the engine cannot do what the program asks for: {type(error).__name__}: {error}")
        with self._run.lock:
            self._run.fatal = self._run.fatal or failure
        return RefusedCall(str(failure), grpc.StatusCode.INTERNAL)


def _unknown(message: Any) -> Any:
    raise RefusedCall(f"{type(message).__name__} needs the Pulumi CLI: install `pulumi`")
