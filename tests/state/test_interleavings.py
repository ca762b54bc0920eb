"""Random interleavings of appends, compactions, splits, snapshots and removals by several writers, against a model.

The model is a few dicts that know nothing of logs, snapshots or versions that were removed: it replays what was
acknowledged, in the order of the versions.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from deployer.errors import Conflict
from deployer.state import remove_store
from deployer.state.commits import Part
from deployer.state.log.requirements import FilesPresent, JobNotDone, PartitionIsLeaf, TableRequirement
from deployer.state.log.service_updates import RunEnded, RunQueued, RunStarted, SavepointRemoved, SavepointTaken
from deployer.state.log.updates import (
    CommitStarted,
    FilesAdded,
    FilesRemoved,
    FilesReplaced,
    PartitionSplit,
    SetInstanceProperties,
    SetTableProperties,
    TableUpdate,
)
from deployer.state.model.entities import INSTANCE_LOG, TableState
from deployer.state.model.services import FinalStatus
from deployer.state.snapshots.retention import SnapshotPolicy
from deployer.state.transactions.services import to_go_on, to_queue_run, to_start_run

from .samples import TABLE, creation, file, store_at

pytestmark = pytest.mark.gate

WRITERS = st.integers(0, 2)
POLICY = SnapshotPolicy(entries=7, keep=1, keep_for=0)  # each removes what is below its last snapshot


@dataclass
class Model:
    """What the table must be: files by fragment id with their partition, leaves with their lower bound, jobs, name."""

    version: int = 1
    files: dict[int, str] = field(default_factory=dict)
    leaves: dict[str, bytes] = field(default_factory=lambda: {"root": b""})
    jobs: list[str] = field(default_factory=list)
    intents: set[str] = field(default_factory=set)
    description: str = ""
    runs: dict[str, str] = field(default_factory=dict)
    savepoints: dict[str, dict[int, str]] = field(default_factory=dict)

    def is_like(self, state: TableState) -> None:
        assert state.version == self.version
        assert {each.fragment_id: each.partition for each in state.files} == self.files
        assert {leaf.partition_id: leaf.lower for leaf in state.leaves()} == self.leaves
        assert list(state.jobs) == self.jobs
        assert set(state.intents) == self.intents
        assert state.properties.description == self.description
        assert {run.run_id: run.status for run in state.runs.values()} == self.runs
        assert set(state.savepoints) == set(self.savepoints)


class Interleavings(RuleBasedStateMachine):
    def __init__(self, root: str) -> None:
        super().__init__()
        self.root = root
        self.stores = [store_at(self.root, policy=POLICY) for _ in range(3)]  # each with a cache of its own
        self.reader = store_at(self.root)
        self.stores[0].commit(TABLE, [creation()])
        self.model, self.instance, self.number = Model(), 0, 0

    def teardown(self) -> None:
        for store in (*self.stores, self.reader):
            store.close()
        remove_store(self.root)

    def _next(self) -> int:
        self.number += 1
        return self.number

    @rule(writer=WRITERS, count=st.integers(1, 3), leaf=st.integers(0, 9), with_intent=st.booleans())
    def append(self, writer: int, count: int, leaf: int, with_intent: bool) -> None:
        number, partition = self._next(), sorted(self.model.leaves)[leaf % len(self.model.leaves)]
        job = f"job-{number}"
        if with_intent:
            self.stores[writer - 1].commit(TABLE, [CommitStarted(job, "ingest", 1)])
            self.model.version += 1
        fresh = [10 * number + each for each in range(count)]
        files = tuple(file(each, partition=partition) for each in fresh)
        state = self.stores[writer].commit(TABLE, [FilesAdded(files, number, job, 10)], [JobNotDone(job)])
        self.model.files |= dict.fromkeys(fresh, partition)
        self.model.jobs.append(job)
        self.model.version += 1
        self.model.is_like(state)

    @rule(writer=WRITERS, leaf=st.integers(0, 9), data=st.data())
    def compact(self, writer: int, leaf: int, data: st.DataObject) -> None:
        number, partition = self._next(), sorted(self.model.leaves)[leaf % len(self.model.leaves)]
        known = sorted(self.model.files) or [0]
        chosen = tuple(data.draw(st.lists(st.sampled_from([*known, 999_999]), min_size=1, max_size=3, unique=True)))
        updates = [FilesReplaced(chosen, (file(10 * number, partition=partition),), number)]
        if set(chosen) <= self.model.files.keys():
            state = self.stores[writer].commit(TABLE, updates, [FilesPresent(chosen)])
            for each in chosen:
                del self.model.files[each]
            self.model.files[10 * number] = partition
            self.model.version += 1
            self.model.is_like(state)
        else:
            with pytest.raises(Conflict, match="no longer in the table"):
                self.stores[writer].commit(TABLE, updates, [FilesPresent(chosen)])

    @rule(writer=WRITERS, leaf=st.integers(0, 9), where=st.binary(min_size=1, max_size=2))
    def split(self, writer: int, leaf: int, where: bytes) -> None:
        number, name = self._next(), sorted(self.model.leaves)[leaf % len(self.model.leaves)]
        lower = self.model.leaves[name]
        point = lower + where
        if any(lower < other <= point for other in self.model.leaves.values()):
            return  # beyond the leaf's upper bound
        left, right = f"{name}l{number}"[-30:], f"{name}r{number}"[-30:]
        update = PartitionSplit(name, point, left, right)
        self.stores[writer].commit(TABLE, [update], [PartitionIsLeaf(name)])
        del self.model.leaves[name]
        self.model.leaves |= {left: lower, right: point}
        self.model.version += 1
        with pytest.raises(Conflict, match="was split into"):
            self.stores[writer - 1].commit(TABLE, [update], [PartitionIsLeaf(name)])

    @rule(writer=WRITERS, data=st.data())
    def remove(self, writer: int, data: st.DataObject) -> None:
        if not self.model.files:
            return
        gone = data.draw(st.sampled_from(sorted(self.model.files)))
        self.stores[writer].commit(TABLE, [FilesRemoved((gone,), self._next())])
        del self.model.files[gone]
        self.model.version += 1

    @rule(writer=WRITERS, status=st.sampled_from(["SUCCEEDED", "FAILED"]))
    def run(self, writer: int, status: FinalStatus) -> None:
        """The next step of the one run that is open, of which a second writer who does the same is told."""
        open_ones = {run_id: status for run_id, status in self.model.runs.items() if status in ("QUEUED", "RUNNING")}
        run_id, now = next(iter(open_ones.items()), (f"run-{self._next()}", ""))
        steps: dict[str, tuple[TableUpdate, list[TableRequirement], str]] = {
            "": (RunQueued(run_id, "CLEAN", "by hand"), to_queue_run("CLEAN", needs_service=False), "QUEUED"),
            "QUEUED": (RunStarted(run_id, "me", 1), to_start_run(run_id, "CLEAN"), "RUNNING"),
            "RUNNING": (RunEnded(run_id, status), to_go_on(run_id, "me"), status),
        }
        update, requirements, after = steps[now]
        self.stores[writer].commit(TABLE, [update], requirements)
        self.model.runs[run_id] = after
        self.model.version += 1
        with pytest.raises(Conflict, match=run_id):
            self.stores[writer - 1].commit(TABLE, [update], requirements)

    @rule(writer=WRITERS)
    def take_savepoint(self, writer: int) -> None:
        name = f"savepoint-{self._next()}"
        self.stores[writer].commit(TABLE, [SavepointTaken(name)])
        self.model.savepoints[name] = dict(self.model.files)
        self.model.version += 1

    @rule(writer=WRITERS, data=st.data())
    def remove_savepoint(self, writer: int, data: st.DataObject) -> None:
        if self.model.savepoints:
            name = data.draw(st.sampled_from(sorted(self.model.savepoints)))
            self.stores[writer].commit(TABLE, [SavepointRemoved(name)])
            del self.model.savepoints[name]
            self.model.version += 1

    @rule(reader=WRITERS)
    def read_savepoints(self, reader: int) -> None:
        for savepoint in self.stores[reader].table(TABLE).savepoints.values():
            then = self.stores[reader].table(TABLE, at=savepoint.state_version)
            assert {each.fragment_id: each.partition for each in then.files} == self.model.savepoints[savepoint.name]

    @rule(writer=WRITERS)
    def both_logs(self, writer: int) -> None:
        number = self._next()
        parts = [
            Part(INSTANCE_LOG, [SetInstanceProperties({"number": number})]),
            Part(TABLE, [SetTableProperties({"description": str(number)})]),
        ]
        self.stores[writer].commit_all(parts)
        self.model.description, self.instance = str(number), number
        self.model.version += 1

    @rule(writer=WRITERS)
    def snapshot(self, writer: int) -> None:
        self.stores[writer].snapshot(TABLE)

    @rule(writer=WRITERS)
    def remove_old(self, writer: int) -> None:
        self.stores[writer].remove_old(TABLE)

    @rule(reader=WRITERS)
    def read(self, reader: int) -> None:
        self.model.is_like(self.stores[reader].table(TABLE))
        assert self.stores[reader].instance().properties.get("number", 0) == self.instance

    @invariant()
    def a_reader_who_knows_nothing_sees_what_was_acknowledged(self) -> None:
        self.reader._cache.forget(TABLE)
        self.model.is_like(self.reader.table(TABLE))
        versions = [entry.version for entry in self.reader.log(TABLE)]
        assert versions == list(range(self.model.version - len(versions) + 1, self.model.version + 1))


LENGTHS = [pytest.param(6, 12, id="short"), pytest.param(60, 40, id="long", marks=pytest.mark.slow)]


@pytest.mark.parametrize(("examples", "steps"), LENGTHS)
def test_whatever_writers_do_the_store_is_what_was_acknowledged(root: str, examples: int, steps: int) -> None:
    factory: Any = lambda: Interleavings(f"{root}/{uuid.uuid4().hex[:8]}")  # noqa: E731
    run_state_machine_as_test(
        factory,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
