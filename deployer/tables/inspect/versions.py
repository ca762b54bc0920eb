"""Versions of a table: the change by each commit, and the version at a given time."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deployer.datasets.commit_metadata import CommitMetadata, commit_metadata_of
from deployer.datasets.dataset import open_dataset
from deployer.datasets.lance_transactions import metadata_since, transaction_of
from deployer.datasets.storage.refs import versions_of
from deployer.errors import InvalidInput, NotFound
from deployer.live.provenance import entries_of, has_index, index_builder, index_names
from deployer.live.reader import live_table
from deployer.plan.changes import IndexChange
from deployer.plan.diff.lakes import diff
from deployer.plan.render.changes import describe as describe_change
from deployer.state.log.entries import LogEntry
from deployer.state.log.updates import CommitStarted, TableRebuilt, TableRestored, TableRewritten
from deployer.state.model.entities import REARRANGES, Dataset, Job
from deployer.tables.open_table import ReadTable

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset


_NUMBERED = re.compile(r"\s*(\d+):(\d+)\s*")  #: a version of one of the table's datasets, such as 1:3
At = str | int | dt.datetime  #: a version, or a time


@dataclass(frozen=True, slots=True)
class TableVersion:
    """One version of the dataset. `rows` were added by it, if it says so; `foreign`: no job of ours committed it.

    `at` is when it was committed (UTC); `job_id` and `author` are empty when unknown. Loads that ran at once may be one
    version: then `rows` are those of all, and `job_id`, `kind` and `author` name all, separated by commas.
    """

    version: int
    at: dt.datetime
    operation: str
    job_id: str
    kind: str
    author: str
    rows: int | None
    foreign: bool
    dataset: int = 1  #: which of the table's datasets: a rewrite makes the next, whose versions start at 1 again
    changes: tuple[str, ...] = ()  #: the changes by a rewrite, in the planner's words, where the log still has them


def history(table: ReadTable) -> list[TableVersion]:
    """Returns all versions that are kept, the newest first; those of retired datasets too."""
    number = table.state.dataset
    found = sorted(_history(table, number, table.dataset()), key=lambda each: -each.version)
    for each in reversed(table.state.datasets):
        if each.status == "retired" and (old := _open_retired(table, each)) is not None:
            older = [version for version in _history(table, each.number, old) if version.version <= each.lance_version]
            found += sorted(older, key=lambda version: -version.version)
    return found


def _open_retired(table: ReadTable, dataset: Dataset) -> LanceDataset | None:
    try:
        return open_dataset(f"{table.root.rstrip('/')}/{dataset.location}")
    except NotFound:
        return None  # removed, and not recorded yet


def _history(table: ReadTable, number: int, dataset: LanceDataset) -> list[TableVersion]:
    first = _first_version(number, dataset)
    authors = {
        update.job_id: entry.author
        for entry in table.store.log(table.entry.table_id)
        for update in entry.updates
        if isinstance(update, CommitStarted)
    }
    rewriters = [
        entry
        for entry in table.store.log(table.entry.table_id)
        for update in entry.updates
        if isinstance(update, TableRewritten) and update.number == number
    ]
    created = next((e for e in table.store.log(table.entry.table_id, limit=1)), None)
    since = next((each.since for each in table.state.datasets if each.status == "current"), 0)
    recorded = table.state.jobs.values() if number == table.state.dataset else ()
    jobs: dict[int, list[Job]] = {}
    for job in recorded:
        if job.at >= since:
            jobs.setdefault(job.lance_version, []).append(job)
    entries = entries_of(table.store.log(table.entry.table_id), number)
    found = []
    for version, at in versions_of(dataset).items():
        if version < first:
            continue
        transaction = transaction_of(dataset, version)
        operation = _operation(transaction)
        infos = commit_metadata_of(transaction.transaction_properties) if transaction is not None else ()
        done = infos or jobs.get(version, ())
        job_id = ", ".join(job.job_id for job in done)
        kind = _joined(job.kind for job in done) if done else "create" if version == 1 else ""
        author = _joined(authors.get(job.job_id, "") for job in done)
        if not done and version == 1 and created:
            author = created.author
        rows = sum(map(_net_rows, infos)) if infos else _rows_added(transaction)
        if operation == "data replacement":  # values of columns, in rows that are there
            rows = 0
        foreign = not kind and (
            operation in _MARKED_OPERATIONS or _foreign_index(dataset, transaction, entries, version)
        )
        changes: tuple[str, ...] = ()
        if kind == "rewrite":  # it adds no rows to the table, and its author is the process that swapped it in
            rows, author = None, rewriters[-1].author if rewriters else ""
            changes = _rewritten(table, rewriters[-1]) if rewriters else ()
        found.append(
            TableVersion(
                version=version,
                at=at,
                operation=operation,
                job_id=job_id,
                kind=kind,
                author=author,
                rows=rows,
                foreign=foreign,
                dataset=number,
                changes=changes,
            )
        )
    return found


def _net_rows(info: CommitMetadata) -> int:
    """Returns the number of rows that the commit added to the table; negative for removed rows."""
    if info.counts is not None:
        return info.counts.inserted - info.counts.deleted
    return 0 if info.kind in REARRANGES else info.rows


def _joined(texts: Iterable[str]) -> str:
    """Joins the distinct texts in order."""
    return ", ".join(dict.fromkeys(text for text in texts if text))


def _rewritten(table: ReadTable, swap: LogEntry) -> tuple[str, ...]:
    """Returns the changes of keys, partitions, columns and storage by the rewrite that `swap` recorded."""
    table_id = table.entry.table_id
    try:
        before, after = (table.store.table(table_id, at=version) for version in (swap.version - 1, swap.version))
    except NotFound:
        return ()  # the log does not reach so far back any more
    specs = (live_table(table.entry, state).spec for state in (before, after))
    changes = (change for change in diff(*specs) if not isinstance(change, IndexChange))  # they are built after it
    return tuple(describe_change(change) for change in changes)


def _first_version(number: int, dataset: LanceDataset) -> int:
    """Returns the table's first version in this dataset; in earlier versions a rewrite was still copying."""
    if number == 1:
        return 1
    copied = [version for version, infos in metadata_since(dataset, 0).items() if infos[0].kind == "rewrite"]
    return max(copied, default=1)


_MARKED_OPERATIONS = frozenset(
    {"append", "delete", "update", "overwrite", "rewrite", "restore", "data replacement"}
    | {"merge", "project", "update config"}
)


def _foreign_index(dataset: LanceDataset, transaction: Any, entries: Sequence[LogEntry], version: int) -> bool:
    """Returns whether others built an index for the first time. Lance takes no metadata on commits of indexes, so the
    log is used.

    The log does not show who dropped or updated an index, so such changes are not shown as foreign.
    """
    made, dropped = index_names(transaction)
    unknown = [name for name in made - dropped if entries and index_builder(entries, name, version) is None]
    return any(not has_index(dataset, name, version - 1) for name in unknown)


def _operation(transaction: Any) -> str:
    if transaction is None:
        return ""
    operation = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(transaction.operation).__name__).lower()
    if operation == "create index":  # one that is only dropped, or brought up to date, is such a commit too
        new, removed = transaction.operation.new_indices, transaction.operation.removed_indices
        made = {index.name for index in new}
        dropped = {index.name for index in removed} - made
        if dropped and {index.uuid for index in new} == {index.uuid for index in removed}:
            return f"rename index {', '.join(sorted(dropped))} → {', '.join(sorted(made))}"
        return "; ".join(
            f"{verb} index {', '.join(sorted(names))}" for verb, names in (("build", made), ("drop", dropped)) if names
        )
    return "" if operation == "base operation" else operation


def _rows_added(transaction: Any) -> int | None:
    fragments = getattr(getattr(transaction, "operation", None), "fragments", None)
    if fragments is None or type(transaction.operation).__name__ not in ("Append", "Overwrite"):
        return None
    return sum(int(fragment.physical_rows) for fragment in fragments)


_WRITES = frozenset({"Append", "Delete", "Update", "Overwrite", "Restore", "DataReplacement"})


def foreign_write_at(dataset: LanceDataset, above: int) -> dt.datetime | None:
    """Returns when others last changed rows, in the versions above one that the dataset keeps."""
    versions = versions_of(dataset)
    for version in sorted(versions, reverse=True):
        if version <= max(above, 1):
            return None
        transaction = transaction_of(dataset, version)
        if transaction is None or commit_metadata_of(transaction.transaction_properties):
            continue
        if type(transaction.operation).__name__ in _WRITES:
            return versions[version]
    return None


def last_rows_at(dataset: LanceDataset) -> dt.datetime | None:
    """Returns when rows were last added in the kept versions; else the time of the oldest kept version."""
    versions = versions_of(dataset)
    for version in sorted(versions, reverse=True):
        if _rows_added(transaction_of(dataset, version)):
            return versions[version]
    return versions[min(versions)] if versions else None


def dataset_at(table: ReadTable, at: At) -> tuple[int, LanceDataset, int]:
    """Returns the number of the dataset that the table had then, the dataset, and the version of it.

    `at` is as in `resolve_version`; a text such as `1:3` is version 3 of the dataset number 1, as `history` shows those
    before a rewrite. Raises InvalidInput and NotFound.
    """
    state = table.state
    newest = table.dataset()
    kept = {each.number: each for each in state.datasets if each.status == "retired"}
    if isinstance(at, str) and (named := _NUMBERED.fullmatch(at)):
        number, version = int(named[1]), int(named[2])
        if number == state.dataset:
            return number, newest, resolve_version(newest, version)
        old = _open_retired(table, kept[number]) if number in kept else None
        if old is None:
            raise NotFound(
                f"dataset {number} of the table is not kept",
                where=table.address,
                remedy="it was removed some time after the table was rewritten; `deployer history` lists what is kept",
            )
        return number, old, resolve_version(old, version)
    moment = _time(at) if isinstance(at, str) and not at.strip().isdecimal() else at
    if kept and not isinstance(moment, dt.datetime):
        return state.dataset, newest, resolve_version(newest, moment, older=_older(kept.values()))
    since = next((each.since for each in state.datasets if each.status == "current"), 0)
    if not isinstance(moment, dt.datetime) or _aware(moment).timestamp() * 1000 >= since:
        return state.dataset, newest, resolve_version(newest, moment)
    then = _number_then(table, round(_aware(moment).timestamp() * 1000))
    if then == state.dataset:
        return then, newest, resolve_version(newest, moment)
    for number in sorted(kept, reverse=True) if then is None else [then] if then in kept else []:
        old = _open_retired(table, kept[number])
        if old is not None and _is_from(number, old, _aware(moment)):
            return number, old, min(resolve_version(old, moment), kept[number].lance_version)
    if _aware(moment).timestamp() * 1000 < table.entry.created_at:
        why = f"it was created at {dt.datetime.fromtimestamp(table.entry.created_at / 1000, dt.UTC).isoformat()}"
    else:
        why = "it was rewritten since, and the former dataset was removed"
    raise NotFound(
        f"the table's rows of {_aware(moment).isoformat()} are not kept",
        where=table.address,
        remedy=f"{why}; `deployer history` lists what is kept",
    )


def _number_then(table: ReadTable, at_ms: int) -> int | None:
    """Returns which dataset the table had at that time, where a restore brought back one from before a rewrite; else
    None: then the newest that is old enough is it."""
    swaps = [
        (entry.at, update)
        for entry in table.store.log(table.entry.table_id)
        for update in entry.updates
        if isinstance(update, TableRewritten | TableRestored | TableRebuilt)
    ]
    if not any(isinstance(update, TableRestored) for _, update in swaps):
        return None
    numbers = [update.number for at, update in swaps if at <= at_ms]
    return numbers[-1] if numbers else 1


def _older(kept: Iterable[Dataset]) -> str:
    """Returns the names of the versions before a rewrite: `1:1 to 1:4`."""
    return ", ".join(f"{each.number}:1 to {each.number}:{each.lance_version}" for each in kept)


def _is_from(number: int, dataset: LanceDataset, moment: dt.datetime) -> bool:
    first = _first_version(number, dataset)
    return any(version >= first and at <= moment for version, at in versions_of(dataset).items())


def _aware(moment: dt.datetime) -> dt.datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)


def resolve_version(dataset: LanceDataset, at: str | int | dt.datetime, older: str = "") -> int:
    """Returns the version meant by a number that `history` lists, or the newest one at an ISO 8601 time (UTC unless it
    says).

    Raises InvalidInput for a text that is neither, NotFound when the dataset does not keep such a version; that says
    which ones before a rewrite, `older`, there are.
    """
    versions = versions_of(dataset)
    kept = f"kept: {min(versions)} to {max(versions)}" if versions else "none is kept"
    kept += f"; before it was rewritten: {older}" if older else ""
    if isinstance(at, str):
        at = int(at) if at.strip().isdecimal() else _time(at)
    if isinstance(at, int):
        if at not in versions:
            raise NotFound(f"there is no version {at}", remedy=f"choose one that `deployer history` lists ({kept})")
        return at
    moment = _aware(at)
    before = [version for version, committed in versions.items() if committed <= moment]
    if not before:
        raise NotFound(
            f"the table has no version from {moment.isoformat()} or before",
            remedy=f"the oldest that is kept is of {versions[min(versions)].isoformat()}" if versions else kept,
        )
    return before[-1]


def time_of(at: str) -> dt.datetime | None:
    """Returns the time that the text of `--at` names, in UTC unless the text says otherwise; None where it names a
    version."""
    return None if _NUMBERED.fullmatch(at) or at.strip().isdecimal() else _aware(_time(at))


def _time(text: str) -> dt.datetime:
    try:
        return dt.datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(
            f"--at {text!r} is neither a version nor a time",
            remedy="give a number that `deployer history` lists, or a time such as 2026-01-31T12:00:00Z",
        ) from None
