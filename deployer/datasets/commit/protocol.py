"""The protocol of a commit to a table: an intent in the log, then one commit to Lance, then the record in the log.

    (files are written)
         │ begin ───────────► requirement fails: Conflict. Nothing is committed: the caller removes its files.
         ▼
    ┌─────────┐  a process that dies here leaves nothing in Lance: the job runs again, or `table gc` abandons the intent
    │ Intent  │
    └─────────┘
         │ prepare
         ▼
    ┌──────────┐ send ──────► NotTaken: sent or prepared again, or abandon ─► Conflict. Nothing is committed.
    │ Prepared │
    └──────────┘ send ──────► InDoubt ─► OutcomeUnknown. The intent and the files stay: Lance may have the commit.
         │ send
         ▼
    ┌───────────┐ a process that dies here has committed: who opens the table next records it (`recovery.rollforward`)
    │ Committed │
    └───────────┘
         │ record ──────────► the job is not found ─► OutcomeUnknown, or Conflict after a rewrite
         ▼
    ┌──────────┐
    │ Recorded │ the same job is never done twice
    └──────────┘

The module of each operation has what differs:

- Appends (`deployer.tables.ingest.commit.append`): one commit covers several jobs, including those of waiting writers.
  A transaction that lost its races is sent again unchanged.
- Rewrites of files (`deployer.runs.rewriting.replace`): a transaction that lost is prepared again, on the newest
  version. - Changes of rows (`deployer.tables.rows.commit`): one that lost is prepared again, on the newest version.
- Schema changes (`deployer.tables.evolution.schema.commit`): sent once, and abandoned where Lance does not have it
  then, for whatever reason. What changed is recorded by the roll-forward alone.
- Restores (`deployer.services.restore.restoring`): one transaction of the state writes the intents of all tables, and
  one records all of them (`deployer.datasets.recovery.restored_together`). They share only `send`.

A rewrite of a whole table is not such a commit: it fills a dataset that no reader sees, and one transaction of the
state swaps that in (`deployer.tables.evolution.rewrite.rewrite`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deployer.datasets.commit.done_jobs import jobs_with
from deployer.datasets.commit_metadata import CommitMetadata
from deployer.datasets.dataset import dataset_location
from deployer.datasets.lance_transactions import InDoubt, NotTaken, Operation, Taken, TakenRows, prepare, send
from deployer.datasets.recovery.unrecorded import appended
from deployer.errors import Conflict, NotFound
from deployer.state.log.requirements import TableRequirement
from deployer.state.log.updates import CommitAbandoned, CommitStarted, TableUpdate
from deployer.state.model.entities import Job, TableEntry, TableState
from deployer.state.transactions.tables import to_record

if TYPE_CHECKING:
    import lance

    from deployer.state.store import StateStore


@dataclass(frozen=True, slots=True)
class Intent:
    """The first step: the log has the job's intent. `state` is the table's state with that intent."""

    job_id: str
    state: TableState


@dataclass(frozen=True, slots=True)
class Prepared:
    """A transaction of Lance on top of an opened version. `state` is the table's state that the transaction is based
    on."""

    state: TableState
    dataset: lance.LanceDataset
    operation: Operation
    metadata: tuple[CommitMetadata, ...]
    transaction: lance.Transaction


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that Lance has and the log may lack. `dataset` is the dataset at that commit; None where the commit
    raised an error but the dataset has it."""

    prepared: Prepared
    dataset: lance.LanceDataset | None


@dataclass(frozen=True, slots=True)
class Recorded:
    """The table's jobs in the log. The jobs of the commit are among them, unless others undid or discarded them."""

    jobs: Mapping[str, Job]


@dataclass(frozen=True, slots=True)
class TableCommits:
    """Commits to one table: each method is a step of the protocol."""

    store: StateStore
    root: str
    entry: TableEntry

    @property
    def location(self) -> str:
        return dataset_location(self.root, self.entry)

    def begin(
        self,
        jobs: Sequence[tuple[str, str]],
        version: int,
        required: Sequence[TableRequirement],
        abandoned: Sequence[str] = (),
    ) -> Intent:
        """Writes the intents of jobs, which are pairs of id and kind; the first is the caller's own.

        `version` is the dataset's that the commit starts from. The intents of `abandoned` jobs end with it. Raises
        Conflict when a requirement fails, NotFound when the table was removed.
        """
        updates: list[TableUpdate] = [*map(CommitAbandoned, abandoned)]
        updates += [CommitStarted(job_id, kind, version) for job_id, kind in jobs]
        return Intent(jobs[0][0], self.store.commit(self.entry.table_id, updates, list(required)))

    def prepare(
        self,
        state: TableState,
        dataset: lance.LanceDataset,
        operation: Operation,
        metadata: Sequence[CommitMetadata],
    ) -> Prepared:
        """Makes the transaction of an operation on top of the opened version; the transaction carries the metadata."""
        return Prepared(state, dataset, operation, tuple(metadata), prepare(dataset, operation, metadata))

    def send(self, prepared: Prepared) -> Committed | NotTaken | InDoubt:
        """Commits to Lance. A transaction that Lance did not take can be sent again or prepared again."""
        outcome = send(self.location, prepared.dataset, prepared.transaction)
        return Committed(prepared, outcome.dataset) if isinstance(outcome, Taken) else outcome

    def record(self, committed: Committed, *, durable: bool = True) -> Recorded:
        """Records the commit.

        Where no other process committed since, it is recorded from its metadata, without reading anything. Otherwise it
        is recorded as when the log is found behind the dataset. `durable` is that of the store's `commit`; the
        roll-forward is always durable.
        """
        jobs = recorded_at_once(self.store, committed, durable=durable)
        if jobs is None:
            job_ids = {info.job_id for info in committed.prepared.metadata}
            jobs = jobs_with(self.store, self.root, self.entry.table_id, job_ids)
        return Recorded(jobs)

    def record_as_found(self, job_id: str) -> Recorded:
        """Records the commit of a job from the dataset, as when the log is found behind it.

        It serves operations that have to read the dataset in any case. The caller need not keep a version open: each
        open version of a table with many fragments takes much memory.
        """
        return Recorded(jobs_with(self.store, self.root, self.entry.table_id, {job_id}))

    def abandon(self, job_id: str) -> None:
        """Ends the intent of a job that has not committed and will not commit."""
        self.store.commit(self.entry.table_id, [CommitAbandoned(job_id)])

    @contextmanager
    def abandoned_on_conflict(self, intent: Intent) -> Iterator[None]:
        """Wraps the steps after `begin`: a Conflict means that nothing was committed, and ends the intent."""
        try:
            yield
        except Conflict:
            self.abandon(intent.job_id)
            raise


def recorded_at_once(store: StateStore, committed: Committed, *, durable: bool) -> Mapping[str, Job] | None:
    """Returns the table's jobs with those of the commit; None when others committed after its state, or the dataset
    must be read."""
    made, before, removed = committed.dataset, committed.prepared.state, committed.prepared.operation.removed
    if made is None or removed is None or made.version != before.lance_version + 1:
        return None
    taken = TakenRows.of(committed.prepared.transaction.operation)
    updates = appended(made, before, committed.prepared.metadata, removed, taken)
    if not updates:
        return None
    unchanged = to_record(before.lance_version, before.dataset)
    try:
        return store.commit(before.table_id, updates, unchanged, durable=durable).jobs
    except (Conflict, NotFound):
        return None
