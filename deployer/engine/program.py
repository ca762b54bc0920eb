"""Running the stack's program in this process: fresh modules, its own event loop, its folder as working directory."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pulumi
from pulumi.runtime import config as runtime_config
from pulumi.runtime import resource as sdk_resource
from pulumi.runtime import settings as runtime_settings
from pulumi.runtime.proto import source_pb2
from pulumi.runtime.stack import run_in_stack

from deployer.engine.config import StackConfig
from deployer.engine.hidden_config import hidden_config
from deployer.engine.project import StackRef
from deployer.engine.threads import StepExecutor
from deployer.errors import DeployerError, EngineFailed
from deployer.masked_streams import masked_streams
from deployer.masking import masked


def run_program(
    stack: StackRef,
    config: StackConfig,
    *,
    monitor: Any,
    engine: Any,
    parallel: int,
    dry_run: bool,
    warn: Callable[[str], None],
) -> None:
    """Runs the program to its end, the SDK's outstanding work included.

    `monitor` and `engine` are the services as objects. Registrations are carried out by up to `parallel` threads. As
    under the CLI, the working directory is the program's folder for the time of the run, and modules from that folder
    are imported anew. `warn` is told of errors in tasks that the program never looked at. Raises `EngineFailed` naming
    the program's own line, or whatever the monitor made fatal.
    """
    settings = runtime_settings.Settings(
        project=stack.project.name,
        stack=stack.name,
        monitor=monitor,
        engine=engine,
        parallel=parallel,
        dry_run=dry_run,
        organization="organization",
        root_directory=str(stack.project.dir),
    )
    contextvars.copy_context().run(_run, stack, config, settings, parallel, warn)


def _run(stack: StackRef, config: StackConfig, settings: Any, parallel: int, warn: Callable[[str], None]) -> None:
    runtime_settings.ROOT.set(None)
    runtime_settings.configure(settings)
    runtime_config.set_all_config(dict(config.values), sorted(config.secret_keys))
    main = stack.project.main
    folder = main if main.is_dir() else main.parent
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _, context: warn(f"{context['message']}: {context.get('exception')}"))
    loop.set_default_executor(StepExecutor(parallel, thread_name_prefix="register"))
    with (
        _program_folder(folder, stack.project.dir),
        _short_stack_traces(),
        hidden_config(config.hidden),
        masked_streams(),
    ):
        try:
            asyncio.set_event_loop(loop)
            loop.run_until_complete(run_in_stack(lambda: _to_the_end(main)))
        except (Exception, SystemExit) as error:
            _ignore_followers(loop)
            if isinstance(error, DeployerError):
                raise
            raise _failure(error, folder, stack.project.dir, config) from None
        finally:
            with contextlib.suppress(Exception):
                _drain(loop)
            _ignore_followers(loop)
            asyncio.set_event_loop(None)
            loop.close()


async def _to_the_end(main: Path) -> None:
    """Executes the program and waits for what it started.

    The SDK waits too, but looks at every outstanding task again whenever one is done, which is quadratic in resources.
    A task that failed is left to the SDK to find and report.
    """
    _execute(main)
    while pending := [task for task in list(runtime_settings.SETTINGS.outputs) if not task.done()]:
        done, _ = await asyncio.wait(pending, return_when=asyncio.FIRST_EXCEPTION)
        if any(task.cancelled() or task.exception() for task in done):
            return


def _execute(main: Path) -> None:
    """Runs the program from its source; of a folder, Python would take bytecode that is as old as to the second."""
    runpy.run_path(str(main / "__main__.py" if main.is_dir() else main), run_name="__main__")


def _ignore_followers(loop: asyncio.AbstractEventLoop) -> None:
    """Once the program's error is known, the outputs that carry it on to nobody are no news."""
    loop.set_exception_handler(lambda _, __: None)


def _drain(loop: asyncio.AbstractEventLoop) -> None:
    """Ends what a failed program left behind, without the warnings that asyncio prints about it."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())


@contextlib.contextmanager
def _program_folder(folder: Path, project: Path) -> Iterator[None]:
    before, path, modules = Path.cwd(), list(sys.path), set(sys.modules)
    keeps_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # a module edited twice in a second would be taken from it
    os.chdir(folder)
    sys.path[:0] = [str(folder), str(project)]
    _forget(folder, set(sys.modules))
    try:
        yield
    finally:
        os.chdir(before)
        sys.dont_write_bytecode = keeps_bytecode
        sys.path[:] = path
        _forget(folder, set(sys.modules) - modules)


@contextlib.contextmanager
def _short_stack_traces() -> Iterator[None]:
    """Lets the SDK look up the one line that declares a resource, and not the whole stack with every file's URI.

    That took an eighth of the time of a preview of a thousand resources, and the engine names the line only.
    """
    whole = sdk_resource._get_stack_trace

    @cache
    def uri(file: str) -> str:
        return Path(file).as_uri() if Path(file).is_absolute() else ""  # such as <string>

    def short() -> source_pb2.StackTrace:
        """The caller of the third constructor from within: the SDK's two, then the resource's own class."""
        frame: FrameType | None = sys._getframe(1)
        constructors = 0
        while frame is not None and constructors < 3:
            constructors += frame.f_code.co_name == "__init__"
            frame = frame.f_back
        if frame is None:
            return source_pb2.StackTrace()
        position = source_pb2.SourcePosition(uri=uri(frame.f_code.co_filename), line=frame.f_lineno)
        return source_pb2.StackTrace(frames=[source_pb2.StackFrame(pc=position)])

    sdk_resource._get_stack_trace = short
    try:
        yield
    finally:
        sdk_resource._get_stack_trace = whole


def _forget(folder: Path, names: set[str]) -> None:
    """Drops modules that came from the program's folder, so that the next run reads them again."""
    for name in names:
        file = getattr(sys.modules.get(name), "__file__", None)
        if name != "__main__" and file and Path(file).is_relative_to(folder):
            del sys.modules[name]


def _failure(error: BaseException, folder: Path, project: Path, config: StackConfig) -> EngineFailed:
    """An error of the program in one line, at the innermost line of the program's own files."""
    remedy = "correct the program"
    if config.hidden:
        remedy += "; a preview decrypts no secret configuration: read it with require_secret and the like"
    if isinstance(error, SyntaxError) and error.filename:
        return EngineFailed(
            f"the program does not parse: {error.msg}",
            where=f"{error.filename}:{error.lineno}",
            remedy="correct that line",
        )
    if isinstance(error, SystemExit):
        what = masked(f"the program ended itself with {error.code!r}")
        return EngineFailed(what, where=_place(error, folder, project))
    if isinstance(error, pulumi.RunError):
        return EngineFailed(masked(str(error)), where=_place(error, folder, project))
    text = str(error) or "no message"
    kind = "" if type(error) is Exception else f"{type(error).__name__}: "
    return EngineFailed(
        masked(f"the program failed: {kind}{text}"), where=_place(error, folder, project), remedy=remedy
    )


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
