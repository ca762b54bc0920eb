"""The state that the steps of one run share: the snapshot and its journal, events, failures, and whether to stop."""

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
from deployer.engine.providers.registry import Configured, Providers
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
    refreshed: Refreshed = field(default_factory=Refreshed)  #: what was read before this run, and is not read again
    #: what this run's refresh read, as `Refreshed.answers` has it
    read: dict[tuple[str, str], tuple[ResourceState, Live]] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)  #: message by URN of what failed or was skipped
    skipped: set[str] = field(default_factory=set)  #: of these, the ones that were skipped
    left_out: set[str] = field(default_factory=set)  #: new resources that the targets leave uncreated
    olds: dict[str, tuple[str, ResourceState]] = field(default_factory=dict)  #: key and state before, by URN
    live: dict[str, str] = field(default_factory=dict)  #: key of what this run has put in place, by URN
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
        """Looks up what was there before the program runs; after a refresh, since that changes it."""
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
        """Records the end of a step, on disk when it called a provider; returns the key of what it added.

        `settles` is the URN whose unfinished operations from an earlier run this step has made good.
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
        """Returns the resource as it is saved: known secrets in clear are made secret, and every secret is masked from
        now on.

        A provider may make a secret up, after it is too late to refuse the step: where it cannot be saved, the resource
        is saved without it, and the run fails.
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
        """Returns the resource as it is now: as this run left it, else as it was before."""
        with self.lock:
            if urn in self.live:
                return self.snapshot[self.live[urn]]
            return self.olds[urn][1] if urn in self.olds else None

    def require_secrets(self) -> None:
        """Refuses a run that is going to save a secret and has no key to hide it with."""
        if not self.settings.dry_run:
            with self.lock:
                self.secrets.require()

    # --- events

    def emit(self, event: Event) -> None:
        """Tells an event, known secrets masked: messages are of the program and of providers."""
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
        """Emits the progress of a step. Raises `Interrupted` when the run is to stop: a step that is resumable, or
        leaves nothing behind, lets that pass."""
        self.emit(StepProgress(urn, doing, done, total, unit))
        self.refuse_when_stopping()

    def record(self, operation: Operation) -> None:
        """Keeps an operation for the result, blinded; a later one of the same resource takes its place."""
        with self.lock:
            self.operations[operation.urn] = operation

    @contextmanager
    def step(self, urn: str, op: StepOp) -> Iterator[StepTimer]:
        """Emits the start and end of a step. An exception passes through; its handler calls `fail`."""
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

    def provider_of(self, reference: str) -> Configured:
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
    """The clock of a running step, and the outputs it ends with."""

    started: float = field(default_factory=time.monotonic)
    outputs: Mapping[str, Any] = field(default_factory=dict)


def operation(
    state: ResourceState, op: Any, old: ResourceState | None = None, *, reason: str = "", **more: Any
) -> Operation:
    """Returns the operation of a step, with every secret blinded. `state` is what will be, or what goes."""
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
