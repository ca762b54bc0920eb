"""Commits written fragments once: the intent in the log, then Lance, then the record in the log.

A process that dies between two of these leaves either nothing in Lance, and the job can be run again, or a commit whose
mark tells everything, and whoever opens the table next records it. The same job never adds its rows twice.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deployer.errors import Conflict, DeployerError, NotFound, OutcomeUnknown
from deployer.live.lance_failures import words_of
from deployer.live.lance_io import dataset_location, open_dataset
from deployer.live.lance_storage import objects_at, storage_options
from deployer.live.marks import Mark
from deployer.live.restored import end_dead_restores
from deployer.live.rollforward import appended, current, refresh, transaction_of
from deployer.state.conflicts import to_add_files, to_record
from deployer.state.failpoints import reached
from deployer.state.model import Job, TableEntry, TableState
from deployer.state.updates import CommitAbandoned, CommitStarted
from deployer.tables.writer import Written

if TYPE_CHECKING:
    import lance

    from deployer.state.store import StateStore


@dataclass(frozen=True, slots=True)
class Committed:
    """What a job came to; `already_done`: an earlier run had committed it, and this one added nothing."""

    job: Job
    already_done: bool
    dataset: lance.LanceDataset | None = field(default=None, compare=False, repr=False)  #: as the commit left it


def find_job(store: StateStore, root: str, table_id: str, job_id: str) -> Job | None:
    """The job if it is done, also when only Lance knows of it."""
    return store.table(table_id).jobs.get(job_id) or refresh(store, root, table_id).jobs.get(job_id)


def commit_append(
    store: StateStore,
    root: str,
    entry: TableEntry,
    job_id: str,
    kind: str,
    written: Sequence[Written],
    schema: bytes,
    dataset: lance.LanceDataset | None = None,
) -> Committed:
    """Makes the written fragments part of the table as one version of its dataset.

    `schema` is the table's (as the state has it) that the rows were made for. `dataset`, for a caller that appends
    again and again, is what the commit before gave: nothing is read then unless somebody else commits.

    Raises Conflict when the table was changed or removed meanwhile: nothing is committed then and the fragments can be
    removed. Raises OutcomeUnknown when Lance did not answer and the commit cannot be found: then nothing may be.
    """
    with store.turn(entry.table_id) as waited:
        if waited:
            with contextlib.suppress(NotFound):  # the commit will say so
                store.table(entry.table_id)  # one read is less than a commit that was prepared on an old state
        return _commit_append(store, root, entry, job_id, kind, written, schema, dataset)


def _commit_append(
    store: StateStore,
    root: str,
    entry: TableEntry,
    job_id: str,
    kind: str,
    written: Sequence[Written],
    schema: bytes,
    dataset: lance.LanceDataset | None,
) -> Committed:
    if dataset is None:
        now, state = current(store, root, entry, store.table(entry.table_id))
        if job := state.jobs.get(job_id):
            return Committed(job, already_done=True)
        if now.dataset != entry.dataset:
            raise _rewritten(entry)
        dataset = open_dataset(dataset_location(root, entry), state.lance_version)
    reached("tables.commit.before-intent")
    try:
        begun = store.commit(
            entry.table_id,
            [CommitStarted(job_id, kind, int(dataset.version))],
            to_add_files(job_id, schema, entry.dataset),
        )
    except (Conflict, NotFound) as conflict:
        if not isinstance(conflict, NotFound) and (job := find_job(store, root, entry.table_id, job_id)):
            return Committed(job, already_done=True)
        if not isinstance(conflict, NotFound):
            end_dead_restores(store, store.table(entry.table_id))  # so that the next try is not kept off by one
        raise Conflict(
            f"the table was changed while rows were being written for it ({conflict.what})",
            where=f"table/{entry.full_name}",
            remedy="run the ingest again",
        ) from conflict
    try:
        _require_files(dataset_location(root, entry), written)
    except Conflict:
        store.commit(entry.table_id, [CommitAbandoned(job_id)])
        raise
    reached("tables.commit.before-lance")
    rows = sum(each.rows for each in written)
    mark = Mark(job_id, kind, rows, tuple(each.marked for each in written))
    try:
        dataset = _moved_on(dataset, begun)
        _require_fields(dataset, written, entry)
        made = _commit_to_lance(dataset_location(root, entry), dataset, written, mark)
    except Conflict:
        store.commit(entry.table_id, [CommitAbandoned(job_id)])
        raise
    reached("tables.commit.after-lance")
    # Where others committed too, recording it is what anybody does who finds the log behind the dataset.
    job = recorded(store, begun, made, mark) or find_job(store, root, entry.table_id, job_id)
    reached("tables.commit.after-state")
    if job is None and store.table(entry.table_id).dataset != entry.dataset:
        raise _rewritten(entry)  # Lance has the rows in the old dataset, where nobody reads them any more
    if job is None:
        raise OutcomeUnknown(
            "Lance took the commit, and it cannot be found again",
            where=f"table/{entry.full_name}",
            remedy=f"run the ingest again with --job-id {job_id}: it adds nothing twice",
        )
    return Committed(job, already_done=False, dataset=made)


def _moved_on(dataset: lance.LanceDataset, state: TableState) -> lance.LanceDataset:
    """The dataset at the recorded version.

    Lance takes a commit that was prepared on an old version too, but looks at every commit in between.
    """
    if int(dataset.version) >= state.lance_version:
        return dataset
    try:
        return dataset.checkout_version(state.lance_version)
    except (OSError, ValueError):  # Lance will say what is the matter
        return dataset


def _require_fields(dataset: lance.LanceDataset, written: Sequence[Written], entry: TableEntry) -> None:
    """Raises Conflict when rows hold fields that are gone: Lance would read nulls where a column's place was taken by
    another of the same name and type."""
    held = {field for each in written for file in each.metadata["files"] for field in file["fields"]}
    todo = [*dataset.lance_schema.fields()]
    while held and todo:
        field = todo.pop()
        held.discard(field.id())
        todo += field.children()
    if held:
        raise Conflict(
            "the table's columns were replaced while rows were being written for it",
            where=f"table/{entry.full_name}",
            remedy="run the ingest again",
        )


def recorded(
    store: StateStore,
    before: TableState,
    made: lance.LanceDataset | None,
    mark: Mark,
    removed: Sequence[int] = (),
) -> Job | None:
    """The job, recorded without reading anything, with files in the place of those `removed`; None when others
    committed since `before`."""
    if made is None or made.version != before.lance_version + 1:
        return None
    update = appended(made, before, mark, removed)
    if update is None:
        return None
    unchanged = to_record(before.lance_version, before.dataset)
    try:
        return store.commit(before.table_id, [update], unchanged).jobs.get(mark.job_id)
    except (Conflict, NotFound):
        return None


def _rewritten(entry: TableEntry) -> Conflict:
    return Conflict(
        "the table was rewritten while rows were being written for it, which are not in it",
        where=f"table/{entry.full_name}",
        remedy="run the ingest again",
    )


def _commit_to_lance(
    location: str, dataset: lance.LanceDataset, written: Sequence[Written], mark: Mark
) -> lance.LanceDataset | None:
    """The dataset as the commit left it; None where the commit raised and was found to be done."""
    import lance
    from lance.fragment import FragmentMetadata

    fragments = [FragmentMetadata.from_json(_json(each.metadata)) for each in written]
    transaction = lance.Transaction(
        read_version=int(dataset.version),
        operation=lance.LanceOperation.Append(fragments),
        transaction_properties=mark.to_properties(),
    )
    try:
        return lance.LanceDataset.commit(dataset, transaction, storage_options=storage_options(location))
    except Exception as failure:
        _settle(location, transaction, failure, mark.job_id)
        return None


def _settle(location: str, transaction: Any, failure: Exception, job_id: str) -> None:
    """Finds out what became of a commit that raised: Lance would add the rows again if it were simply sent again."""
    try:
        dataset = open_dataset(location)
    except NotFound:
        raise Conflict("the table was removed while rows were being written for it", where=location) from failure
    if holds(dataset, transaction.read_version, transaction.uuid):
        return
    if "conflict" in str(failure).lower():
        raise Conflict(
            f"Lance refused the commit: {str(failure).splitlines()[0]}", where=location, remedy="run the ingest again"
        ) from failure
    raise OutcomeUnknown(
        f"the commit to Lance failed, and whether it happened is not known: {words_of(failure, location)}",
        where=location,
        remedy=f"run the ingest again with --job-id {job_id}: it adds nothing twice",
    ) from failure


def holds(dataset: lance.LanceDataset, base: int, uuid: str) -> bool:
    """Whether a commit above version `base` was made by that transaction of Lance."""
    found = (transaction_of(dataset, version) for version in range(base + 1, dataset.version + 1))
    return any(transaction is not None and transaction.uuid == uuid for transaction in found)


def _require_files(location: str, written: Sequence[Written]) -> None:
    """Raises Conflict when files are gone that were written so long ago that `deployer table gc` took them for left."""
    if "://" not in location and not all(os.path.exists(f"{location}/data/{each.path}") for each in written):  # noqa: PTH110
        raise Conflict(
            "files of the load were removed before its commit: it took longer than the grace period of `table gc`",
            where=location,
            remedy="run the ingest again, and let `deployer table gc` have a longer --grace",
        )


def _json(metadata: dict[str, Any]) -> str:
    import json

    return json.dumps(metadata)


def discard(location: str, written: Sequence[Written]) -> None:
    """Removes files of fragments that are known not to be committed."""
    paths = [f"data/{file['path']}" for each in written for file in each.metadata["files"]]
    with contextlib.suppress(OSError, DeployerError):  # they are in nobody's way
        objects_at(location).delete(paths)
