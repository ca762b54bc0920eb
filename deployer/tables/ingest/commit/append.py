"""Commits written fragments once, by the protocol of `deployer.datasets.commit.protocol`.

If several processes on one machine append to a table at the same time, one process holds the turn and also commits the
rows of the waiting processes (`deployer.state.backends.group_commit`). This makes one version in Lance, with metadata
for each append, and one intent and one record in the log. A process that gets no answer in time first ensures that no
other process can still commit its rows, and then commits them itself.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deployer.datasets.commit.done_jobs import find_job, undone_job
from deployer.datasets.commit.protocol import Intent, TableCommits
from deployer.datasets.dataset import open_dataset
from deployer.datasets.files.writer import WrittenFragment
from deployer.datasets.lance_transactions import metadata_at
from deployer.datasets.recovery.restored_together import end_dead_restores
from deployer.datasets.recovery.rollforward import current
from deployer.errors import Conflict, DeployerError, NotFound, OutcomeUnknown, Preempted
from deployer.live.reader import has_unique_keys
from deployer.platform.system.failpoints import reached
from deployer.state.backends.group_commit import Ticket
from deployer.state.log.codec import decode, encode
from deployer.state.log.requirements import JobNotDone
from deployer.state.model.entities import Job, TableEntry
from deployer.state.transactions.tables import to_add_files
from deployer.tables.ingest.commit.computed_files import with_load_definitions
from deployer.tables.ingest.commit.lance_append import append_to_lance, fence_appends, moved_on
from deployer.tables.ingest.commit.pending import (
    ALONE,
    LOOK,
    Other,
    Pending,
    alike,
    answered,
    has_fields,
    has_files,
    taken,
)
from deployer.tables.ingest.commit.unique_keys import begin_alone
from deployer.tables.ingest.keys.unique import Admission

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset
    from deployer.state.store import StateStore


ATTEMPTS = 10  #: attempts of a commit that Lance refuses because of the commits of others


@dataclass(frozen=True, slots=True)
class AppendResult:
    """The result of a job. `already_done` says that an earlier run had committed it, and this run added nothing.

    `dataset` is the dataset after the commit; None where another process made the commit. `skipped` is the number of
    rows that were left out because their keys existed.
    """

    job: Job
    already_done: bool
    dataset: LanceDataset | None = field(default=None, compare=False, repr=False)
    skipped: int = 0


def commit_append(
    store: StateStore,
    root: str,
    entry: TableEntry,
    job_id: str,
    kind: str,
    written: Sequence[WrittenFragment],
    schema: bytes,
    dataset: LanceDataset | None = None,
    sources: str = "",
    admission: Admission | None = None,
) -> AppendResult:
    """Commits the written fragments to the table as one version of its dataset.

    `schema` is the table's schema for which the rows were written, in the state's form. `dataset`, for a caller that
    appends repeatedly, is the dataset of its previous commit; nothing is then read unless another process commits.
    `sources` are the files of the rows, as in `Job`. `admission` has the remaining check of the rows for a table with
    unique keys.

    Raises KeysTaken where others added rows with the same keys after the check. Raises Conflict where the table was
    changed or removed meanwhile: nothing is committed, and the fragments can be removed. Raises OutcomeUnknown where
    Lance did not answer and the commit cannot be found: the fragments must then not be removed.
    """
    commits = TableCommits(store, root, entry)
    written = with_load_definitions(written, schema, commits.location, dataset)
    pending = Pending.of(job_id, kind, written, schema, entry.dataset, sources)
    request = pending.to_bytes if admission is None else None
    lost = 0
    while True:
        try:
            with store.turn(entry.table_id, request) as turn:
                if (done := _done_by_another(commits, pending, turn)) is not None:
                    return done
                if turn.answer is None:
                    if admission is not None:
                        return _commit_checked(commits, pending, schema, admission, turn)
                    return _commit_append(commits, pending, schema, dataset, turn)
        except Preempted:
            lost, dataset = lost + 1, None
            if lost == ATTEMPTS:
                raise
        request = None


def _done_by_another(commits: TableCommits, pending: Pending, turn: Ticket) -> AppendResult | None:
    """Returns the result of an append that another process took; None where that process has not committed it and can
    no longer do so."""
    if turn.answer is not None and turn.answer not in (ALONE, LOOK):
        return AppendResult(decode(Job, json.loads(turn.answer)), already_done=False)
    with contextlib.suppress(NotFound):  # the commit will say so
        if turn.in_doubt or turn.answer == LOOK:
            fence_appends(commits.location, pending.job_id)
        elif not turn.taker_gone:
            return None
        if (job := _found(commits, pending.job_id)) is not None:
            return _known(commits, job, already_done=not _is_of(pending, commits.location, job))
    return None


def _found(commits: TableCommits, job_id: str) -> Job | None:
    """Returns a job that Lance may have committed, including one that a restore has undone since; None where it is not
    found.

    A job that a restore has undone is in the log, because a restore only follows recorded commits.
    """
    store, table_id = commits.store, commits.entry.table_id
    return find_job(store, commits.root, table_id, job_id) or undone_job(store, table_id, job_id)


def _known(commits: TableCommits, job: Job, *, already_done: bool = True) -> AppendResult:
    """Returns the result of a job in the log. The process that committed it may not have flushed the log yet."""
    commits.store.flush()
    return AppendResult(job, already_done)


def _is_of(pending: Pending, location: str, job: Job) -> bool:
    """Returns whether the job committed these files, and not those of another run of it."""
    infos = metadata_at(open_dataset(location), job.lance_version)
    return not infos or any(info.files == pending.info.files for info in infos)


def _commit_append(
    commits: TableCommits, pending: Pending, schema: bytes, dataset: LanceDataset | None, turn: Ticket
) -> AppendResult:
    store, root, entry, job_id = commits.store, commits.root, commits.entry, pending.job_id
    if turn.waited:
        with contextlib.suppress(NotFound):  # the commit will say so
            store.table(entry.table_id)  # one read costs less than a commit that was prepared on an old state
    if dataset is None:
        now, state = current(store, root, entry, store.table(entry.table_id))
        if job := state.jobs.get(job_id):
            return _known(commits, job)
        if now.dataset != entry.dataset:
            raise _rewritten(entry)
        dataset = open_dataset(commits.location, state.lance_version)
    reached("tables.commit.before-intent")
    others = [*alike(turn.requests(), pending)]
    try:
        intent, others = _begun(commits, pending, schema, int(dataset.version), others)
    except (Conflict, NotFound) as conflict:
        if not isinstance(conflict, NotFound) and (job := find_job(store, root, entry.table_id, job_id)):
            return _known(commits, job)
        if not isinstance(conflict, NotFound):
            state = store.table(entry.table_id)
            end_dead_restores(store, root, state)  # so that a dead restore does not block the next attempt
            if turn.waited and job_id in state.intents:  # begun by another process for this writer
                with contextlib.suppress(Conflict, NotFound):
                    commits.abandon(job_id)
        raise _changed(entry, conflict) from conflict
    with commits.abandoned_on_conflict(intent):
        if has_unique_keys(intent.state):
            raise _conflict(entry, "the table's row keys became unique while rows were being written for it")
    return _committed(commits, pending, dataset, intent, others, turn)


def _commit_checked(
    commits: TableCommits, pending: Pending, schema: bytes, admission: Admission, turn: Ticket
) -> AppendResult:
    """Commits rows whose keys are compared with those of the table. Does not commit rows of other writers."""
    reached("tables.commit.before-intent")
    try:
        begun = begin_alone(commits, pending, schema, admission)
    except NotFound as removed:
        raise _changed(commits.entry, removed) from removed
    if isinstance(begun, Job):
        return _known(commits, begun)
    intent, dataset = begun
    return _committed(commits, pending, dataset, intent, [], turn)


def _committed(
    commits: TableCommits,
    pending: Pending,
    dataset: LanceDataset,
    intent: Intent,
    others: list[Other],
    turn: Ticket,
) -> AppendResult:
    """Commits an append whose intent is written, and the appends of `others`, to Lance, and records them in the log."""
    store, location = commits.store, commits.location
    with commits.abandoned_on_conflict(intent):
        _require_files(location, pending)
        dataset = moved_on(dataset, intent.state)
        _require_fields(dataset, pending, commits.entry)
    others = taken(location, dataset, others)
    with answered(others):
        reached("tables.commit.before-lance")
        with commits.abandoned_on_conflict(intent):
            try:
                committed = append_to_lance(commits, intent, dataset, [pending, *(each.pending for each in others)])
            except Conflict:
                for each in others:
                    each.request.answer(ALONE)
                raise
        reached("tables.commit.after-lance")
        jobs = commits.record(committed, durable=False).jobs
        reached("tables.commit.after-state")
        turn.pass_on()  # the next holder needs no disk for its first step
        store.flush()
        for each in others:
            if (job := jobs.get(each.pending.job_id)) is not None:
                each.request.answer(json.dumps(encode(job)).encode())
    own = jobs.get(pending.job_id) or _required(commits, pending.job_id)
    return AppendResult(own, already_done=False, dataset=committed.dataset)


def _begun(
    commits: TableCommits, own: Pending, schema: bytes, version: int, others: list[Other]
) -> tuple[Intent, list[Other]]:
    """Writes the intents of the append and of the other appends. Returns the intent and the other appends that it
    includes. Appends whose jobs are already done are left out, so that they do not block the rest."""
    while True:
        jobs = [(each.job_id, each.info.kind) for each in (own, *(other.pending for other in others))]
        required = to_add_files(own.job_id, schema, commits.entry.dataset)
        required += [JobNotDone(each.pending.job_id) for each in others]
        try:
            return commits.begin(jobs, version, required), others
        except Conflict:
            if not others:
                raise
        done = commits.store.table(commits.entry.table_id).jobs
        left = [each for each in others if each.pending.job_id not in done]
        others = left if len(left) < len(others) else []


def _required(commits: TableCommits, job_id: str) -> Job:
    """Returns a job that Lance has taken. Raises OutcomeUnknown when it is not found."""
    entry = commits.entry
    if (job := _found(commits, job_id)) is not None:
        commits.store.flush()
        return job
    if commits.store.table(entry.table_id).dataset != entry.dataset:
        raise _rewritten(entry)  # Lance has the rows in the old dataset, which is no longer read
    raise OutcomeUnknown(
        "whether Lance took the commit is unknown: it cannot be found",
        where=f"table/{entry.full_name}",
        remedy=f"run the ingest again with --job-id {job_id}: it adds nothing twice",
    )


def _conflict(entry: TableEntry, what: str) -> Conflict:
    return Conflict(what, where=f"table/{entry.full_name}", remedy="run the ingest again")


def _changed(entry: TableEntry, conflict: DeployerError) -> Conflict:
    return _conflict(entry, f"the table was changed while rows were being written for it ({conflict.what})")


def _rewritten(entry: TableEntry) -> Conflict:
    return _conflict(entry, "the table was rewritten while rows were being written for it, which are not in it")


def _require_fields(dataset: LanceDataset, pending: Pending, entry: TableEntry) -> None:
    if not has_fields(dataset, pending):
        raise _conflict(entry, "the table's columns were replaced while rows were being written for it")


def _require_files(location: str, pending: Pending) -> None:
    """Raises Conflict where files are missing because `deployer table gc` removed them as unreferenced old files."""
    if not has_files(location, pending):
        raise Conflict(
            "files of the load were removed before its commit: it took longer than the grace period of `table gc`",
            where=location,
            remedy="run the ingest again, and let `deployer table gc` have a longer --grace",
        )
