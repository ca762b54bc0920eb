"""The embedded engine: Pulumi's engine in this process, for Python programs, which run in processes of their own, and
state in a folder or on S3."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deployer.engine.interfaces.engine import PROGRAM_PROCESS, OnEvent, Operation, PlanResult, UpResult
from deployer.engine.interfaces.provider import Refreshed, Source
from deployer.engine.persistence.backend import stack_files
from deployer.engine.persistence.deployment import has_plaintext, open_deployment, to_deployment
from deployer.engine.persistence.locks import break_locks, locked
from deployer.engine.persistence.stack_reference import StackReferences
from deployer.engine.persistence.store import StackStore, saved_or_kept
from deployer.engine.program.monitor import Monitor
from deployer.engine.program.program import run_program
from deployer.engine.program.service import EngineService, GrpcServices
from deployer.engine.project.config import StackConfig, read_config, read_keys
from deployer.engine.project.project import StackRef
from deployer.engine.providers.registry import Providers
from deployer.engine.steps.deletion import delete_unseen
from deployer.engine.steps.leaks import Leaks
from deployer.engine.steps.pending_operations import settle_unfinished
from deployer.engine.steps.refresh import refresh_all
from deployer.engine.steps.run import Run, Settings
from deployer.engine.steps.scheduling import busy_interpreter
from deployer.engine.values.checkpoint_shape import fault_of_deployment
from deployer.engine.values.values import blinded
from deployer.errors import DeployerError, EngineFailed, InvalidInput
from deployer.platform.isolation.process import prepare
from deployer.platform.isolation.surroundings import close_memory
from deployer.platform.text import masking


@dataclass(frozen=True)
class EmbeddedEngine:
    """Implements `Engine`. `providers` are called in this process, by package name; a function that makes one is called
    for each run and each configuration. Other packages have plugin executables.
    """

    providers: Mapping[str, Source]

    def preview(
        self,
        stack: StackRef,
        *,
        refresh: bool = True,
        on_event: OnEvent | None = None,
        targets: frozenset[str] = frozenset(),
        allow_destroy: frozenset[str] = frozenset(),
        config: Mapping[str, str] | None = None,
        leave: frozenset[str] = frozenset(),
    ) -> PlanResult:
        settings = _settings(stack, dry_run=True, targets=targets, allow_destroy=allow_destroy, leave=leave)
        with self._run(stack, settings, on_event, config, kind="preview") as context:
            self._program(context, refresh)
            run = context.run
            return PlanResult(
                tuple(run.operations.values()),
                tuple(run.diagnostics),
                tuple(run.drift.values()),
                blinded(dict(run.outputs)),
                Refreshed(dict(run.read)),
            )

    def up(
        self,
        stack: StackRef,
        *,
        refresh: bool = True,
        on_event: OnEvent | None = None,
        parallel: int | None = None,
        targets: frozenset[str] = frozenset(),
        allow_destroy: frozenset[str] = frozenset(),
        config: Mapping[str, str] | None = None,
        leave: frozenset[str] = frozenset(),
        refreshed: Refreshed | None = None,
    ) -> UpResult:
        settings = _settings(stack, parallel=parallel, targets=targets, allow_destroy=allow_destroy, leave=leave)
        with self._run(stack, settings, on_event, config, kind="update") as context:
            context.run.refreshed = refreshed or Refreshed()
            self._program(context, refresh)
            return _result(context.run)

    def destroy(
        self,
        stack: StackRef,
        *,
        refresh: bool = True,
        on_event: OnEvent | None = None,
        parallel: int | None = None,
        allow_destroy: frozenset[str] = frozenset(),
    ) -> UpResult:
        settings = _settings(stack, parallel=parallel, allow_destroy=allow_destroy)
        with self._run(stack, settings, on_event, None, kind="destroy") as context:
            run = context.run
            if refresh:
                refresh_all(run)
            settle_unfinished(run)
            delete_unseen(run, lambda _: False)
            _raise_failures(run)
            return _result(run)

    def refresh(
        self,
        stack: StackRef,
        *,
        dry_run: bool = False,
        on_event: OnEvent | None = None,
        parallel: int | None = None,
        targets: frozenset[str] = frozenset(),
    ) -> tuple[Operation, ...]:
        settings = _settings(stack, dry_run=dry_run, parallel=parallel, targets=targets)
        with self._run(stack, settings, on_event, None, kind="refresh") as context:
            refresh_all(context.run)
            return tuple(context.run.drift.values())

    def export(self, stack: StackRef) -> dict[str, Any]:
        """Returns the deployment as `pulumi stack export` prints it, secrets encrypted; a crashed run's journal
        counts."""
        return StackStore(stack_files(stack), read_keys(stack)).export()

    def restore(self, stack: StackRef, exported: Mapping[str, Any]) -> None:
        """Replaces the stack's state by an exported deployment, as `pulumi stack import` does."""
        files = stack_files(stack)
        deployment = exported["deployment"]
        if (fault := fault_of_deployment(deployment)) is not None:
            raise InvalidInput(f"not an export of a stack: {fault}", remedy="write one by `deployer stack export`")
        keys = read_keys(stack)
        if has_plaintext(deployment):  # secrets of `pulumi stack export --show-secrets`
            opened = open_deployment(deployment, keys)
            deployment = to_deployment(opened.snapshot, opened.secrets, opened.metadata)
        else:
            open_deployment(deployment, keys, sealed=True)  # refuses what no run could read
        with locked(files):
            StackStore(files, keys).restore(deployment)

    def cancel(self, stack: StackRef) -> tuple[str, ...]:
        """Removes the stack's locks of all holders, and returns their holders."""
        return break_locks(stack_files(stack))

    # --- one run

    def _program(self, context: _Context, refresh: bool) -> None:
        run = context.run
        prepare(PROGRAM_PROCESS)
        if refresh:
            refresh_all(run)
        run.index()
        references = StackReferences(context.stack.project, sealed=run.settings.dry_run)
        monitor = Monitor(run, context.config, references)
        context.serve.monitor = monitor
        failure: DeployerError | None = None
        try:
            run_program(context.stack, context.config, run, monitor=monitor, engine=context.service)
        except EngineFailed as error:
            failure = error
        run.refuse_when_stopping()
        if run.fatal is not None:
            raise run.fatal
        if failure is not None:
            raise failure  # nothing is deleted after a program that did not complete
        settle_unfinished(run)
        delete_unseen(run, monitor.names.is_seen)
        _raise_failures(run)

    @contextlib.contextmanager
    def _run(
        self,
        stack: StackRef,
        settings: Settings,
        on_event: OnEvent | None,
        config: Mapping[str, str] | None,
        *,
        kind: str,
    ) -> Iterator[_Context]:
        files = stack_files(stack)
        store = StackStore(files, read_keys(stack))
        started = time.time()
        with contextlib.ExitStack() as stack_of_contexts:
            enter = stack_of_contexts.enter_context
            enter(masking.scope())
            if not settings.dry_run:
                enter(locked(files))
            opened = store.open(fold=not settings.dry_run)
            stack_config = read_config(stack, opened.secrets, config)
            run = Run(settings, opened.snapshot, None, opened.secrets, on_event=on_event)  # type: ignore[arg-type]
            run.leaks = Leaks(placeholders=bool(stack_config.hidden))
            service = EngineService(run.emit)
            serve = enter(GrpcServices(service))
            run.providers = Providers(
                stack.project, self.providers, serve.address, run.report, run.progress, sealed=settings.dry_run
            )
            stack_of_contexts.callback(run.providers.close)
            enter(_interruptible(run))
            enter(busy_interpreter())
            close_memory()  # the project may contain plugins too
            if settings.dry_run:
                yield _Context(stack, stack_config, run, service, serve)
                return
            run.journal = store.begin(opened)
            failure: BaseException | None = None
            try:
                yield _Context(stack, stack_config, run, service, serve)
            except BaseException as error:
                failure = error
                raise
            finally:
                with saved_or_kept(stack, opened, failure, changed=run.journal.is_written):
                    store.finish(run.journal, opened)
                with contextlib.suppress(DeployerError) if failure is not None else contextlib.nullcontext():
                    store.record(
                        kind=kind,
                        started=started,
                        succeeded=failure is None,
                        changes=run.summary(),
                        config=_history(stack_config),
                    )


@dataclass(frozen=True)
class _Context:
    stack: StackRef
    config: StackConfig
    run: Run
    service: EngineService
    serve: GrpcServices


def _settings(stack: StackRef, *, dry_run: bool = False, parallel: int | None = None, **more: Any) -> Settings:
    workers = parallel if parallel is not None else 4 * (os.cpu_count() or 1)
    folder = stack.project.program_folder
    return Settings(stack.project.name, stack.name, dry_run=dry_run, parallel=max(1, workers), folder=folder, **more)


def _result(run: Run) -> UpResult:
    return UpResult(run.summary(), blinded(dict(run.outputs)), tuple(run.operations.values()), tuple(run.diagnostics))


def _history(config: StackConfig) -> dict[str, Any]:
    return {
        key: {
            "string": "" if key in config.secret_keys else masking.masked(value),
            "secret": key in config.secret_keys,
            "object": False,
        }
        for key, value in config.values.items()
    }


def _raise_failures(run: Run) -> None:
    if not run.failures:
        return
    failed = {urn: message for urn, message in run.failures.items() if urn not in run.skipped}
    skipped = len(run.failures) - len(failed)
    lines = "; ".join(f"{urn}: {message}" for urn, message in (failed or run.failures).items())
    count = len(failed or run.failures)
    more = f" ({skipped} more skipped because of that)" if skipped and failed else ""
    raise EngineFailed(
        f"{count} resource{'s' if count != 1 else ''} failed{more}: {lines}",
        remedy="" if run.settings.dry_run else "completed steps are saved; fix the cause and run the command again",
    )


@contextlib.contextmanager
def _interruptible(run: Run) -> Iterator[None]:
    """Wraps a run. After the first Ctrl-C no step starts, and running steps finish or pause at a resumable point; the
    second Ctrl-C ends the process as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def stop(number: int, frame: Any) -> None:
        run.stopping.set()
        signal.signal(signal.SIGINT, before)
        run.report("warning", "Stopping. Running steps finish or pause at a resumable point.")

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
