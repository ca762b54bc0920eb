"""What the steps of one run share: the snapshot and its journal, events, failures, and whether to stop."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from deployer.engine.journal import Journal
from deployer.engine.model import (
    Diagnostic,
    Event,
    OnEvent,
    Operation,
    StepFailed,
    StepFinished,
    StepOp,
    StepProgress,
    StepStarted,
)
from deployer.engine.providers import Configured, Providers
from deployer.engine.resource import ResourceState
from deployer.engine.secrets import Passphrase
from deployer.engine.snapshot import Begin, End, Pending, PendingKind, Snapshot
from deployer.engine.urns import name_of, split_reference
from deployer.engine.values import blinded, contains_secret
from deployer.errors import DeployerError, EngineFailed, Interrupted
from deployer.state.failpoints import reached


@dataclass(frozen=True)
class Settings:
    """How a run goes. `targets` are URNs, all when empty; `allow_destroy` lifts `protect` by URN or name.

    `leave` are URNs of resources that are neither read nor changed: they stay in the state as they are.
    """

    project: str
    stack: str
    dry_run: bool
    parallel: int
    targets: frozenset[str] = frozenset()
    allow_destroy: frozenset[str] = frozenset()
    leave: frozenset[str] = frozenset()


@dataclass
class Run:
    """The state of one run. Every change of the snapshot goes through `begin` and `end`, which journal it."""

    settings: Settings
    snapshot: Snapshot
    providers: Providers
    passphrase: Passphrase
    journal: Journal | None = None
    on_event: OnEvent | None = None
    operations: dict[str, Operation] = field(default_factory=dict)
    drift: dict[str, Operation] = field(default_factory=dict)
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
            if add is not None and not self._can_keep(add):
                add = replace(add, outputs={k: v for k, v in add.outputs.items() if not contains_secret(v)})
            entry = End(step, add, drop, put or {}, resolves if settles else (), keep)
            key = self.snapshot.apply(entry)
            for changed, state in entry.put.items():
                if not state.delete and state.urn in self.olds and self.olds[state.urn][0] == changed:
                    self.olds[state.urn] = (changed, state)
            if key:
                self.live[self.snapshot[key].urn] = key
            number = self.journal.append(entry) if self.journal else 0
        if step is not None:
            if self.journal:
                self.journal.sync(number)
            reached("engine.step.end")
        return key

    def _can_keep(self, state: ResourceState) -> bool:
        """Whether secret outputs can be saved. A provider may make one up, after it is too late to refuse the step:
        then the resource is saved without it, and the run fails."""
        if self.settings.dry_run or not contains_secret(state.outputs):
            return True
        try:
            self.passphrase.require()
        except DeployerError as error:
            self.fatal = self.fatal or error
            return False
        return True

    def state(self, urn: str) -> ResourceState | None:
        """The resource as it is now: as this run left it, else as it was before."""
        with self.lock:
            if urn in self.live:
                return self.snapshot[self.live[urn]]
            return self.olds[urn][1] if urn in self.olds else None

    def require_secrets(self) -> None:
        """Refuses a run that is going to save a secret and has no passphrase to hide it with."""
        if not self.settings.dry_run:
            with self.lock:
                self.passphrase.require()

    # --- events

    def emit(self, event: Event) -> None:
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
        """Emits how far a step is. Raises `Interrupted` when the run is to stop: a step that can be gone on with, or
        leaves nothing behind, lets that pass."""
        self.emit(StepProgress(urn, doing, done, total, unit))
        self.refuse_when_stopping()

    def record(self, operation: Operation) -> None:
        """Keeps an operation for the result, blinded; a later one of the same resource takes its place."""
        with self.lock:
            self.operations[operation.urn] = operation

    @contextmanager
    def step(self, urn: str, op: StepOp) -> Iterator[StepTimer]:
        """Emits the start and end of a step. An exception passes through; whoever handles it calls `fail`."""
        self.emit(StepStarted(urn, op))
        timer = StepTimer()
        yield timer
        self.emit(StepFinished(urn, op, time.monotonic() - timer.started, blinded(dict(timer.outputs))))

    def fail(self, urn: str, op: StepOp, message: str, *, skipped: bool = False) -> None:
        with self.lock:
            self.failures[urn] = message
            if skipped:
                self.skipped.add(urn)
        self.emit(StepFailed(urn, op, message))

    # --- rules that several steps need

    def refuse_when_stopping(self) -> None:
        if self.stopping.is_set():
            raise Interrupted("stopped before all steps were done", remedy="run the command again to go on")

    def may_destroy(self, state: ResourceState) -> bool:
        allowed = self.settings.allow_destroy
        return not state.protect or state.urn in allowed or name_of(state.urn) in allowed

    def is_target(self, urn: str) -> bool:
        if urn in self.settings.leave:
            return False
        return not self.settings.targets or urn in self.settings.targets

    def provider_of(self, reference: str) -> Configured:
        """The configured provider of a reference, loaded from the state when the program has not registered it."""
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
    """The operation of a step, with every secret blinded. `state` is what will be, or what goes."""
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
        **more,
    )
