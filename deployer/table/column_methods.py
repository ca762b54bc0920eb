"""The methods of a table that write values of columns for existing rows."""

from __future__ import annotations

from deployer.columns.jobs import JobFuture, report_ignored, run_load, start_load
from deployer.columns.load.request import checked_request
from deployer.table.opened import OpenedTable


class ColumnMethods(OpenedTable):
    """Loads of columns."""

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
        engine: str = "auto",
    ) -> str:
        """Loads columns as `load_columns_async` does, in this thread, and returns the job's id. Ctrl-C cancels the job.

        Logs the progress every `refresh_status_secs` seconds.
        """
        report_ignored(
            task_size=task_size, _loader_cpus=_loader_cpus, _loader_memory=_loader_memory,
            enable_job_tracker_saves=None if enable_job_tracker_saves else False,
        )  # fmt: skip
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
            engine=engine,
        )
        return run_load(self._newest(), request, job_id, refresh_status_secs)

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
        engine: str = "auto",
    ) -> JobFuture[str]:
        """Loads columns of Parquet, Lance or IPC files into the rows with the same `pk`; adds columns that the table
        lacks. Returns the job; its `result()` waits for it.

        `source` is a file, folder, glob or s3:// address, or a list of files. `on_missing` decides about rows without a
        match: they keep their values (`"carry"`), get null, or are an error. At most `concurrency` fragments are
        written at the same time. The number of rows that are written at a time is `checkpoint_size` at first. Then it
        adapts so that writing takes `checkpoint_interval_seconds` (60), between `min_checkpoint_size` and
        `max_checkpoint_size`. Each `commit_granularity` fragments are a version; if omitted, all fragments are one.

        `engine` is `driver` for this process, `spark` for the declared local cluster, or `auto`, which means `spark`
        for a large source. A `job_id` resumes an interrupted job; if the job is done, nothing happens.

        Raises InvalidInput for invalid arguments. `deployer.columns.load.load` lists the errors of the job.
        """
        report_ignored(
            task_size=task_size, _loader_cpus=_loader_cpus, _loader_memory=_loader_memory,
            enable_job_tracker_saves=None if enable_job_tracker_saves else False,
        )  # fmt: skip
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
            engine=engine,
        )
        return start_load(self._newest(), request, job_id)
