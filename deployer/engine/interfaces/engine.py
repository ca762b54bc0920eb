"""The interface of an engine, which both engines implement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from deployer.engine.project.project import StackRef
from deployer.engine.values.property_paths import DiffKind

if TYPE_CHECKING:
    from deployer.engine.interfaces.provider import Refreshed

Op = Literal["create", "update", "delete", "replace", "same", "read", "import", "refresh"]
#: `replace` is the operation on a resource; `delete-replaced` is the step that removes the replaced resource
StepOp = Literal["create", "update", "delete", "replace", "same", "read", "import", "refresh", "delete-replaced"]
Severity = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Operation:
    """A completed or planned operation of a run on one resource. Secrets are `[secret]`; unknown values are the unknown
    sentinel.

    `detailed_diff` maps property paths (`columns[3].type`) to kinds; `replace_keys` are the properties that force a
    replacement; `reason` is text that explains the operation if the diff does not. `not_compared` are secret
    inputs that a preview, which decrypts nothing, cannot compare: the operation may be an update because of them.
    """

    urn: str
    op: Op
    type: str
    name: str
    id: str = ""
    old_inputs: Mapping[str, Any] = field(default_factory=dict)
    old_outputs: Mapping[str, Any] = field(default_factory=dict)
    new_inputs: Mapping[str, Any] = field(default_factory=dict)
    new_outputs: Mapping[str, Any] = field(default_factory=dict)
    detailed_diff: Mapping[str, DiffKind] = field(default_factory=dict)
    replace_keys: tuple[str, ...] = ()
    reason: str = ""
    custom: bool = True  #: whether a provider has the resource; otherwise it is a component of the program
    not_compared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepStarted:
    urn: str
    op: StepOp


@dataclass(frozen=True, slots=True)
class StepProgress:
    """The progress of a resource's step: a text for the current work, and the number of completed parts.

    `total` is None where it is unknown; a plugin reports only `doing`.
    """

    urn: str
    doing: str
    done: int = 0
    total: int | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class StepFinished:
    """`seconds` is how long the step took; `outputs` are blinded."""

    urn: str
    op: StepOp
    seconds: float
    outputs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepFailed:
    urn: str
    op: StepOp
    message: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A message of the program, a provider or the engine; `urn` is empty when the message is not about a resource."""

    urn: str
    severity: Severity
    message: str


@dataclass(frozen=True, slots=True)
class OutputsChanged:
    """The stack's outputs after the program; blinded."""

    outputs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """A line that the program, or a process that it started, printed."""

    text: str


Event = StepStarted | StepProgress | StepFinished | StepFailed | Diagnostic | OutputsChanged | ProgramOutput
OnEvent = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class PlanResult:
    """`operations` has every resource that the run touches, `same` ones too, in the order of the program.

    `drift` has the resources that the earlier refresh found changed (`refresh`) or missing (`delete`). `outputs` are
    the known outputs of the stack, secrets blinded. `refreshed` is the live state that the refresh read, for the `up`
    that applies the plan.
    """

    operations: tuple[Operation, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    drift: tuple[Operation, ...] = ()
    outputs: Mapping[str, Any] = field(default_factory=dict)
    refreshed: Refreshed | None = None

    @property
    def changes(self) -> tuple[Operation, ...]:
        return tuple(operation for operation in self.operations if operation.op != "same")


@dataclass(frozen=True, slots=True)
class UpResult:
    """`summary` counts operations by kind; `outputs` are the stack's, secrets blinded."""

    summary: Mapping[str, int]
    outputs: Mapping[str, Any]
    operations: tuple[Operation, ...]
    diagnostics: tuple[Diagnostic, ...] = ()


class Engine(Protocol):
    """Runs the Pulumi program of a stack.

    Each engine can continue with a stack that the other changed. Every method raises `EngineFailed` when the program, a
    provider or a step fails (completed steps are saved), `Conflict` when another run holds the stack, `Refused` for
    unsupported requests, and `Interrupted` after Ctrl-C. `config` overrides values of `Pulumi.STACK.yaml` for this run,
    by full key (`deployer:specs`). `targets` are URNs: no other resource is read or changed; empty means all. Resources
    of `leave` are neither read nor changed, targets or not. `refreshed` is what a preview read while the stack was
    held: `up` does not read it again. The CLI reads in each of its runs and ignores it.
    """

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
    ) -> PlanResult: ...

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
    ) -> UpResult: ...

    def destroy(
        self,
        stack: StackRef,
        *,
        refresh: bool = True,
        on_event: OnEvent | None = None,
        parallel: int | None = None,
        allow_destroy: frozenset[str] = frozenset(),
    ) -> UpResult: ...

    def refresh(
        self,
        stack: StackRef,
        *,
        dry_run: bool = False,
        on_event: OnEvent | None = None,
        parallel: int | None = None,
        targets: frozenset[str] = frozenset(),
    ) -> tuple[Operation, ...]: ...

    def export(self, stack: StackRef) -> dict[str, Any]: ...

    def restore(self, stack: StackRef, exported: Mapping[str, Any]) -> None: ...

    def cancel(self, stack: StackRef) -> tuple[str, ...]: ...


PROGRAM_PROCESS = "deployer.engine.program.program_process"  #: the module that a process for the program runs
