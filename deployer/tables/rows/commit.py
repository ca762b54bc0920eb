"""Commits a change of rows once, by the protocol of `deployer.datasets.commit.protocol`."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deployer.datasets.commit.done_jobs import find_job
from deployer.datasets.commit.protocol import Committed, Intent, TableCommits
from deployer.datasets.commit_metadata import CommitMetadata
from deployer.datasets.files.writer import discard
from deployer.datasets.lance_transactions import ChangeRows, InDoubt, NotTaken
from deployer.datasets.recovery.restored_together import end_dead_restores
from deployer.datasets.recovery.rollforward import current
from deployer.errors import Conflict, DeployerError, NotFound, OutcomeUnknown, Refused
from deployer.live.reader import has_unique_keys
from deployer.platform.system.failpoints import reached
from deployer.platform.system.retry import Backoff
from deployer.state.log.requirements import TableRequirement
from deployer.state.log.updates import RowsChanged, TableUpdate
from deployer.state.model.declared_properties import HOLDS
from deployer.state.model.entities import Job, RowCounts
from deployer.state.transactions.tables import to_change_rows, to_change_unique_rows
from deployer.tables.ingest.commit.computed_files import with_definitions_of
from deployer.tables.ingest.commit.unique_keys import dead_loads
from deployer.tables.layout.indexes.build import catch_up
from deployer.tables.open_table import OpenTable
from deployer.tables.rows.change import FragmentCounts, PlanRows, RowChange, RowPlan
from deployer.tables.rows.matching import Deletions

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

ATTEMPTS = 20  #: how often a change is computed again because another process committed first
OF_VIEWS = ("refresh", "erase")  #: the kinds of changes that rows of views may have
_BACKOFF = Backoff(first=0.02, longest=1.0)


@dataclass(slots=True)
class RowJob:
    """One change of rows under its job id.

    `files` has the deletion files that the change writes. `may_empty` allows it to leave a protected table without
    rows. `owns_rows`: the rows of a plan are written for it, and removed where it is not committed; else each plan has
    the same, which the caller removes. `indexes`: those of the table are brought up to date afterwards, as by a load.
    `also` is required with the intent beside what all changes of rows require, and where no row changes.
    """

    kind: str
    plan_rows: PlanRows
    files: Deletions
    job_id: str | None = None
    dry_run: bool = False
    may_empty: bool = False
    sources: str = ""
    owns_rows: bool = True
    indexes: bool = False
    also: Sequence[TableRequirement] = ()
    _sent_files: bool = False  #: Lance may have a commit with the files of the newest plan

    def run(self, table: OpenTable) -> RowChange:
        """Computes the change on the newest version and commits it; with the id of a job that is done, does nothing.

        What fails of the indexes is in the result, and the next change or load tries again. Raises Refused where it
        would leave a table without rows that is protected from deletion; Conflict when others change the table without
        end, or another way than this can follow; OutcomeUnknown when Lance did not answer.
        """
        done = self._run(table)
        if not self.indexes or self.dry_run:
            return done
        return replace(done, indexes=catch_up(table.store, table.root, table.entry.table_id))

    def _run(self, table: OpenTable) -> RowChange:
        table = table.refreshed()
        if self.kind not in OF_VIEWS:
            table.refuse_view()
        if self.job_id and (job := find_job(table.store, table.root, table.entry.table_id, self.job_id)):
            return already_done(job)
        dataset = table.dataset()
        plan = self.plan_rows(table, dataset)
        try:
            return self._committed(table, dataset, plan)
        except BaseException:
            if not self._sent_files:
                self.files.discard()
            raise

    def _committed(self, table: OpenTable, dataset: LanceDataset, plan: RowPlan) -> RowChange:
        if self.dry_run:
            return RowChange(None, plan.counts, plan.leaves, plan.fragments, plan.version, dry_run=True)
        with self._discarded(table, plan):
            self._require_rows_left(table, plan)
        job_id = self.job_id or uuid.uuid4().hex
        if not plan.counts.changed:
            return self._nothing(table, job_id)
        commits = TableCommits(table.store, table.root, table.entry)
        with self._discarded(table, plan):
            reached("tables.rows.before-intent")
            intent = self._begun(commits, table, plan, job_id)
            if isinstance(intent, Job):
                self._discard(table, plan)
                return already_done(intent)
        reached("tables.rows.before-lance")
        try:
            if intent.state.properties.declared.get(HOLDS) != table.state.properties.declared.get(HOLDS):
                raise moved(table, "its legal holds were changed meanwhile")
            return self._sent(commits, table, dataset, plan, intent)
        except DeployerError:
            if self._sent_files:
                raise
            with contextlib.suppress(Conflict, NotFound):
                commits.abandon(job_id)
            raise

    def _require_rows_left(self, table: OpenTable, plan: RowPlan) -> None:
        """Raises Refused if a table that is protected from deletion would lose all rows."""
        state, gone = table.state, plan.counts.deleted - plan.counts.inserted
        if self.may_empty or not state.properties.deletion_protection or not state.files.rows:
            return
        if gone >= state.files.rows:
            raise Refused(
                f"the {self.kind} would remove all {state.files.rows:,} rows of the table, which is protected from "
                "deletion",
                where=table.address,
                remedy=f"set deletion_protection: false, or allow it with --allow-destroy {table.address}",
            )

    def _nothing(self, table: OpenTable, job_id: str) -> RowChange:
        """Returns the result of a change of no rows. With a job id of the caller's it is done, as a repeated one finds
        out."""
        version, job = table.state.lance_version, None
        if self.job_id:
            done: list[TableUpdate] = [RowsChanged((), (), (), version, job_id, self.kind, sources=self.sources)]
            required = [*to_change_rows(job_id, table.state.schema, table.entry.dataset), *self.also]
            job = table.store.commit(table.entry.table_id, done, required).jobs[job_id]
        return RowChange(job, RowCounts(), (), FragmentCounts(), version)

    def _begun(self, commits: TableCommits, table: OpenTable, plan: RowPlan, job_id: str) -> Intent | Job:
        """Returns the job's intent; the job where another process did it."""
        store, state, dataset = table.store, table.state, table.entry.dataset
        for attempt in _BACKOFF.attempts(ATTEMPTS):
            # A table without fragments has none that could guard against another change of its rows.
            alone = not state.files.count or (plan.compared and has_unique_keys(state))
            dead = [each for each in dead_loads(state, time.time_ns() // 1_000_000) if alone and each != job_id]
            required = to_change_rows(job_id, state.schema, dataset)
            if alone:
                required = to_change_unique_rows(job_id, state.schema, dataset, dead)
            try:
                return commits.begin([(job_id, self.kind)], plan.version, [*required, *self.also], dead)
            except NotFound as removed:
                raise moved(table, str(removed.what)) from removed
            except Conflict as conflict:
                if job := find_job(store, table.root, table.entry.table_id, job_id):
                    return job
                state = store.table(table.entry.table_id)
                end_dead_restores(store, table.root, state)
                if attempt == ATTEMPTS - 1 or state.dataset != dataset or state.schema != table.state.schema:
                    raise moved(table, conflict.what) from conflict
        raise AssertionError("the loop returns or raises")

    def _sent(
        self, commits: TableCommits, table: OpenTable, dataset: LanceDataset, plan: RowPlan, intent: Intent
    ) -> RowChange:
        """Commits the change; returns it as it is recorded. Loads on this machine wait meanwhile: this would lose race
        after race."""
        for attempt in _BACKOFF.attempts(ATTEMPTS):
            with table.store.turn(table.entry.table_id) as turn:
                table = table.refreshed() if attempt or turn.waited else self._now(table, intent)
                if job := table.state.jobs.get(intent.job_id):
                    self._discard(table, plan)
                    return already_done(job)
                if table.entry.dataset != commits.entry.dataset:
                    self._discard(table, plan)
                    raise moved(table, "the table was rewritten meanwhile")
                if table.state.lance_version != plan.version:
                    self._discard(table, plan)
                    dataset = table.dataset()
                    plan = self.plan_rows(table, dataset)
                    with self._discarded(table, plan):
                        self._require_rows_left(table, plan)
                if not plan.counts.changed:
                    commits.abandon(intent.job_id)
                    return self._nothing(table, intent.job_id)
                operation = _operation(dataset, plan)
                prepared = commits.prepare(table.state, dataset, operation, [self._metadata(table, intent, plan)])
                self._sent_files = True
                outcome = commits.send(prepared)
                if not isinstance(outcome, Committed):
                    self._sent_files = isinstance(outcome, InDoubt)
                    self._require_repeatable(table, plan, outcome)
                    continue
                reached("tables.rows.after-lance")
                jobs = commits.record(outcome).jobs
                reached("tables.rows.after-state")
            if (found := jobs.get(intent.job_id)) is None:
                if table.store.table(table.entry.table_id).dataset != commits.entry.dataset:
                    raise moved(table, "the table was rewritten meanwhile")  # Lance has it in the old dataset
                raise _unknown(table, "Lance took the commit, and it cannot be found again")
            self.files.discard(plan.changed)
            return RowChange(found, plan.counts, plan.leaves, plan.fragments, found.lance_version)
        self._discard(table, plan)
        raise moved(table, f"other processes changed the same rows first, {ATTEMPTS} times")

    def _now(self, table: OpenTable, intent: Intent) -> OpenTable:
        """Returns the table as the log has it with the intent; what Lance alone has is recorded first."""
        entry, state = current(table.store, table.root, table.entry, intent.state)
        return replace(table, entry=entry, state=state)

    def _metadata(self, table: OpenTable, intent: Intent, plan: RowPlan) -> CommitMetadata:
        written = plan.written
        if self.owns_rows:  # those of a load are whole new rows
            changed = (int(each.id) for each in plan.changed)
            written = with_definitions_of(written, table.state, (*changed, *plan.removed_ids))
        files = tuple(each.marked for each in written)
        return CommitMetadata(intent.job_id, self.kind, plan.counts.changed, files, self.sources, plan.counts)

    def _require_repeatable(self, table: OpenTable, plan: RowPlan, outcome: NotTaken | InDoubt) -> None:
        """Raises the error of a commit that Lance does not have, unless it can be prepared again."""
        failure = outcome.failure
        said = str(failure).splitlines()[0] if str(failure) else type(failure).__name__
        match outcome:
            case NotTaken(reason="removed"):
                raise moved(table, "the table was removed meanwhile") from failure
            case NotTaken(reason="invalid"):
                self._discard(table, plan)
                raise moved(table, f"Lance refuses it: {said}") from failure
            case InDoubt():
                raise _unknown(table, f"the commit to Lance failed, and whether it happened is unknown: {said}")

    def _discard(self, table: OpenTable, plan: RowPlan) -> None:
        if self.owns_rows:
            discard(table.location, plan.written)

    @contextlib.contextmanager
    def _discarded(self, table: OpenTable, plan: RowPlan) -> Iterator[None]:
        with discarded(table, plan) if self.owns_rows else contextlib.nullcontext():
            yield


def _operation(dataset: Any, plan: RowPlan) -> ChangeRows:
    first = next(iter(dataset.get_fragments()), None)
    guard = None if first is None else first.metadata
    return ChangeRows(plan.changed, plan.removed_ids, plan.written, guard, plan.why)


def already_done(job: Job) -> RowChange:
    """Returns the result of a job that an earlier run did."""
    return RowChange(job, job.counts or RowCounts(), (), FragmentCounts(), job.lance_version, already_done=True)


@contextlib.contextmanager
def discarded(table: OpenTable, plan: RowPlan) -> Iterator[None]:
    """Removes the rows that were written for a plan where what follows fails: they are not committed."""
    try:
        yield
    except BaseException:
        discard(table.location, plan.written)
        raise


def moved(table: OpenTable, why: str) -> Conflict:
    """Returns the error of a change that lost a race; nothing of it is committed."""
    return Conflict(f"the rows were not changed: {why}", where=table.address, remedy="run it again")


def _unknown(table: OpenTable, what: str) -> OutcomeUnknown:
    return OutcomeUnknown(
        what,
        where=table.address,
        remedy="run it again with the same job id: a change that was committed is not done twice",
    )
