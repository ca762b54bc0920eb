"""Commits written fragments to Lance, and determines the outcome of a commit that raised an error."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

from deployer.datasets.commit.protocol import Committed, Intent, TableCommits
from deployer.datasets.commit_metadata import FENCE, CommitMetadata
from deployer.datasets.dataset import latest_version, open_dataset
from deployer.datasets.errors import first_line, message_of
from deployer.datasets.lance_transactions import (
    Append,
    Fence,
    InDoubt,
    NotTaken,
    Taken,
    metadata_since,
    prepare,
    send,
)
from deployer.errors import Conflict, OutcomeUnknown, Preempted
from deployer.platform.system.retry import steady
from deployer.state.model.entities import TableState
from deployer.tables.ingest.commit.pending import Pending

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

ATTEMPTS = 4  #: how often a commit is sent that loses all races; each attempt takes Lance half a minute
FENCE_ATTEMPTS = 100  #: how often a fence is sent while others append
_FENCE_PAUSE = steady(0.02)


def moved_on(dataset: LanceDataset, state: TableState) -> LanceDataset:
    """Returns the dataset at the recorded version.

    Lance also accepts a commit that was prepared on an older version, but then reads every commit in between.
    """
    if int(dataset.version) >= state.lance_version:
        return dataset
    try:
        return dataset.checkout_version(state.lance_version)
    except (OSError, ValueError):  # Lance reports the problem
        return dataset


def append_to_lance(
    commits: TableCommits, intent: Intent, dataset: LanceDataset, appends: Sequence[Pending]
) -> Committed:
    """Commits all of the appends as one version, with metadata for each.

    Raises Conflict where nothing was committed; Preempted, where nothing was committed because of a fence or a change
    of the schema; OutcomeUnknown where the outcome cannot be determined.
    """
    location = commits.location
    fragments = [fragment for each in appends for fragment in each.fragments]
    prepared = commits.prepare(intent.state, dataset, Append(fragments), [each.info for each in appends])
    for _ in range(ATTEMPTS):
        match commits.send(prepared):
            case Committed() as committed:
                return committed
            case NotTaken(reason="races lost"):
                continue
            case NotTaken(reason="removed", failure=failure):
                what = "the table was removed while rows were being written for it"
                raise Conflict(what, where=location) from failure
            case NotTaken(reason="conflict", failure=failure):
                kind = Preempted if getattr(failure, "retryable", False) else Conflict
                what = f"Lance refused the commit: {first_line(failure)}"
                raise kind(what, where=location, remedy="run the ingest again") from failure
            case NotTaken(failure=failure) | InDoubt(failure=failure):
                why = message_of(failure, location)
                raise OutcomeUnknown(
                    f"the commit to Lance failed, and whether it happened is unknown: {why}",
                    where=location,
                    remedy=f"run the ingest again with --job-id {appends[0].job_id}: it adds nothing twice",
                ) from failure
    raise Conflict(
        "other processes commit to the table faster than rows can be added to it",
        where=location,
        remedy="run the ingest again when there are fewer writers",
    )


def fence_appends(location: str, job_id: str) -> None:
    """Prevents the commit of every append that any process has prepared so far. When the function returns, such an
    append is either committed, or will never be committed (see `Fence`).

    Raises NotFound where the dataset no longer exists, OutcomeUnknown where other writers keep appending.
    """
    newest = latest_version(location)
    for _ in _FENCE_PAUSE.attempts(FENCE_ATTEMPTS):
        dataset = open_dataset(location)
        if any(info.kind == FENCE for infos in metadata_since(dataset, newest).values() for info in infos):
            return
        transaction = prepare(dataset, Fence(), [CommitMetadata(uuid.uuid4().hex, FENCE, 0)])
        match send(location, dataset, transaction):
            case Taken():
                return
            case NotTaken(reason="races lost" | "conflict" | "removed"):
                continue
            case NotTaken(failure=failure) | InDoubt(failure=failure):
                raise _unknown(message_of(failure, location), location, job_id) from failure
    raise _unknown("other writers keep appending", location, job_id)


def _unknown(why: str, location: str, job_id: str) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"whether another process committed the rows is unknown, and cannot be determined: {why}",
        where=location,
        remedy=f"run the ingest again with --job-id {job_id}: it adds nothing twice",
    )
