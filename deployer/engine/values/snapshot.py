"""The resources of a stack while a run changes them, and the entries of the journal that describe the changes.

Every resource has a key: `b3` is the fourth resource of the checkpoint that the run started from, `n7` the eighth
that the run added. An entry names keys, so applying the same entries to the same checkpoint gives the same stack,
whether it is done step by step in a run or all at once after a crash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from deployer.engine.values.resource import ResourceState
from deployer.errors import Corrupt

PendingKind = Literal["creating", "updating", "deleting", "reading"]


@dataclass(frozen=True, slots=True)
class Pending:
    """A step that began, with an unknown end."""

    kind: PendingKind
    resource: ResourceState


@dataclass(frozen=True, slots=True)
class Begin:
    """The entry before a step calls its provider. `step` is the step's number in the run."""

    step: int
    pending: Pending


@dataclass(frozen=True, slots=True)
class End:
    """The entry after a step: `add` is added to the stack, the keys in `drop` are removed, those in `put` get another
    state.

    `step` is the number of the matching `Begin`, or None for a step that does not call a provider. A step that failed
    and changed nothing has no other attributes. `resolves` are positions of pending operations of the checkpoint that
    this step settled. `keep` is the key of a resource that needs no change: it is kept unchanged.
    """

    step: int | None
    add: ResourceState | None = None
    drop: tuple[str, ...] = ()
    put: Mapping[str, ResourceState] = field(default_factory=dict)
    resolves: tuple[int, ...] = ()
    keep: str = ""


Entry = Begin | End


class Snapshot:
    """A stack's resources during a run. It is not safe for threads; the caller that runs steps holds a lock."""

    def __init__(self, base: Sequence[ResourceState], pending: Sequence[Pending] = ()) -> None:
        self._old: dict[str, ResourceState] = {f"b{index}": state for index, state in enumerate(base)}
        self._new: dict[str, ResourceState] = {}
        self._added = 0
        self._inherited: dict[int, Pending] = dict(enumerate(pending))
        self._begun: dict[int, Pending] = {}

    def apply(self, entry: Entry) -> str:
        """Applies one entry; returns the key of the added resource, or an empty string."""
        if isinstance(entry, Begin):
            self._begun[entry.step] = entry.pending
            return ""
        if entry.step is not None:
            self._begun.pop(entry.step, None)
        for position in entry.resolves:
            self._inherited.pop(position, None)
        for key, state in entry.put.items():
            (self._new if key.startswith("n") else self._old)[key] = state
        for key in entry.drop:
            self._old.pop(key, None)
            self._new.pop(key, None)
        if entry.keep.startswith("n"):
            return entry.keep
        if entry.keep and entry.keep not in self._old:
            raise Corrupt(f"a step keeps the resource {entry.keep}, which does not exist")
        added = self._old.pop(entry.keep) if entry.keep else entry.add
        if added is None:
            return ""
        key = f"n{self._added}"
        self._added += 1
        self._new[key] = added
        return key

    def __getitem__(self, key: str) -> ResourceState:
        return self._new[key] if key.startswith("n") else self._old[key]

    def items(self) -> Iterator[tuple[str, ResourceState]]:
        """Yields keys and resources: first those that this run registered, in its order, then the remaining former
        ones."""
        yield from self._new.items()
        yield from self._old.items()

    def old_items(self) -> Iterator[tuple[str, ResourceState]]:
        """Yields the remaining resources from before the run."""
        yield from self._old.items()

    def resources(self) -> list[ResourceState]:
        return [state for _, state in self.items()]

    def pending(self) -> list[Pending]:
        return [*self._inherited.values(), *self._begun.values()]

    def inherited(self) -> Iterator[tuple[int, Pending]]:
        """Pending operations of the checkpoint that no step has settled, with their positions."""
        yield from self._inherited.items()


def in_dependency_order(resources: Sequence[ResourceState]) -> list[ResourceState]:
    """Returns every resource after its dependencies, and otherwise in the given order.

    A complete run orders its resources by itself; a killed one may leave a resource before its dependency.
    """
    placed: set[str] = set()
    last: dict[str, int] = {state.urn: index for index, state in enumerate(resources) if not state.delete}
    done = [False] * len(resources)
    ordered: list[ResourceState] = []

    def place(start: int) -> None:
        stack = [(start, iter(sorted(last[urn] for urn in resources[start].needs() if urn in last)))]
        entered = {start}
        while stack:
            index, rest = stack[-1]
            step = next((i for i in rest if not done[i] and i not in entered), None)
            if step is not None:
                entered.add(step)
                stack.append((step, iter(sorted(last[urn] for urn in resources[step].needs() if urn in last))))
                continue
            stack.pop()
            if not done[index]:
                done[index] = True
                placed.add(resources[index].urn)
                ordered.append(resources[index])

    for index in range(len(resources)):
        if not done[index]:
            place(index)
    return ordered
