"""Appends that other processes wait to commit, to be committed along with one's own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deployer.state.backends.commit_requests import CommitRequest
from deployer.tables.ingest.commit.lance_append import has_fields, has_files
from deployer.tables.ingest.commit.pending import Pending

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

ALONE = b"alone"  #: the answer to an offer that was not committed: who made it is told why when it commits by itself
LOOK = b"look"  #: the answer to an offer of which only the log and Lance can tell what became


@dataclass(frozen=True, slots=True)
class Other:
    """An append that another process waits to commit."""

    request: CommitRequest
    pending: Pending


def alike(requests: Sequence[CommitRequest], own: Pending) -> Iterator[Other]:
    """The appends of others that can be committed with this one: what the table must be for it is the same."""
    jobs = {own.job_id}
    for request in requests:
        pending = Pending.from_bytes(request.body)
        if pending is None or pending.job_id in jobs:
            continue
        if (pending.schema, pending.dataset) == (own.schema, own.dataset):
            jobs.add(pending.job_id)
            yield Other(request, pending)


def taken(location: str, dataset: LanceDataset, others: Sequence[Other]) -> list[Other]:
    """Those of the others that can be committed on top of the dataset and have not withdrawn."""
    able = (each for each in others if has_fields(dataset, each.pending) and has_files(location, each.pending))
    return [each for each in able if each.request.take()]


@contextlib.contextmanager
def answered(others: Sequence[Other]) -> Iterator[None]:
    """Whoever was taken is answered in the end, whatever happens."""
    try:
        yield
    finally:
        for each in others:
            each.request.answer(LOOK)  # unless it was answered
