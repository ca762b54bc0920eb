"""The live view of an engine's steps: a line a resource that is being worked on, and lines for what is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from types import TracebackType
from typing import assert_never

from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from deployer.cli.output import stderr
from deployer.engine import Diagnostic, Event, Operation, OutputsChanged, StepFailed, StepFinished, StepStarted
from deployer.provider.urn import address_of

_DOING = {"create": "creating", "update": "updating", "delete": "deleting", "replace": "replacing", "read": "reading"}
_DONE = {"create": "created", "update": "updated", "delete": "deleted", "replace": "replaced", "read": "read"}
_QUIET = ("same", "refresh")
#: Resources of Pulumi itself, which people did not declare.
PULUMI_TYPES = ("pulumi:pulumi:Stack", "pulumi:providers:")


class StepView:
    """Takes the engine's events. On a terminal it draws; elsewhere it prints a line a step; quiet, only errors."""

    def __init__(self, *, quiet: bool) -> None:
        self._console = stderr()
        self._quiet = quiet
        self._running: dict[str, str] = {}
        self._live = Live(console=self._console, transient=True, refresh_per_second=10)

    def __enter__(self) -> StepView:
        if not self._quiet and self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def __call__(self, event: Event) -> None:
        match event:
            case StepStarted(urn, op):
                if op not in _QUIET:
                    self._running[urn] = _DOING.get(op, op)
            case StepFinished(urn, op, seconds):
                self._running.pop(urn, None)
                address = address_of(urn)
                if address and op not in _QUIET:
                    self._say(Text(f"  {_DONE.get(op, op)} {address}", "green").append(f" ({seconds:.2f} s)", "dim"))
            case StepFailed(urn, op, message):
                self._running.pop(urn, None)
                self._console.print(Text(f"  failed to {op} {address_of(urn) or urn}: {message}", "red"))
            case Diagnostic(_, severity, message):
                if severity in ("warning", "error"):
                    self._console.print(Text(f"  {severity}: {message}", "yellow" if severity == "warning" else "red"))
            case OutputsChanged():
                pass
            case _:
                assert_never(event)
        if self._live.is_started:
            self._live.update(self._render())

    def summary(self, operations: Iterable[Operation]) -> Text:
        """`Done: 6 created, 1 updated`; Pulumi's own resources are not counted."""
        counts: Counter[str] = Counter(
            operation.op for operation in operations if not operation.type.startswith(PULUMI_TYPES)
        )
        parts = [f"{counts[op]} {_DONE[op]}" for op in _DONE if counts[op]]
        return Text("Done: ", "bold").append(", ".join(parts) or "nothing to do", "not bold")

    def _say(self, line: Text) -> None:
        if not self._quiet:
            self._console.print(line)

    def _render(self) -> Table:
        grid = Table.grid(padding=(0, 1))
        for urn, doing in list(self._running.items())[:10]:
            grid.add_row(Spinner("dots"), Text(f"{doing} {address_of(urn) or urn.rsplit('::', 1)[-1]}"))
        if len(self._running) > 10:
            grid.add_row("", Text(f"and {len(self._running) - 10} more", "dim"))
        return grid
