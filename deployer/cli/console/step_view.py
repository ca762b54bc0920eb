"""The live view of an engine's steps: a line for each resource in progress, and lines for completed steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from time import monotonic
from types import TracebackType
from typing import assert_never

from rich.text import Text

from deployer.cli.console.output import print_lines
from deployer.cli.console.progress_display import Meter
from deployer.engine import (
    Diagnostic,
    Event,
    Operation,
    OutputsChanged,
    ProgramOutput,
    StepFailed,
    StepFinished,
    StepProgress,
    StepStarted,
)
from deployer.platform.system.progress import Progress
from deployer.provider.urn import address_of, is_in_no_cloud, without_urns

_DOING = {"create": "creating", "update": "updating", "delete": "deleting", "replace": "replacing", "read": "reading"}
_DONE = {"create": "created", "update": "updated", "delete": "deleted", "replace": "replaced", "read": "read"}
_QUIET = ("same", "refresh")


class StepView:
    """A callback for the engine's events. On a terminal it draws; elsewhere it prints a line for each step. With
    `as_json` it prints one JSON document per line on stderr: `started`, `progress`, `finished`, `failed` and `message`,
    each with its address."""

    def __init__(self, *, as_json: bool, clock: Callable[[], float] = monotonic) -> None:
        self._meter = Meter(as_json=as_json, clock=clock)

    def __enter__(self) -> StepView:
        self._meter.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._meter.__exit__(kind, error, trace)

    def __call__(self, event: Event) -> None:
        match event:
            case StepProgress(urn, doing, done, total, unit):
                self._meter.report(_name(urn), Progress(doing, done, total, unit))
            case StepStarted(urn, op) if op not in _QUIET:
                self._meter.begin(_name(urn), f"{_DOING.get(op, op)} {_name(urn)}")
            case StepFinished(urn):
                self._meter.end(_name(urn))
            case StepFailed(urn):
                self._meter.end(_name(urn))
            case StepStarted() | Diagnostic() | OutputsChanged() | ProgramOutput():
                pass
            case _:
                assert_never(event)
        self._print_json(event) if self._meter.as_json else self._print(event)

    def _print(self, event: Event) -> None:
        match event:
            case StepFinished(urn, op, seconds) if op not in _QUIET and address_of(urn):
                done = Text(f"  {_DONE.get(op, op)} {_name(urn)}", "green").append(f" ({seconds:.2f} s)", "dim")
                self._meter.console.print(done, soft_wrap=True)
            case StepFailed(urn, op, message):
                print_lines(self._meter.console, f"  failed to {op} {_name(urn)}: {without_urns(message)}", "red")
            case Diagnostic(_, "warning" | "error" as severity, message):
                colour = "yellow" if severity == "warning" else "red"
                print_lines(self._meter.console, f"  {severity}: {message}", colour)
            case ProgramOutput(text):
                print_lines(self._meter.console, f"  program: {text}", "dim")
            case _:
                pass

    def _print_json(self, event: Event) -> None:
        report = self._meter.event
        match event:
            case StepStarted(urn, op) if op not in _QUIET and address_of(urn):
                report("started", address=_name(urn), op=op)
            case StepFinished(urn, op, seconds) if op not in _QUIET and address_of(urn):
                report("finished", address=_name(urn), op=op, seconds=round(seconds, 3))
            case StepFailed(urn, op, message):
                report("failed", address=address_of(urn) or urn, op=op, message=without_urns(message))
            case Diagnostic(urn, "warning" | "error" as severity, message):
                report("message", address=address_of(urn) if urn else None, severity=severity, message=message)
            case ProgramOutput(text):
                report("output", address=None, message=text)
            case _:
                pass


def summary_line(operations: Iterable[Operation]) -> Text:
    """Returns a line such as `Done: 6 created, 1 updated`; Pulumi's own resources are not counted."""
    counts: Counter[str] = Counter(
        operation.op for operation in operations if not is_in_no_cloud(operation.type, custom=operation.custom)
    )
    parts = [f"{counts[op]} {_DONE[op]}" for op in _DONE if counts[op]]
    return Text("Done: ", "bold").append(", ".join(parts) or "nothing to do", "not bold")


def _name(urn: str) -> str:
    return address_of(urn) or urn.rsplit("::", 1)[-1]
