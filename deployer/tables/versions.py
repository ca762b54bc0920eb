"""Versions of a table: what each commit did, and which one was there at a time."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deployer.errors import InvalidInput, NotFound
from deployer.live.marks import Mark
from deployer.live.rollforward import transaction_of
from deployer.tables.dataset import OpenTable

if TYPE_CHECKING:
    import lance


@dataclass(frozen=True, slots=True)
class TableVersion:
    """One version of the dataset. `rows` were added by it, if it says so; `foreign`: no job of ours committed it.

    `at` is when it was committed (UTC); `job_id` and `author` are empty when nobody is known.
    """

    version: int
    at: dt.datetime
    operation: str
    job_id: str
    kind: str
    author: str
    rows: int | None
    foreign: bool


def history(table: OpenTable) -> list[TableVersion]:
    """All versions that the dataset still keeps, the newest first."""
    dataset = table.dataset()
    authors = {
        getattr(update, "job_id", None): entry.author
        for entry in table.store.log(table.entry.table_id)
        for update in entry.updates
        if type(update).__name__ == "CommitStarted"
    }
    created = next((e for e in table.store.log(table.entry.table_id, limit=1)), None)
    jobs = {job.lance_version: job for job in table.state.jobs.values()}
    found = []
    for each in dataset.versions():
        version = int(each["version"])
        transaction = transaction_of(dataset, version)
        operation = _operation(transaction)
        mark = Mark.of(transaction.transaction_properties) if transaction is not None else None
        job = jobs.get(version)
        job_id = mark.job_id if mark else job.job_id if job else ""
        kind = mark.kind if mark else job.kind if job else "create" if version == 1 else ""
        author = authors.get(job_id, "") if job_id else created.author if version == 1 and created else ""
        rows = mark.rows if mark else _rows_added(transaction)
        foreign = not kind and operation in _ROW_OPERATIONS
        found.append(TableVersion(version, _utc(each["timestamp"]), operation, job_id, kind, author, rows, foreign))
    return sorted(found, key=lambda each: -each.version)


# Others change schemas, indexes and settings too, but so does the deployer, and leaves no mark on these.
_ROW_OPERATIONS = frozenset({"append", "delete", "update", "overwrite", "rewrite", "restore", "data replacement"})


def _operation(transaction: Any) -> str:
    if transaction is None:
        return ""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(transaction.operation).__name__).lower()
    return "" if words == "base operation" else words


def _rows_added(transaction: Any) -> int | None:
    fragments = getattr(getattr(transaction, "operation", None), "fragments", None)
    if fragments is None or type(transaction.operation).__name__ not in ("Append", "Overwrite"):
        return None
    return sum(int(fragment.physical_rows) for fragment in fragments)


def _utc(stamp: dt.datetime) -> dt.datetime:
    return stamp.astimezone(dt.UTC)  # Lance gives local time without a zone


def resolve_version(dataset: lance.LanceDataset, at: str | int | dt.datetime) -> int:
    """The version meant by a number that `history` lists, or the newest one at an ISO 8601 time (UTC unless it says).

    Raises InvalidInput for a text that is neither, NotFound when the dataset does not keep such a version.
    """
    versions = sorted((int(each["version"]), _utc(each["timestamp"])) for each in dataset.versions())
    kept = f"kept: {versions[0][0]} to {versions[-1][0]}" if versions else "none is kept"
    if isinstance(at, str):
        at = int(at) if at.strip().isdecimal() else _time(at)
    if isinstance(at, int):
        if at not in dict(versions):
            raise NotFound(f"there is no version {at}", remedy=f"choose one that `deployer history` lists ({kept})")
        return at
    moment = at if at.tzinfo else at.replace(tzinfo=dt.UTC)
    before = [version for version, committed in versions if committed <= moment]
    if not before:
        raise NotFound(
            f"the table has no version from {moment.isoformat()} or before",
            remedy=f"the oldest that is kept is of {versions[0][1].isoformat()}" if versions else kept,
        )
    return before[-1]


def _time(text: str) -> dt.datetime:
    try:
        return dt.datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(
            f"--at {text!r} is neither a version nor a time",
            remedy="give a number that `deployer history` lists, or a time such as 2026-01-31T12:00:00Z",
        ) from None
