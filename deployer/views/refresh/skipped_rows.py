"""Rows of sources for which a function of a view's query failed and that its error policy skips.

The result of the function is null for such a row, or the view has no row for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.columns.backfill.failed_rows import MOST_ERRORS, ErrorRecord, save_errors
from deployer.datasets.storage.job_folders import ERRORS, remove_job_folder
from deployer.platform.system.clock import Clock
from deployer.tables.open_table import ReadTable
from deployer.tables.read.export import plain_values
from deployer.views.query.model import ROW_ID, ViewQuery
from deployer.views.query.program import RowProgram, Rows

if TYPE_CHECKING:
    from deployer.functions.model import Failure
    from deployer.views.refresh.sources import Source

_Key = tuple[tuple[str, Any], ...]
_DOCUMENT = "refresh"


class SkippedRows:
    """The callback that collects the failures of one refresh; see `deployer.views.query.model.OnFailures`. Only one
    thread may call it.

    A row for which the function was called twice counts once, if the source has row keys or stable row ids.
    """

    def __init__(
        self,
        table: ReadTable,
        job_id: str,
        query: ViewQuery,
        sources: Mapping[str, Source],
        clock: Clock = Clock(),  # noqa: B008 (a value)
    ) -> None:
        self._table, self._job_id, self._clock = table, job_id, clock
        self._keys = _key_columns(query, sources)
        self._calls = any(each.calls for each in _selects(query))
        self._records: list[ErrorRecord] = []
        self._known: set[tuple[str, _Key, int | None]] = set()
        self.rows = 0

    def __call__(self, function: str, batch: pa.RecordBatch, failures: Sequence[Failure]) -> None:
        places = pa.array([each.row for each in failures], pa.int64())
        there = [(flat, name) for flat, name in self._keys.items() if flat in batch.schema.names]
        values = [plain_values(batch.column(flat).take(places)) for flat, _ in there]
        for number, failure in enumerate(failures):
            known = {name: column[number] for (_, name), column in zip(there, values, strict=True)}
            row_id = known.pop(ROW_ID, None)
            identity = (function, tuple((name, repr(value)) for name, value in known.items()), row_id)
            if (known or row_id is not None) and identity in self._known:
                continue
            self._known.add(identity)
            self.rows += 1
            if len(self._records) < MOST_ERRORS:
                self._records.append(self._record(function, failure, known or None, row_id))

    def clear(self) -> None:
        """Removes all failures, for a refresh that starts again."""
        self._records, self._known, self.rows = [], set(), 0

    def save(self) -> None:
        """Stores the failures as the errors of the job. They replace the errors of an earlier run of the job."""
        root, table_id = self._table.root, self._table.entry.table_id
        if self.rows:
            save_errors(root, table_id, self._job_id, _DOCUMENT, self._records, self.rows)
        elif self._calls:
            remove_job_folder(root, table_id, self._job_id, ERRORS)

    def _record(self, function: str, failure: Failure, key: dict[str, Any] | None, row_id: int | None) -> ErrorRecord:
        state = self._table.state
        return ErrorRecord(
            job_id=self._job_id,
            column_name=function,
            error_type=failure.error_type,
            message=failure.message,
            traceback=failure.traceback,
            dataset=state.dataset,
            dataset_version=state.lance_version,
            row_address=None,
            row_key=key,
            row_id=row_id,
            attempts=failure.attempts,
            at=self._clock.now(),
        )


def _key_columns(query: ViewQuery, sources: Mapping[str, Source]) -> dict[str, str]:
    """Returns the columns that identify rows of the first table of each SELECT, by their flat names."""
    return {
        each.scan.flat(name): name
        for each in _selects(query)
        for name in sources[each.scan.table].row_keys or (ROW_ID,)
    }


def _selects(query: ViewQuery) -> tuple[Rows, ...]:
    program = query.program
    return program.branches if isinstance(program, RowProgram) else (program.rows,)
