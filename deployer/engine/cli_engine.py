"""The official CLI as an engine: a thin layer over `pulumi.automation`, which drives the executable `pulumi`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pulumi import automation
from pulumi.automation import ConfigValue, LocalWorkspace, events

from deployer.engine.backend import stack_files
from deployer.engine.cli_events import diagnostic_of, operation_of, step_of
from deployer.engine.locks import break_locks
from deployer.engine.model import (
    Diagnostic,
    Event,
    OnEvent,
    Operation,
    OutputsChanged,
    PlanResult,
    StepFailed,
    StepFinished,
    UpResult,
)
from deployer.engine.project import StackRef
from deployer.engine.urns import STACK_TYPE
from deployer.engine.values import BLINDED
from deployer.errors import Conflict, EngineFailed, Refused


@dataclass(frozen=True)
class CliEngine:
    """Implements `Engine` through the CLI, which starts the provider plugins that Pulumi.yaml names."""

    def preview(
        self,
        stack: StackRef,
        *,
        refresh: bool = True,
        on_event: OnEvent | None = None,
        targets: frozenset[str] = frozenset(),
        config: Mapping[str, str] | None = None,
    ) -> PlanResult:
        seen = Collected(on_event)
        self._call(
            lambda: self._open(stack, config).preview(
                refresh=refresh, target=sorted(targets) or None, on_event=seen.take, on_output=_ignore
            )
        )
        return PlanResult(tuple(seen.operations.values()), tuple(seen.diagnostics))

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
    ) -> UpResult:
        _refuse_overrides(allow_destroy)
        seen = Collected(on_event)
        done = self._call(
            lambda: self._open(stack, config).up(
                refresh=refresh,
                parallel=parallel,
                target=sorted(targets) or None,
                on_event=seen.take,
                on_output=_ignore,
            )
        )
        outputs = {name: BLINDED if value.secret else value.value for name, value in done.outputs.items()}
        if on_event is not None:
            on_event(OutputsChanged(outputs))
        return seen.result(outputs)

    def destroy(
        self,
        stack: StackRef,
        *,
        refresh: bool = True,
        on_event: OnEvent | None = None,
        parallel: int | None = None,
        allow_destroy: frozenset[str] = frozenset(),
    ) -> UpResult:
        _refuse_overrides(allow_destroy)
        seen = Collected(on_event)
        self._call(
            lambda: self._open(stack, None).destroy(
                refresh=refresh, parallel=parallel, on_event=seen.take, on_output=_ignore
            )
        )
        return seen.result({})

    def refresh(
        self, stack: StackRef, *, dry_run: bool = False, on_event: OnEvent | None = None, parallel: int | None = None
    ) -> tuple[Operation, ...]:
        seen = Collected(on_event)
        opened = self._open(stack, None)
        if dry_run:
            self._call(lambda: opened.preview_refresh(parallel=parallel, on_event=seen.take, on_output=_ignore))
        else:
            self._call(lambda: opened.refresh(parallel=parallel, on_event=seen.take, on_output=_ignore))
        return tuple(operation for operation in seen.operations.values() if operation.op not in {"same", "read"})

    def export(self, stack: StackRef) -> dict[str, Any]:
        deployment = self._call(lambda: self._open(stack, None).export_stack())
        return {"version": deployment.version, "deployment": deployment.deployment}

    def cancel(self, stack: StackRef) -> tuple[str, ...]:
        if stack.project.backend_url.startswith("file://"):
            return break_locks(stack_files(stack))
        self._call(lambda: self._open(stack, None).cancel())
        return ()

    def _open(self, stack: StackRef, config: Mapping[str, str] | None) -> automation.Stack:
        directory: Path = stack.project.dir
        opened = self._call(
            lambda: automation.create_or_select_stack(
                stack.name,
                work_dir=str(directory),
                opts=automation.LocalWorkspaceOptions(env_vars={"PULUMI_BACKEND_URL": stack.project.backend_url}),
            )
        )
        for key, value in (config or {}).items():
            opened.set_config(key, ConfigValue(value))
        return opened

    def _call(self, do: Callable[[], Any]) -> Any:
        try:
            return do()
        except automation.ConcurrentUpdateError as error:
            raise Conflict(
                f"the stack is locked: {_last_line(error)}", remedy="wait for the other run, or `pulumi cancel`"
            ) from None
        except automation.CommandError as error:
            raise EngineFailed(f"pulumi failed: {_last_line(error)}", where="pulumi") from None


@dataclass
class Collected:
    """Turns the CLI's event stream into this package's events and operations."""

    on_event: OnEvent | None = None
    operations: dict[str, Operation] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def take(self, event: events.EngineEvent) -> None:
        if event.resource_pre_event is not None:
            metadata = event.resource_pre_event.metadata
            found = operation_of(metadata)
            if found is not None:
                self.operations[found.urn] = found
            self._emit(step_of(metadata, "started"))
        elif event.res_outputs_event is not None:
            self._emit(step_of(event.res_outputs_event.metadata, "finished"))
        elif event.res_op_failed_event is not None:
            self._emit(step_of(event.res_op_failed_event.metadata, "failed"))
        elif event.diagnostic_event is not None and not event.diagnostic_event.ephemeral:
            diagnostic = diagnostic_of(event.diagnostic_event)
            self.diagnostics.append(diagnostic)
            self._emit(diagnostic)

    def result(self, outputs: Mapping[str, Any]) -> UpResult:
        operations = tuple(self.operations.values())
        summary = dict(Counter(operation.op for operation in operations))
        return UpResult(summary, outputs, operations, tuple(self.diagnostics))

    def _emit(self, event: Event | None) -> None:
        if event is not None and self.on_event is not None:
            self.on_event(event)


def _refuse_overrides(allow_destroy: frozenset[str]) -> None:
    if allow_destroy:
        raise Refused(
            "the Pulumi CLI cannot lift `protect` for single resources",
            where=", ".join(sorted(allow_destroy)),
            remedy="take `protect` off them in the program, or use the embedded engine",
        )


def _ignore(_: str) -> None:
    """The CLI's own progress text; the events say the same."""


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error:")]
    return errors[-1] if errors else lines[-1] if lines else "no message"


__all__ = ["STACK_TYPE", "CliEngine", "Collected", "LocalWorkspace", "StepFailed", "StepFinished"]
