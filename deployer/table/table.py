"""A table for programs that change, index and search it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from deployer.columns.jobs import JobFuture, report_ignored, start_load
from deployer.tables.append import Appendable, Appender
from deployer.tables.ingest.commit.append import AppendResult
from deployer.tables.open_table import OpenTable
from deployer.tables.read.table import Table as Reader

if TYPE_CHECKING:
    import pandas as pd


class Table:
    """A table of an instance. Each call works on the newest version; what it returns is of one version.

    Not for several threads at once; open one for each.
    """

    def __init__(self, opened: OpenTable) -> None:
        self._opened = opened
        self._appender: Appender | None = None

    @property
    def name(self) -> str:
        """The name `database.name`."""
        return self._opened.entry.full_name

    @property
    def schema(self) -> pa.Schema:
        """The columns of the newest version, with descriptions in the fields' metadata."""
        return self._newest().schema

    @property
    def version(self) -> int:
        """The newest version of the Lance dataset."""
        return self._newest().state.lance_version

    @property
    def row_keys(self) -> tuple[str, ...]:
        """The names of the row keys; none for a table without them."""
        return self._newest().row_keys

    def count_rows(self, where: str | None = None) -> int:
        """The number of rows for which the SQL condition is true; without a condition, nothing is read."""
        return Reader(self._newest()).count_where(where)

    def to_arrow(self, columns: Sequence[str] | None = None, where: str | None = None) -> pa.Table:
        """The rows for which the SQL condition is true, in memory. Raises InvalidInput for unknown columns and SQL."""
        return Reader(self._newest()).scan(where, columns).to_table()

    def to_pandas(self, columns: Sequence[str] | None = None, where: str | None = None) -> pd.DataFrame:
        """As `to_arrow`, as a DataFrame of pandas."""
        rows: pd.DataFrame = self.to_arrow(columns, where).to_pandas()
        return rows

    def add(self, rows: Appendable, *, job_id: str | None = None) -> AppendResult:
        """Adds all rows as one version, or none. With the id of a job that is done, nothing is added.

        `rows` are an Arrow table or batch, a DataFrame of pandas or polars, or a list of dicts. Raises Refused for rows
        that do not fit, InvalidInput for columns that do not; Conflict when the table was changed meanwhile.
        """
        if self._appender is None:
            self._appender = Appender(self._newest())
        else:
            self._appender.refresh()
        return self._appender.append(rows, job_id)

    def load_columns(
        self,
        source: str | list[str],
        pk: str,
        columns: list[str],
        *,
        source_format: str | None = None,
        on_missing: str = "carry",
        concurrency: int = 8,
        task_size: int | None = None,
        checkpoint_size: int | None = None,
        min_checkpoint_size: int | None = None,
        max_checkpoint_size: int | None = None,
        checkpoint_interval_seconds: float | None = None,
        _loader_cpus: float | None = None,
        _loader_memory: int | None = None,
        commit_granularity: int | None = None,
        refresh_status_secs: float = 2.0,
        enable_job_tracker_saves: bool = True,
        job_id: str | None = None,
    ) -> str:
        """As `load_columns_async`, and waits for the end; returns the job's id."""
        return self.load_columns_async(
            source,
            pk,
            columns,
            source_format=source_format,
            on_missing=on_missing,
            concurrency=concurrency,
            task_size=task_size,
            checkpoint_size=checkpoint_size,
            min_checkpoint_size=min_checkpoint_size,
            max_checkpoint_size=max_checkpoint_size,
            checkpoint_interval_seconds=checkpoint_interval_seconds,
            _loader_cpus=_loader_cpus,
            _loader_memory=_loader_memory,
            commit_granularity=commit_granularity,
            enable_job_tracker_saves=enable_job_tracker_saves,
            job_id=job_id,
        ).result()

    def load_columns_async(
        self,
        source: str | list[str],
        pk: str,
        columns: list[str],
        *,
        source_format: str | None = None,
        on_missing: str = "carry",
        concurrency: int = 8,
        task_size: int | None = None,
        checkpoint_size: int | None = None,
        min_checkpoint_size: int | None = None,
        max_checkpoint_size: int | None = None,
        checkpoint_interval_seconds: float | None = None,
        _loader_cpus: float | None = None,
        _loader_memory: int | None = None,
        commit_granularity: int | None = None,
        enable_job_tracker_saves: bool = True,
        job_id: str | None = None,
    ) -> JobFuture:
        """Loads columns of Parquet, Lance or IPC files into the rows with the same `pk`; adds columns that are not
        there.

        `source` is a file, folder, glob or s3:// address, or a list of files. Rows without a match keep what they have
        (`on_missing="carry"`), get null, or are an error. At most `concurrency` fragments are written at the same time,
        `checkpoint_size` rows at a time. Each `commit_granularity` fragments are a version; if omitted, all are one.
        A `job_id` resumes the job that was cut off, and does nothing when that job is done.

        Raises InvalidInput for arguments that cannot be. The job raises as `deployer.columns.load.load` says.
        """
        from deployer.columns.load.request import checked_request

        ignored = {"task_size": task_size, "_loader_cpus": _loader_cpus, "_loader_memory": _loader_memory}
        report_ignored([name for name, value in ignored.items() if value is not None])
        if not enable_job_tracker_saves:
            report_ignored(["enable_job_tracker_saves"])
        request = checked_request(
            source,
            pk,
            columns,
            source_format=source_format,
            on_missing=on_missing,
            concurrency=concurrency,
            task_size=task_size,
            checkpoint_size=checkpoint_size,
            min_checkpoint_size=min_checkpoint_size,
            max_checkpoint_size=max_checkpoint_size,
            checkpoint_interval_seconds=checkpoint_interval_seconds,
            commit_granularity=commit_granularity,
        )
        return start_load(self._newest(), request, job_id)

    def _newest(self) -> OpenTable:
        self._opened = self._opened.refreshed()
        return self._opened
