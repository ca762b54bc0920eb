"""Commits written fragments once: the intent in the log, then Lance, then the record in the log.

A process that dies between two of these leaves either nothing in Lance, and the job can be run again, or a commit whose
mark tells everything, and whoever opens the table next records it. The same job never adds its rows twice.

Of processes on one machine that append to one table at once, the one that has the turn commits for those that wait
(`deployer.state.backends.group_commit`): one version in Lance, with a mark for each, and one intent and one record in
the log. One that is not answered in time sees to it that its rows are committed by nobody else any more, and commits
them by itself.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deployer.datasets.commit_metadata import CommitMetadata
from deployer.datasets.dataset import dataset_location, open_dataset
from deployer.datasets.recovery.restored_together import end_dead_restores
from deployer.datasets.recovery.rollforward import current
from deployer.datasets.recovery.unrecorded import appended, metadata_at
from deployer.datasets.writer import Written
from deployer.errors import Conflict, DeployerError, NotFound, OutcomeUnknown, Preempted
from deployer.live.reader import has_unique_keys
from deployer.state.backends.group_commit import Ticket
from deployer.state.log.codec import decode, encode
from deployer.state.log.requirements import JobNotDone
from deployer.state.log.updates import CommitAbandoned, CommitStarted
from deployer.state.model.entities import Job, TableEntry, TableState
from deployer.state.transactions.tables import to_add_files, to_record
from deployer.system.failpoints import reached
from deployer.tables.ingest.commit.batching import ALONE, LOOK, Other, alike, answered, taken
from deployer.tables.ingest.commit.done_jobs import find_job, jobs_with, undone_job
from deployer.tables.ingest.commit.lance_append import append_to_lance, fence_appends, has_fields, has_files, moved_on
from deployer.tables.ingest.commit.pending import Pending
from deployer.tables.ingest.commit.unique_keys import begin_alone
from deployer.tables.ingest.keys.unique import Admission

if TYPE_CHECKING:
    import lance

    from deployer.state.store import StateStore


ATTEMPTS = 10  #: how often a commit is prepared again that Lance refused because of what others committed


@dataclass(frozen=True, slots=True)
class Committed:
    """What a job came to; `already_done`: an earlier run had committed it, and this one added nothing.

    `dataset` is as the commit left it, unless another process made the commit. `skipped` are rows that were left out,
    since their keys were there.
    """

    job: Job
    already_done: bool
    dataset: lance.LanceDataset | None = field(default=None, compare=False, repr=False)
    skipped: int = 0


def commit_append(
    store: StateStore,
    root: str,
    entry: TableEntry,
    job_id: str,
    kind: str,
    written: Sequence[Written],
    schema: bytes,
    dataset: lance.LanceDataset | None = None,
    sources: str = "",
    admission: Admission | None = None,
) -> Committed:
    """Makes the written fragments part of the table as one version of its dataset.

    `schema` is the table's (as the state has it) that the rows were made for. `dataset`, for a caller that appends
    again and again, is what a commit before gave: nothing is read then unless somebody else commits. `sources` are the
    files that the rows are from, as `Job` has them. `admission` is what is left to check of rows for a table with
    unique keys.

    Raises KeysTaken when others added rows with the same keys since they were checked. Raises Conflict when the table
    was changed or removed meanwhile: nothing is committed then and the fragments can be removed. Raises OutcomeUnknown
    when Lance did not answer and the commit cannot be found: then nothing may be.
    """
    pending = Pending.of(job_id, kind, written, schema, entry.dataset, sources)
    request = pending.to_bytes if admission is None else None
    lost = 0
    while True:
        try:
            with store.turn(entry.table_id, request) as turn:
                if (done := _done_by_another(store, root, entry, pending, turn)) is not None:
                    return done
                if turn.answer is None:
                    if admission is not None:
                        return _commit_checked(store, root, entry, pending, schema, admission, turn)
                    return _commit_append(store, root, entry, pending, schema, dataset, turn)
        except Preempted:
            lost, dataset = lost + 1, None
            if lost == ATTEMPTS:
                raise
        request = None


def _done_by_another(
    store: StateStore, root: str, entry: TableEntry, pending: Pending, turn: Ticket
) -> Committed | None:
    """What became of an append that another process took; None when it did not commit it, and will not."""
    if turn.answer is not None and turn.answer not in (ALONE, LOOK):
        return Committed(decode(Job, json.loads(turn.answer)), already_done=False)
    job_id, table_id = pending.job_id, entry.table_id
    with contextlib.suppress(NotFound):  # the commit will say so
        if turn.in_doubt or turn.answer == LOOK:
            fence_appends(dataset_location(root, entry), job_id)
        elif not turn.taker_gone:
            return None
        if (job := find_job(store, root, table_id, job_id) or undone_job(store, table_id, job_id)) is not None:
            return _known(store, job, already_done=not _is_of(pending, root, entry, job))
    return None


def _known(store: StateStore, job: Job, *, already_done: bool = True) -> Committed:
    """What a job in the log came to. Whoever committed it may be about to flush the log."""
    store.flush()
    return Committed(job, already_done)


def _is_of(pending: Pending, root: str, entry: TableEntry, job: Job) -> bool:
    """Whether the job was done with these files, and not by another run with its own."""
    infos = metadata_at(open_dataset(dataset_location(root, entry)), job.lance_version)
    return not infos or any(info.files == pending.info.files for info in infos)


def _commit_append(
    store: StateStore,
    root: str,
    entry: TableEntry,
    pending: Pending,
    schema: bytes,
    dataset: lance.LanceDataset | None,
    turn: Ticket,
) -> Committed:
    job_id, location = pending.job_id, dataset_location(root, entry)
    if turn.waited:
        with contextlib.suppress(NotFound):  # the commit will say so
            store.table(entry.table_id)  # one read is less than a commit that was prepared on an old state
    if dataset is None:
        now, state = current(store, root, entry, store.table(entry.table_id))
        if job := state.jobs.get(job_id):
            return _known(store, job)
        if now.dataset != entry.dataset:
            raise _rewritten(entry)
        dataset = open_dataset(location, state.lance_version)
    reached("tables.commit.before-intent")
    others = [*alike(turn.requests(), pending)]
    try:
        begun, others = _begun(store, entry, pending, schema, int(dataset.version), others)
    except (Conflict, NotFound) as conflict:
        if not isinstance(conflict, NotFound) and (job := find_job(store, root, entry.table_id, job_id)):
            return _known(store, job)
        if not isinstance(conflict, NotFound):
            state = store.table(entry.table_id)
            end_dead_restores(store, root, state)  # so that the next try is not kept off by one
            if turn.waited and job_id in state.intents:  # somebody else began it for this writer, and left it to it
                with contextlib.suppress(Conflict, NotFound):
                    store.commit(entry.table_id, [CommitAbandoned(job_id)])
        raise _changed(entry, conflict) from conflict
    if has_unique_keys(begun):
        store.commit(entry.table_id, [CommitAbandoned(job_id)])
        raise Conflict(
            "the table's row keys became unique while rows were being written for it",
            where=f"table/{entry.full_name}",
            remedy="run the ingest again",
        )
    return _committed(store, root, entry, pending, dataset, begun, others, turn)


def _commit_checked(
    store: StateStore,
    root: str,
    entry: TableEntry,
    pending: Pending,
    schema: bytes,
    admission: Admission,
    turn: Ticket,
) -> Committed:
    """The commit of rows that are compared with the table's. It takes no rows of other writers along."""
    reached("tables.commit.before-intent")
    try:
        begun = begin_alone(store, root, entry, pending, schema, admission)
    except NotFound as removed:
        raise _changed(entry, removed) from removed
    if begun.job is not None:
        return _known(store, begun.job)
    assert begun.dataset is not None and begun.state is not None  # noqa: S101
    return _committed(store, root, entry, pending, begun.dataset, begun.state, [], turn)


def _changed(entry: TableEntry, conflict: DeployerError) -> Conflict:
    return Conflict(
        f"the table was changed while rows were being written for it ({conflict.what})",
        where=f"table/{entry.full_name}",
        remedy="run the ingest again",
    )


def _committed(
    store: StateStore,
    root: str,
    entry: TableEntry,
    pending: Pending,
    dataset: lance.LanceDataset,
    begun: TableState,
    others: list[Other],
    turn: Ticket,
) -> Committed:
    """The commit to Lance of an append whose intent is written, and of those of the others, and its record."""
    job_id, location = pending.job_id, dataset_location(root, entry)
    try:
        _require_files(location, pending)
        dataset = moved_on(dataset, begun)
        _require_fields(dataset, pending, entry)
    except Conflict:
        store.commit(entry.table_id, [CommitAbandoned(job_id)])
        raise
    others = taken(location, dataset, others)
    with answered(others):
        reached("tables.commit.before-lance")
        try:
            made = append_to_lance(location, dataset, [pending, *(each.pending for each in others)])
        except Conflict:
            for each in others:
                each.request.answer(ALONE)
            store.commit(entry.table_id, [CommitAbandoned(job_id)])
            raise
        reached("tables.commit.after-lance")
        infos = [pending.info, *(each.pending.info for each in others)]
        # Where somebody else committed too, recording it is what anybody does who finds the log behind the dataset.
        jobs = recorded(store, begun, made, infos, durable=False)
        if jobs is None:
            jobs = jobs_with(store, root, entry.table_id, {info.job_id for info in infos})
        reached("tables.commit.after-state")
        turn.pass_on()  # whoever has it next needs no disk for what comes first
        store.flush()
        for each in others:
            if (job := jobs.get(each.pending.job_id)) is not None:
                each.request.answer(json.dumps(encode(job)).encode())
    own = jobs.get(job_id) or _found(store, root, entry, job_id)
    return Committed(own, already_done=False, dataset=made)


def _begun(
    store: StateStore, entry: TableEntry, own: Pending, schema: bytes, version: int, others: list[Other]
) -> tuple[TableState, list[Other]]:
    """The state with the intents, and those of the others that have one. A job that is done keeps nobody else off."""
    while True:
        started = [CommitStarted(each.job_id, each.info.kind, version) for each in (own, *(o.pending for o in others))]
        required = to_add_files(own.job_id, schema, entry.dataset)
        required += [JobNotDone(each.pending.job_id) for each in others]
        try:
            return store.commit(entry.table_id, started, required), others
        except Conflict:
            if not others:
                raise
        done = store.table(entry.table_id).jobs
        left = [each for each in others if each.pending.job_id not in done]
        others = left if len(left) < len(others) else []


def _found(store: StateStore, root: str, entry: TableEntry, job_id: str) -> Job:
    """A job that Lance may have, also one that a restore has undone since. Raises OutcomeUnknown when it is not found.

    One that was undone was done, and in the log: a restore stands only on top of what is recorded.
    """
    job = find_job(store, root, entry.table_id, job_id) or undone_job(store, entry.table_id, job_id)
    if job is not None:
        store.flush()
        return job
    if store.table(entry.table_id).dataset != entry.dataset:
        raise _rewritten(entry)  # Lance has the rows in the old dataset, where nobody reads them any more
    raise OutcomeUnknown(
        "whether Lance took the commit is not known: it cannot be found",
        where=f"table/{entry.full_name}",
        remedy=f"run the ingest again with --job-id {job_id}: it adds nothing twice",
    )


def recorded(
    store: StateStore,
    before: TableState,
    made: lance.LanceDataset | None,
    infos: Sequence[CommitMetadata],
    removed: Sequence[int] = (),
    *,
    durable: bool = True,
) -> Mapping[str, Job] | None:
    """All jobs, with those of the marks recorded without reading anything, and with files in the place of those
    `removed`; None when others committed since `before`. `durable` as the store's `commit` has it."""
    if made is None or made.version != before.lance_version + 1:
        return None
    updates = appended(made, before, infos, removed)
    if not updates:
        return None
    unchanged = to_record(before.lance_version, before.dataset)
    try:
        return store.commit(before.table_id, updates, unchanged, durable=durable).jobs
    except (Conflict, NotFound):
        return None


def _rewritten(entry: TableEntry) -> Conflict:
    return Conflict(
        "the table was rewritten while rows were being written for it, which are not in it",
        where=f"table/{entry.full_name}",
        remedy="run the ingest again",
    )


def _require_fields(dataset: lance.LanceDataset, pending: Pending, entry: TableEntry) -> None:
    if not has_fields(dataset, pending):
        raise Conflict(
            "the table's columns were replaced while rows were being written for it",
            where=f"table/{entry.full_name}",
            remedy="run the ingest again",
        )


def _require_files(location: str, pending: Pending) -> None:
    """Raises Conflict when files are gone that were written so long ago that `deployer table gc` took them for left."""
    if not has_files(location, pending):
        raise Conflict(
            "files of the load were removed before its commit: it took longer than the grace period of `table gc`",
            where=location,
            remedy="run the ingest again, and let `deployer table gc` have a longer --grace",
        )
