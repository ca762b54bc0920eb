"""Commits written fragments to Lance, and finds out what became of a commit that raised."""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deployer.datasets.commit_metadata import FENCE, CommitMetadata, properties_of
from deployer.datasets.dataset import latest_version, open_dataset
from deployer.datasets.errors import first_line, lost_races, message_of
from deployer.datasets.recovery.unrecorded import metadata_since, transaction_of
from deployer.datasets.storage.options import storage_options
from deployer.errors import Conflict, NotFound, OutcomeUnknown, Preempted
from deployer.state.model.entities import TableState
from deployer.tables.ingest.commit.pending import Pending

if TYPE_CHECKING:
    import lance

ATTEMPTS = 4  #: how often a commit is sent that loses all races; each takes Lance half a minute
FENCE_ATTEMPTS = 100  #: how often a fence is sent while others append
_FENCE_WAIT = 0.02  # seconds: the longest wait between two


def moved_on(dataset: lance.LanceDataset, state: TableState) -> lance.LanceDataset:
    """The dataset at the recorded version.

    Lance takes a commit that was prepared on an old version too, but looks at every commit in between.
    """
    if int(dataset.version) >= state.lance_version:
        return dataset
    try:
        return dataset.checkout_version(state.lance_version)
    except (OSError, ValueError):  # Lance will say what is the matter
        return dataset


def has_fields(dataset: lance.LanceDataset, pending: Pending) -> bool:
    """Whether the dataset has all fields of the rows still: Lance would read nulls where a column's place was taken by
    another of the same name and type."""
    held = pending.field_ids()
    todo = [*dataset.lance_schema.fields()]
    while held and todo:
        field = todo.pop()
        held.discard(field.id())
        todo += field.children()
    return not held


def has_files(location: str, pending: Pending) -> bool:
    """Whether the files are there still, as far as that can be told without a request."""
    files = pending.info.files
    return "://" in location or all(os.path.exists(f"{location}/data/{file.path}") for file in files)  # noqa: PTH110


def append_to_lance(
    location: str, dataset: lance.LanceDataset, appends: Sequence[Pending]
) -> lance.LanceDataset | None:
    """Commits all of the appends as one version, with a mark for each.

    Gives the dataset as the commit left it; None where the commit raised and was found to be done.

    Raises Conflict when nothing was committed, OutcomeUnknown when nobody can tell; Preempted where nothing was
    committed because of a fence, or because somebody changed the schema.
    """
    import lance

    transaction = lance.Transaction(
        read_version=int(dataset.version),
        operation=lance.LanceOperation.Append([fragment for each in appends for fragment in each.to_lance()]),
        transaction_properties=properties_of([each.info for each in appends]),
    )
    for _ in range(ATTEMPTS):
        try:
            return lance.LanceDataset.commit(dataset, transaction, storage_options=storage_options(location))
        except Exception as failure:
            if _happened(location, transaction, failure, appends[0].job_id):
                return None
    raise Conflict(
        "others commit to the table faster than rows can be added to it",
        where=location,
        remedy="run the ingest again when there is less to do",
    )


def _happened(location: str, transaction: Any, failure: Exception, job_id: str) -> bool:
    """Whether a commit that raised was done, which Lance would do twice were it simply sent again; False when others
    were always first."""
    try:
        dataset = open_dataset(location)
    except NotFound:
        raise Conflict("the table was removed while rows were being written for it", where=location) from failure
    if holds(dataset, transaction.read_version, transaction.uuid):
        return True
    if lost_races(failure):
        return False
    if "conflict" in str(failure).lower():
        kind = Preempted if getattr(failure, "retryable", False) else Conflict
        raise kind(
            f"Lance refused the commit: {first_line(failure)}", where=location, remedy="run the ingest again"
        ) from failure
    raise OutcomeUnknown(
        f"the commit to Lance failed, and whether it happened is not known: {message_of(failure, location)}",
        where=location,
        remedy=f"run the ingest again with --job-id {job_id}: it adds nothing twice",
    ) from failure


def holds(dataset: lance.LanceDataset, base: int, uuid: str) -> bool:
    """Whether a commit above version `base` was made by that transaction of Lance."""
    found = (transaction_of(dataset, version) for version in range(base + 1, dataset.version + 1))
    return any(transaction is not None and transaction.uuid == uuid for transaction in found)


def fence_appends(location: str, job_id: str) -> None:
    """Ends the chance of every append that was prepared until now, by whomever, to be committed.

    Commits a projection onto all columns, which changes nothing. Lance refuses an append that was prepared before a
    projection that does not promise to keep columns nullable, and such a projection that was prepared before an
    append: an append is either there when this returns, or never will be.

    Raises NotFound where there is no dataset any more, OutcomeUnknown when others append without end.
    """
    import lance

    newest = latest_version(location)
    for _ in range(FENCE_ATTEMPTS):
        dataset = open_dataset(location)
        if any(info.kind == FENCE for infos in metadata_since(dataset, newest).values() for info in infos):
            return
        transaction = lance.Transaction(
            read_version=int(dataset.version),
            operation=lance.LanceOperation.Project(dataset.lance_schema),
            transaction_properties=CommitMetadata(uuid.uuid4().hex, FENCE, 0).to_properties(),
        )
        try:
            lance.LanceDataset.commit(dataset, transaction, storage_options=storage_options(location))
        except Exception as failure:
            if holds(open_dataset(location), transaction.read_version, transaction.uuid):
                return
            if "conflict" not in str(failure).lower() and not lost_races(failure):
                raise _unknown(message_of(failure, location), location, job_id) from failure
            time.sleep(random.uniform(0, _FENCE_WAIT))  # noqa: S311 -- spreads writers
        else:
            return
    raise _unknown("others append without end", location, job_id)


def _unknown(why: str, location: str, job_id: str) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"whether another process committed the rows is not known, and cannot be found out: {why}",
        where=location,
        remedy=f"run the ingest again with --job-id {job_id}: it adds nothing twice",
    )
