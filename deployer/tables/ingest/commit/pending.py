"""Appends whose fragments are written but not committed, as values that other processes can commit too."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deployer.datasets.commit_metadata import CommitMetadata
from deployer.datasets.files.writer import WrittenFragment
from deployer.datasets.lance_transactions import lance_release
from deployer.state.backends.commit_requests import CommitRequest
from deployer.state.log.requirements import schema_fingerprint

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Pending:
    """The data of a commit: its metadata, Lance's own JSON of each fragment, the rows' schema and dataset number."""

    info: CommitMetadata
    fragments: tuple[Mapping[str, Any], ...]
    schema: str  #: fingerprint
    dataset: int

    @staticmethod
    def of(
        job_id: str, kind: str, written: Sequence[WrittenFragment], schema: bytes, dataset: int, sources: str = ""
    ) -> Pending:
        info = CommitMetadata(
            job_id, kind, sum(each.rows for each in written), tuple(each.marked for each in written), sources
        )
        return Pending(info, tuple(each.metadata for each in written), schema_fingerprint(schema), dataset)

    @property
    def job_id(self) -> str:
        return self.info.job_id

    def field_ids(self) -> set[int]:
        return {field for each in self.fragments for file in each["files"] for field in file["fields"]}

    def to_bytes(self) -> bytes:
        document = {
            "format": FORMAT,
            "lance": lance_release(),
            "mark": self.info.to_properties(),
            "fragments": self.fragments,
            "schema": self.schema,
            "dataset": self.dataset,
        }
        return json.dumps(document).encode()

    @staticmethod
    def from_bytes(body: bytes) -> Pending | None:
        """Returns the append; None for bytes of another version of this library or of Lance, because only that version
        can commit them."""
        try:
            document = json.loads(body)
            info = CommitMetadata.of(document["mark"])
            if (document["format"], document["lance"]) != (FORMAT, lance_release()) or info is None:
                return None
            return Pending(info, tuple(document["fragments"]), document["schema"], document["dataset"])
        except (ValueError, KeyError, TypeError):
            return None


ALONE = b"alone"  #: the answer to a request that was not committed; its process commits it alone and sees the error
LOOK = b"look"  #: the answer to a request whose outcome is unknown; its process looks it up in the log and in Lance


def has_fields(dataset: LanceDataset, pending: Pending) -> bool:
    """Returns whether the dataset still has all fields of the rows. Without this check, Lance would read nulls where a
    column was replaced by another with the same name and type."""
    held = pending.field_ids()
    todo = [*dataset.lance_schema.fields()]
    while held and todo:
        field = todo.pop()
        held.discard(field.id())
        todo += field.children()
    return not held


def has_files(location: str, pending: Pending) -> bool:
    """Returns whether the files still exist. Always returns True in a bucket, where each check would take a request."""
    files = pending.info.files
    return "://" in location or all(os.path.exists(f"{location}/data/{file.path}") for file in files)  # noqa: PTH110


@dataclass(frozen=True, slots=True)
class Other:
    """An append that another process waits to commit."""

    request: CommitRequest
    pending: Pending


def alike(requests: Sequence[CommitRequest], own: Pending) -> Iterator[Other]:
    """Yields the appends of other processes that can be committed with `own`, because they have the same schema and
    dataset."""
    jobs = {own.job_id}
    for request in requests:
        pending = Pending.from_bytes(request.body)
        if pending is None or pending.job_id in jobs:
            continue
        if (pending.schema, pending.dataset) == (own.schema, own.dataset):
            jobs.add(pending.job_id)
            yield Other(request, pending)


def taken(location: str, dataset: LanceDataset, others: Sequence[Other]) -> list[Other]:
    """Takes the requests that can be committed after this version of the dataset and were not withdrawn; returns
    them."""
    able = (each for each in others if has_fields(dataset, each.pending) and has_files(location, each.pending))
    return [each for each in able if each.request.take()]


@contextlib.contextmanager
def answered(others: Sequence[Other]) -> Iterator[None]:
    """Answers each taken request at the end of the block, even if the commit fails."""
    try:
        yield
    finally:
        for each in others:
            each.request.answer(LOOK)  # no effect if the request is already answered
