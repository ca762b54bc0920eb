"""Records rows that were skipped because a function failed for them. The records are below the root and outlive their
job.

Each batch with failures has a JSON document with a checksum, `_errors/TABLE_ID/JOB_ID/FRAGMENT-OFFSET`. The document
counts all failures of its batch, and has the errors that are kept. Where the same rows are computed again, as after a
kill, the document is replaced. `table gc` and CLEAN remove the errors of a job after the grace period, and the errors
of a deleted table.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from deployer.datasets.storage.job_folders import ERRORS, error_folder
from deployer.datasets.storage.options import objects_at
from deployer.errors import DeployerError, FunctionFailed
from deployer.functions.model import Failure
from deployer.platform.storage.envelope import seal, unseal
from deployer.platform.storage.objects import Missing
from deployer.platform.system.clock import Clock
from deployer.state.model.times import TIME
from deployer.tables.read.export import plain_values
from deployer.tables.rows.matching import ADDRESS

if TYPE_CHECKING:
    from deployer.columns.fill.live_rows import Offsets
    from deployer.datasets.lance_types import LanceDataset

MOST_ERRORS = 10_000  #: errors of one job that are kept; further errors are only counted
_MOST_ADDRESSES = 1_000  #: rows that are looked up at a time
ROW_ID = "_rowid"
_recorded = Counter[tuple[str, str, str]]()  #: the number of errors that this process has kept, by root, table and job
_recording = threading.Lock()


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """A row for which a function failed.

    `row_address` is the row's address in version `dataset_version` of dataset number `dataset`; compaction changes it.
    `row_key` has the row's key columns and `row_id` its stable row id, if the table has them: the row can be found by
    them later. `at` is in milliseconds since 1970.

    In a refresh of a view, the row belongs to a source: `column_name` is the function's name in the query, `row_key`
    and `row_id` are those of the source, `dataset_version` is the view's version before the refresh, and `row_address`
    is None.
    """

    job_id: str
    column_name: str
    error_type: str
    message: str
    traceback: str
    dataset: int
    dataset_version: int
    row_address: int | None
    row_key: Mapping[str, Any] | None
    row_id: int | None
    attempts: int
    at: int = field(metadata=TIME)

    @property
    def address(self) -> int:
        """The address of a row of the table itself; -1 for a row of a view's source."""
        return -1 if self.row_address is None else self.row_address


_FIELDS = {each.name for each in fields(ErrorRecord)}


@dataclass(frozen=True, slots=True)
class FailedRows:
    """The recorder of one job's failed rows. It can be pickled."""

    root: str
    table_id: str
    address: str
    job_id: str
    column: str
    dataset: int
    row_keys: tuple[str, ...]
    clock: Clock = Clock()

    def record(self, opened: LanceDataset, fragment_id: int, offsets: Offsets, failures: Sequence[Failure]) -> None:
        """Stores the failures of a batch of rows. `offsets` are the rows' offsets in the fragment. Failures above
        `MOST_ERRORS` of the job are only counted."""
        kept = failures[: self._room(len(failures))]
        chosen = [int(offsets[each.row]) for each in kept]
        known = self._known(opened, fragment_id, chosen)
        now = self.clock.now()
        records = [
            ErrorRecord(
                self.job_id,
                self.column,
                each.error_type,
                each.message,
                each.traceback,
                self.dataset,
                int(opened.version),
                (fragment_id << 32) | offset,
                *known.get(offset, (None, None)),
                each.attempts,
                now,
            )
            for each, offset in zip(kept, chosen, strict=True)
        ]
        name = f"{fragment_id}-{int(offsets[0])}"
        save_errors(self.root, self.table_id, self.job_id, name, records, len(failures))

    def _room(self, wanted: int) -> int:
        """Returns how many of `wanted` errors are kept: a process stores at most `MOST_ERRORS` errors of a job."""
        job = (self.root, self.table_id, self.job_id)
        with _recording:
            room = max(0, min(wanted, MOST_ERRORS - _recorded[job]))
            _recorded[job] += room
        return room

    def named(self, opened: LanceDataset, fragment_id: int, offset: int, failure: FunctionFailed) -> FunctionFailed:
        """Returns the failure that ends the run, with the row's key and address in its message."""
        key, row_id = self._known(opened, fragment_id, [offset]).get(offset, (None, None))
        row = f"row {(fragment_id << 32) | offset}"
        if key:
            row = f"the row {', '.join(f'{name} {value}' for name, value in key.items())} (address {row[4:]})"
        elif row_id is not None:
            row = f"the row with id {row_id} (address {row[4:]})"
        what = re.sub(r"^row \d+ of the batch: ", "", failure.what)
        return FunctionFailed(
            f"column {self.column}, {row}: {what}",
            where=f"{self.address}, {failure.where}",
            remedy=failure.remedy,
            row=failure.row,
            traceback=failure.traceback,
        )

    def _known(
        self, opened: LanceDataset, fragment_id: int, offsets: Sequence[int]
    ) -> dict[int, tuple[dict[str, Any] | None, int | None]]:
        """Returns the keys and stable row ids of rows by their offsets; None for a part that the table does not
        have."""
        if not self.row_keys and not opened.has_stable_row_ids:
            return {}
        found: dict[int, tuple[dict[str, Any] | None, int | None]] = {}
        for start in range(0, len(offsets), _MOST_ADDRESSES):
            found |= self._looked_up(opened, fragment_id, offsets[start : start + _MOST_ADDRESSES])
        return found

    def _looked_up(
        self, opened: LanceDataset, fragment_id: int, offsets: Sequence[int]
    ) -> dict[int, tuple[dict[str, Any] | None, int | None]]:
        has_ids = bool(opened.has_stable_row_ids)
        addresses = ", ".join(str((fragment_id << 32) | offset) for offset in offsets)
        rows = opened.scanner(
            columns=[*self.row_keys],
            filter=f"{ADDRESS} IN ({addresses})",
            fragments=[opened.get_fragment(fragment_id)],
            with_row_address=True,
            with_row_id=has_ids,
        ).to_table()
        plain = {name: plain_values(rows[name]) for name in self.row_keys}
        ids = rows[ROW_ID].to_pylist() if has_ids else [None] * rows.num_rows
        found: dict[int, tuple[dict[str, Any] | None, int | None]] = {}
        for place, address in enumerate(rows[ADDRESS].to_pylist()):
            key = {name: plain[name][place] for name in self.row_keys}
            found[address & 0xFFFFFFFF] = (key or None, ids[place])
        return found


def save_errors(root: str, table_id: str, job_id: str, name: str, records: Sequence[ErrorRecord], rows: int) -> None:
    """Stores errors of a job as the document `name`, and replaces an earlier document of that name. `rows` is the
    number of all failed rows, including those without a record."""
    document = {"records": [asdict(each) for each in records], "rows": rows}
    text = seal(json.dumps(document, ensure_ascii=False).encode())
    objects_at(root).put(f"{error_folder(table_id, job_id)}/{name}", text)


@dataclass(frozen=True, slots=True)
class JobErrors:
    """The kept errors of a job, and the number of all its failed rows."""

    records: tuple[ErrorRecord, ...]
    rows: int


def errors_of(root: str, table_id: str, job_id: str) -> JobErrors:
    """Returns the errors of one job, sorted by row address. A damaged document counts as missing."""
    by_row: dict[int, ErrorRecord] = {}
    of_sources: list[ErrorRecord] = []
    others = 0
    for document in _documents(root, error_folder(table_id, job_id)):
        records = [record for each in document["records"] if (record := _record(each)) is not None]
        others += document["rows"] - len(document["records"])
        of_sources += (each for each in records if each.row_address is None)
        for each in records:
            if each.row_address is None:
                continue
            known = by_row.get(each.row_address)
            if known is None or known.at <= each.at:
                by_row[each.row_address] = each
    kept = [*(by_row[address] for address in sorted(by_row)), *of_sources][:MOST_ERRORS]
    return JobErrors(tuple(kept), len(by_row) + len(of_sources) + others)


def jobs_with_errors(root: str, table_id: str) -> list[str]:
    """Returns the ids of the table's jobs that have errors, in alphabetical order."""
    found = (path.split("/") for path in objects_at(root).list(f"{ERRORS}/{table_id}"))
    return sorted({parts[2] for parts in found if len(parts) > 3})


def _documents(root: str, folder: str) -> Iterator[dict[str, Any]]:
    objects = objects_at(root)
    for path in sorted(objects.list(folder)):
        try:
            document = json.loads(unseal(objects.get(path), path))
        except (Missing, DeployerError, ValueError):
            continue
        if not isinstance(document, dict):
            continue
        if isinstance(document.get("records"), list) and isinstance(document.get("rows"), int):
            yield document


def _record(stored: Any) -> ErrorRecord | None:
    """Returns a stored error; None for an invalid one, because any writer below the root can store documents."""
    if not isinstance(stored, dict) or stored.keys() != _FIELDS:
        return None
    found = ErrorRecord(**stored)
    texts = (found.job_id, found.column_name, found.error_type, found.message, found.traceback)
    numbers = (found.dataset, found.dataset_version, found.attempts, found.at, found.address)
    if not all(isinstance(each, str) for each in texts) or not all(isinstance(each, int) for each in numbers):
        return None
    return found if isinstance(found.row_key, dict | None) else None


def of_kind(records: Sequence[ErrorRecord], column_name: str | None, error_type: str | None) -> list[ErrorRecord]:
    """Returns the errors with the column name and the type of exception; None accepts all."""
    return [
        each
        for each in records
        if (column_name is None or each.column_name == column_name)
        and (error_type is None or each.error_type == error_type)
    ]
