"""The state that the steps of one run share: the snapshot and its journal, events, failures, and the request to
stop."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from deployer.engine.interfaces.engine import (
    Diagnostic,
    Event,
    OnEvent,
    Operation,
    ProgramOutput,
    StepFailed,
    StepFinished,
    StepOp,
    StepProgress,
    StepStarted,
)
from deployer.engine.interfaces.provider import Live, Refreshed
from deployer.engine.persistence.journal import Journal
from deployer.engine.providers.registry import ConfiguredProvider, Providers
from deployer.engine.secrets.encryption import Secrets, remember_all
from deployer.engine.steps.leaks import Leaks
from deployer.engine.values.resource import ResourceState
from deployer.engine.values.snapshot import Begin, End, Pending, PendingKind, Snapshot
from deployer.engine.values.urns import name_of, split_reference
from deployer.engine.values.values import blinded, contains_secret
from deployer.errors import DeployerError, EngineFailed, Interrupted
from deployer.platform.system.failpoints import reached
from deployer.platform.text.masking import masked


@dataclass(frozen=True)
class Settings:
    """The settings of a run. `folder` is the program's. `targets` are URNs, all when empty; `allow_destroy` lifts
    `protect` by URN or name. `leave` are URNs of resources that are neither read nor changed: they stay in the state as
    they are.
    """

    project: str
    stack: str
    dry_run: bool
    parallel: int
    folder: Path
    targets: frozenset[str] = frozenset()
    allow_destroy: frozenset[str] = frozenset()
    leave: frozenset[str] = frozenset()


@dataclass
class Run:
    """The state of one run. Every change of the snapshot goes through `begin` and `end`, which journal it."""

    settings: Settings
    snapshot: Snapshot
    providers: Providers
    secrets: Secrets
    journal: Journal | None = None
    on_event: OnEvent | None = None
    operations: dict[str, Operation] = field(default_factory=dict)
    drift: dict[str, Operation] = field(default_factory=dict)
    refreshed: Refreshed = field(default_factory=Refreshed)  #: live state from before this run, which is not read again
    #: the answers of this run's refresh, in the form of `Refreshed.answers`
    read: dict[tuple[str, str], tuple[ResourceState, Live]] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)  #: message by URN of resources that failed or were skipped
    skipped: set[str] = field(default_factory=set)  #: those of them that were skipped
    left_out: set[str] = field(default_factory=set)  #: new resources outside the targets, which are not created
    olds: dict[str, tuple[str, ResourceState]] = field(default_factory=dict)  #: former key and state, by URN
    live: dict[str, str] = field(default_factory=dict)  #: key of resources that this run has registered, by URN
    replaced: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    fatal: DeployerError | None = None
    leaks: Leaks = field(default_factory=Leaks)
    stopping: threading.Event = field(default_factory=threading.Event)
    lock: threading.RLock = field(default_factory=threading.RLock)
    _steps: int = 0
    _emitting: threading.RLock = field(default_factory=threading.RLock)

    def index(self) -> None:
        """Indexes the resources from before the program runs. It is called after a refresh, which changes them."""
        self.olds = {state.urn: (key, state) for key, state in self.snapshot.old_items() if not state.delete}

    # --- the snapshot

    def begin(self, kind: PendingKind, state: ResourceState) -> int | None:
        """Records that a step is about to call its provider; None in a preview."""
        if self.settings.dry_run:
            return None
        with self.lock:
            self._steps += 1
            entry = Begin(self._steps, Pending(kind, state))
            self.snapshot.apply(entry)
            number = self.journal.append(entry) if self.journal else 0
        if self.journal:
            self.journal.sync(number)
        reached("engine.step.begin")
        return entry.step

    def end(
        self,
        step: int | None,
        *,
        add: ResourceState | None = None,
        drop: tuple[str, ...] = (),
        put: Mapping[str, ResourceState] | None = None,
        keep: str = "",
        settles: str = "",
    ) -> str:
        """Records the end of a step, on disk when it called a provider; returns the key of the added resource.

        `settles` is the URN whose unfinished operations from an earlier run this step completed.
        """
        if step is not None:
            reached("engine.step.done")
        with self.lock:
            resolves = tuple(p for p, found in self.snapshot.inherited() if found.resource.urn == settles)
            add = None if add is None else self._storable(add)
            changed = {each: self._storable(state) for each, state in (put or {}).items()}
            entry = End(step, add, drop, changed, resolves if settles else (), keep)
            key = self.snapshot.apply(entry)
            for each, state in entry.put.items():
                if not state.delete and state.urn in self.olds and self.olds[state.urn][0] == each:
                    self.olds[state.urn] = (each, state)
            if key:
                self.live[self.snapshot[key].urn] = key
            number = self.journal.append(entry) if self.journal else 0
        if step is not None:
            if self.journal:
                self.journal.sync(number)
            reached("engine.step.end")
        return key

    def _storable(self, state: ResourceState) -> ResourceState:
        """Returns the resource in the form to save: known secrets in plain text are made secret, and every secret is
        masked in later output.

        A provider may create a secret when it is too late to refuse the step. If this secret cannot be saved, the
        resource is saved without it, and the run fails.
        """
        if self.settings.dry_run:
            return state
        state = self.leaks.kept(state)
        if not contains_secret(state.outputs):
            return state
        remember_all(state.outputs, (state.urn, "outputs"))
        try:
            self.secrets.require()
        except DeployerError as error:
            self.fatal = self.fatal or error
            return replace(state, outputs={k: v for k, v in state.outputs.items() if not contains_secret(v)})
        return state

    def state(self, urn: str) -> ResourceState | None:
        """Returns the current resource: the one that this run registered, otherwise the former one."""
        with self.lock:
            if urn in self.live:
                return self.snapshot[self.live[urn]]
            return self.olds[urn][1] if urn in self.olds else None

    def require_secrets(self) -> None:
        """Raises Refused for a run that will save a secret and has no key to encrypt it."""
        if not self.settings.dry_run:
            with self.lock:
                self.secrets.require()

    # --- events

    def emit(self, event: Event) -> None:
        """Sends an event with known secrets masked, because messages come from the program and from providers."""
        match event:
            case Diagnostic(message=message):
                event = replace(event, message=masked(message))
            case StepFailed(message=message):
                event = replace(event, message=masked(message))
            case StepProgress(doing=doing):
                event = replace(event, doing=masked(doing))
            case ProgramOutput(text):
                event = ProgramOutput(masked(text))
            case _:
                pass
        if isinstance(event, Diagnostic):
            with self.lock:
                self.diagnostics.append(event)
        if self.on_event is not None:
            with self._emitting:
                self.on_event(event)

    def report(self, severity: str, message: str) -> None:
        match severity:
            case "warning" | "error" | "debug":
                self.emit(Diagnostic("", severity, message))
            case _:
                self.emit(Diagnostic("", "info", message))

    def progress(self, urn: str, doing: str, done: int, total: int | None, unit: str) -> None:
        """Emits the progress of a step. Raises `Interrupted` when the run is to stop. A step that is resumable, or has
        not changed anything, lets the exception pass."""
        self.emit(StepProgress(urn, doing, done, total, unit))
        self.refuse_when_stopping()

    def record(self, operation: Operation) -> None:
        """Adds a blinded operation to the result; a later operation on the same resource replaces it."""
        with self.lock:
            self.operations[operation.urn] = operation

    @contextmanager
    def step(self, urn: str, op: StepOp) -> Iterator[StepTimer]:
        """Emits the start and end of a step. An exception is not caught; its handler calls `fail`."""
        self.emit(StepStarted(urn, op))
        timer = StepTimer()
        yield timer
        self.emit(StepFinished(urn, op, time.monotonic() - timer.started, blinded(dict(timer.outputs))))

    def fail(self, urn: str, op: StepOp, message: str, *, skipped: bool = False) -> None:
        message = masked(message)
        with self.lock:
            self.failures[urn] = message
            if skipped:
                self.skipped.add(urn)
        self.emit(StepFailed(urn, op, message))

    # --- rules that several steps need

    def refuse_when_stopping(self) -> None:
        if self.stopping.is_set():
            raise Interrupted("stopped before all steps were done", remedy="run the command again to resume")

    def may_destroy(self, state: ResourceState) -> bool:
        allowed = self.settings.allow_destroy
        return not state.protect or state.urn in allowed or name_of(state.urn) in allowed

    def is_target(self, urn: str) -> bool:
        if urn in self.settings.leave:
            return False
        return not self.settings.targets or urn in self.settings.targets

    def provider_of(self, reference: str) -> ConfiguredProvider:
        """Returns the configured provider of a reference, loaded from the state when the program has not registered
        it."""
        ready = self.providers.get(reference)
        if ready is not None:
            return ready
        urn, id_ = split_reference(reference)
        for state in self.snapshot.resources():
            if state.urn == urn and state.id == id_:
                return self.providers.configure(reference, urn, id_, state.type, state.inputs)
        raise EngineFailed(
            "the provider of this resource is in neither the program nor the state",
            where=reference,
            remedy="register the provider in the program",
        )

    def summary(self) -> dict[str, int]:
        return dict(Counter(operation.op for operation in self.operations.values()))


@dataclass
class StepTimer:
    """The clock of a running step, and the step's outputs."""

    started: float = field(default_factory=time.monotonic)
    outputs: Mapping[str, Any] = field(default_factory=dict)


def operation(
    state: ResourceState, op: Any, old: ResourceState | None = None, *, reason: str = "", **more: Any
) -> Operation:
    """Returns the operation of a step, with every secret blinded. `state` is the new state, or the state of a deleted
    resource."""
    leaving = op == "delete"
    return Operation(
        urn=state.urn,
        op=op,
        type=state.type,
        name=name_of(state.urn),
        id=state.id or (old.id if old else ""),
        old_inputs=blinded(dict(old.inputs)) if old else {},
        old_outputs=blinded(dict(old.outputs)) if old else {},
        new_inputs={} if leaving else blinded(dict(state.inputs)),
        new_outputs={} if leaving else blinded(dict(state.outputs)),
        reason=reason,
        custom=state.custom,
        **more,
    )
