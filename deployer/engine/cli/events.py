"""Converts the CLI's engine events into this package's operations and events."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pulumi.automation import events

from deployer.engine.interfaces.engine import (
    Diagnostic,
    Event,
    OnEvent,
    Op,
    Operation,
    Severity,
    StepFailed,
    StepFinished,
    StepOp,
    StepProgress,
    StepStarted,
    UpResult,
)
from deployer.engine.values.property_paths import DiffKind
from deployer.engine.values.urns import is_provider_type, name_of
from deployer.engine.values.values import blinded

_COLOUR = re.compile(r"<\{%[^%]*%\}>|\x1b\[[0-9;]*m")
#: the operation that each step stands for; None for steps that are only a part of an operation
_OPERATIONS: Mapping[events.OpType, Op | None] = {
    events.OpType.SAME: "same",
    events.OpType.CREATE: "create",
    events.OpType.UPDATE: "update",
    events.OpType.DELETE: "delete",
    events.OpType.REPLACE: "replace",
    events.OpType.CREATE_REPLACEMENT: "replace",
    events.OpType.DELETE_REPLACED: None,
    events.OpType.READ: "read",
    events.OpType.READ_REPLACEMENT: "replace",
    events.OpType.REFRESH: "refresh",
    events.OpType.DISCARD: "delete",
    events.OpType.DISCARD_REPLACED: None,
    events.OpType.REMOVE_PENDING_REPLACE: None,
    events.OpType.IMPORT: "import",
    events.OpType.IMPORT_REPLACEMENT: "import",
}
_KINDS: Mapping[events.DiffKind, DiffKind] = {
    events.DiffKind.ADD: "add",
    events.DiffKind.ADD_REPLACE: "add-replace",
    events.DiffKind.DELETE: "delete",
    events.DiffKind.DELETE_REPLACE: "delete-replace",
    events.DiffKind.UPDATE: "update",
    events.DiffKind.UPDATE_REPLACE: "update-replace",
}


def operation_of(metadata: events.StepEventMetadata) -> Operation | None:
    """Returns the operation that a step belongs to; None for default providers and for parts of a replacement."""
    op = _OPERATIONS[metadata.op]
    name = name_of(metadata.urn)
    if op is None or (is_provider_type(metadata.type) and name.startswith("default")):
        return None
    old, new = metadata.old, metadata.new
    state = new or old
    return Operation(
        urn=metadata.urn,
        op=op,
        type=metadata.type,
        name=name,
        id=(new.id if new and new.id else "") or (old.id if old and old.id else ""),
        old_inputs=_shown(old.inputs if old else None),
        old_outputs=_shown(old.outputs if old else None),
        new_inputs=_shown(new.inputs if new else None),
        new_outputs=_shown(new.outputs if new else None),
        detailed_diff={path: _KINDS[diff.diff_kind] for path, diff in (metadata.detailed_diff or {}).items()},
        replace_keys=tuple(metadata.keys or ()),
        custom=state is None or state.custom is not False,
    )


def step_of(metadata: events.StepEventMetadata, stage: Literal["started", "finished", "failed"]) -> Event | None:
    """Returns the event of one step; the CLI does not say how long it took."""
    if is_provider_type(metadata.type) and name_of(metadata.urn).startswith("default"):
        return None
    op: StepOp = _OPERATIONS[metadata.op] or "delete-replaced"
    match stage:
        case "started":
            return None if op == "same" else StepStarted(metadata.urn, op)
        case "finished":
            return StepFinished(metadata.urn, op, 0.0, _shown(metadata.new.outputs if metadata.new else None))
        case "failed":
            return StepFailed(metadata.urn, op, f"{metadata.op.value} failed; the diagnostics say why")


def progress_of(event: events.DiagnosticEvent) -> StepProgress | None:
    """Returns a status message of a resource; None for the CLI's own messages, which have no resource."""
    return StepProgress(event.urn, _COLOUR.sub("", event.message).strip()) if event.urn else None


def diagnostic_of(event: events.DiagnosticEvent) -> Diagnostic:
    severities: Mapping[str, Severity] = {"error": "error", "warning": "warning", "debug": "debug"}
    message = _COLOUR.sub("", event.message).strip()
    return Diagnostic(event.urn or "", severities.get(event.severity, "info"), message)


def _shown(values: Mapping[str, Any] | None) -> dict[str, Any]:
    return blinded(dict(values)) if values else {}


@dataclass
class EventCollector:
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
        elif event.diagnostic_event is not None and event.diagnostic_event.ephemeral:
            self._emit(progress_of(event.diagnostic_event))
        elif event.diagnostic_event is not None:
            diagnostic = diagnostic_of(event.diagnostic_event)
            self.diagnostics.append(diagnostic)
            self._emit(diagnostic)

    def result(self, outputs: Mapping[str, Any]) -> UpResult:
        operations = tuple(self.operations.values())
        summary: dict[str, int] = dict(Counter(operation.op for operation in operations))
        return UpResult(summary, outputs, operations, tuple(self.diagnostics))

    def _emit(self, event: Event | None) -> None:
        if event is not None and self.on_event is not None:
            self.on_event(event)
