"""The methods of a table that compute columns."""

from __future__ import annotations

import datetime as dt
import warnings
from typing import TYPE_CHECKING, Any

from deployer.columns.backfill.admission import admit
from deployer.columns.backfill.backfill import Define
from deployer.columns.backfill.current_addresses import current_addresses
from deployer.columns.backfill.engine_choice import Sizes
from deployer.columns.backfill.failed_rows import ErrorRecord, errors_of, jobs_with_errors, of_kind
from deployer.columns.backfill.plan import plan_backfill
from deployer.columns.backfill.request import COMMIT_GRANULARITY, BackfillRequest, checked_backfill, one_column
from deployer.columns.backfill.resolve import definition_of, finder
from deployer.columns.fill.checkpoint_sizes import require_seconds
from deployer.columns.fill.checkpoints import checked_job_id
from deployer.columns.job_list import Job, cancel_job, job_of, jobs_of
from deployer.columns.jobs import JobFuture, report_ignored, run_backfill, start_backfill
from deployer.compute.clusters import local_cluster
from deployer.errors import InvalidInput
from deployer.live.reader import live_instance
from deployer.platform.isolation.trusted_functions import NONE_TRUSTED, TrustedFunctions
from deployer.table.opened import OpenedTable
from deployer.views.definition import view_definition

if TYPE_CHECKING:
    from deployer.columns.backfill.results import BackfillJobResult, BackfillPlan
    from deployer.functions.model import UDF
    from deployer.tables.open_table import ReadTable


class BackfillMethods(OpenedTable):
    """Backfills of computed columns, their plans and their errors."""

    _trusted: TrustedFunctions = NONE_TRUSTED

    def backfill(
        self,
        columns: str | list[str],
        *,
        udf: UDF | None = None,
        where: str | None = None,
        concurrency: int = 8,
        intra_applier_concurrency: int = 1,
        _admission_check: bool | None = None,
        _admission_strict: bool | None = None,
        refresh_status_secs: float = 2.0,
        timeout: dt.timedelta | None = None,
        min_checkpoint_size: int | None = None,
        max_checkpoint_size: int | None = None,
        batch_checkpoint_flush_interval_seconds: float | None = None,
        blob_read_strategy: str = "auto",
        blob_read_buffer_size: int | None = None,
        _enable_job_tracker_saves: bool = True,
        job_id: str | None = None,
        commit_granularity: int | None = COMMIT_GRANULARITY,
        read_version: int | None = None,
        num_frags: int | None = None,
        skip_frags: int = 0,
        task_size: int | None = None,
        checkpoint_size: int | None = None,
        batch_size: int | None = None,
        task_shuffle_diversity: int | None = None,
        engine: str = "auto",
        cluster: str | None = None,
    ) -> BackfillJobResult:
        """Computes a column as `backfill_async` does, waits for the job and returns its result. Ctrl-C cancels the job.

        Logs the progress every `refresh_status_secs` seconds. Raises TimeoutError where the job has not ended after
        `timeout`; the job continues, and can be resumed by its id.
        """
        if timeout is not None and (not isinstance(timeout, dt.timedelta) or timeout.total_seconds() < 0):
            raise InvalidInput(f"timeout={timeout!r} is not a time", remedy="give a datetime.timedelta")
        if refresh_status_secs is None:
            raise InvalidInput("refresh_status_secs=None is not a number of seconds", remedy="leave it out")
        require_seconds("refresh_status_secs", refresh_status_secs)
        _report(intra_applier_concurrency, _enable_job_tracker_saves, task_shuffle_diversity, batch_size)
        request = checked_backfill(
            columns,
            where=where,
            read_version=read_version,
            num_frags=num_frags,
            skip_frags=skip_frags,
            task_size=task_size,
            concurrency=concurrency,
            commit_granularity=commit_granularity,
            checkpoint_size=checkpoint_size,
            batch_size=batch_size,
            min_checkpoint_size=min_checkpoint_size,
            max_checkpoint_size=max_checkpoint_size,
            batch_checkpoint_flush_interval_seconds=batch_checkpoint_flush_interval_seconds,
            blob_read_strategy=blob_read_strategy,
            blob_read_buffer_size=blob_read_buffer_size,
            engine=engine,
        )
        table = self._newest()
        sizes = self._sizes_of(cluster)
        define = self._admitted(request, udf, _admission_check, _admission_strict, cluster)
        return run_backfill(table, request, define, job_id, refresh_status_secs, timeout, sizes)

    def backfill_async(
        self,
        columns: str | list[str],
        *,
        udf: UDF | None = None,
        where: str | None = None,
        concurrency: int = 8,
        intra_applier_concurrency: int = 1,
        _admission_check: bool | None = None,
        _admission_strict: bool | None = None,
        min_checkpoint_size: int | None = None,
        max_checkpoint_size: int | None = None,
        batch_checkpoint_flush_interval_seconds: float | None = None,
        blob_read_strategy: str = "auto",
        blob_read_buffer_size: int | None = None,
        _enable_job_tracker_saves: bool = True,
        job_id: str | None = None,
        _return_future: bool = False,
        commit_granularity: int | None = COMMIT_GRANULARITY,
        read_version: int | None = None,
        num_frags: int | None = None,
        skip_frags: int = 0,
        task_size: int | None = None,
        checkpoint_size: int | None = None,
        batch_size: int | None = None,
        task_shuffle_diversity: int | None = None,
        engine: str = "auto",
        cluster: str | None = None,
    ) -> JobFuture[BackfillJobResult]:
        """Computes a column as a job, and returns the job; its `result()` waits for it.

        By default, the job computes the rows that have no computed value, or one by another version of the definition.
        `where` is an SQL condition that chooses the rows instead (`"1=1"`: all rows); other rows keep their values.
        `udf` is used instead of the column's own definition. `columns` is one name, or a list with one name; several
        raise NotImplementedError.

        Each `commit_granularity` fragments become visible together; None: all at the end. `skip_frags` and `num_frags`
        choose fragments of `read_version`, or of the newest version. At most `concurrency` tasks run at the same time.
        Fragments of more than `task_size` rows are split into several tasks; by default, each worker gets two tasks.

        `engine` is `driver` for threads of this process, `spark`, or `auto`, which means `spark` above 20 million rows.
        Spark runs on the declared local cluster, or on the one named `cluster`. A call of the function gets
        `checkpoint_size` rows at first; the number adapts between `min_checkpoint_size` and `max_checkpoint_size`.
        Computed values are saved every `batch_checkpoint_flush_interval_seconds` seconds (0: after each batch). Blobs
        of at most `blob_read_buffer_size` bytes in total are read at the same time. A `job_id` resumes an interrupted
        job; if the job is done, nothing happens.

        Raises InvalidInput, NotFound and Refused for a request that cannot be computed, and ResourcesUnavailableError
        where the cluster of the table's BACKFILL lacks resources that the function requires; then nothing is changed.
        `deployer.columns.backfill.backfill` lists the errors of the job.
        """
        _report(intra_applier_concurrency, _enable_job_tracker_saves, task_shuffle_diversity, batch_size)
        report_ignored(_return_future=True if _return_future else None)
        request = checked_backfill(
            columns,
            where=where,
            read_version=read_version,
            num_frags=num_frags,
            skip_frags=skip_frags,
            task_size=task_size,
            concurrency=concurrency,
            commit_granularity=commit_granularity,
            checkpoint_size=checkpoint_size,
            batch_size=batch_size,
            min_checkpoint_size=min_checkpoint_size,
            max_checkpoint_size=max_checkpoint_size,
            batch_checkpoint_flush_interval_seconds=batch_checkpoint_flush_interval_seconds,
            blob_read_strategy=blob_read_strategy,
            blob_read_buffer_size=blob_read_buffer_size,
            engine=engine,
        )
        table = self._newest()
        sizes = self._sizes_of(cluster)
        define = self._admitted(request, udf, _admission_check, _admission_strict, cluster)
        return start_backfill(table, request, define, job_id, cluster=sizes)

    def plan_backfill(
        self,
        col_name: str,
        *,
        udf: UDF | None = None,
        where: str | None = None,
        read_version: int | None = None,
        num_frags: int | None = None,
        skip_frags: int = 0,
        task_size: int | None = None,
    ) -> BackfillPlan:
        """Returns the plan of a `backfill` with these arguments. Computes nothing.

        By default it opens no data file. With `where`, it reads the columns of the condition once. Raises the same
        errors as `backfill`.
        """
        request = checked_backfill(
            one_column(col_name),
            where=where,
            read_version=read_version,
            num_frags=num_frags,
            skip_frags=skip_frags,
            task_size=task_size,
        )
        table = self._newest()
        return plan_backfill(table, request, self._define(request, udf)(table))

    def get_errors(
        self, job_id: str | None = None, column_name: str | None = None, error_type: str | None = None
    ) -> list[ErrorRecord]:
        """Returns the skipped rows for which a function failed, of one job, one column or one type of exception.

        For a view, the rows, `row_key` and `row_id` belong to its sources, and the column is the function's name in the
        query. At most 10,000 rows of a job are recorded; the result of the job has the total number. Raises
        InvalidInput for an invalid job id.
        """
        table = self._newest()
        table_id = table.entry.table_id
        jobs = jobs_with_errors(table.root, table_id) if job_id is None else [checked_job_id(job_id)]
        found = [record for each in jobs for record in errors_of(table.root, table_id, each).records]
        return of_kind(found, column_name, error_type)

    def get_failed_row_addresses(self, job_id: str, column_name: str) -> list[int]:
        """Returns the present addresses of the rows that failed in a job, in ascending order.

        They can be used in `backfill`, as `where=f"_rowaddr IN (…)"`. Rows that were deleted or cannot be found are
        left out; a UserWarning names them.
        """
        table = self._newest()
        if view_definition(table.state.properties, table.address) is not None:
            raise InvalidInput(
                "the rows that failed in a refresh of a view are those of its sources, and have no address in it",
                where=table.address,
                remedy="`get_errors` has their keys; refresh the view with `full=True` to compute them again",
            )
        found_errors = errors_of(table.root, table.entry.table_id, checked_job_id(job_id))
        records = of_kind(found_errors.records, column_name, None)
        found = current_addresses(table, records)
        if found.gone:
            names = ", ".join(_named(each) for each in found.gone[:10])
            more = f" and {len(found.gone) - 10} more" if len(found.gone) > 10 else ""
            warnings.warn(f"rows of job {job_id} do not exist any more: {names}{more}", UserWarning, stacklevel=2)
        return list(found.addresses)

    def list_jobs(self) -> list[Job]:
        """Returns the backfills and loads of columns of the table, and the refreshes of a view, the newest first."""
        table = self._newest()
        return jobs_of(table.entry, table.state)

    def get_job(self, job_id: str) -> Job:
        """Returns the job of `list_jobs` with this id. Raises NotFound, which names the nearest id."""
        table = self._newest()
        return job_of(table.entry, table.state, job_id)

    def cancel_job(self, job_id: str) -> bool:
        """Requests the end of a job; returns whether it was running. Its commits stay, and its id resumes it."""
        table = self._newest()
        return cancel_job(table.store, table.entry, job_id)

    def _sizes_of(self, cluster: str | None) -> Sizes | None:
        """Returns the sizes of the declared local cluster with this name; None without a name. Raises NotFound for an
        unknown cluster, and Refused for one that is not local."""
        if cluster is None:
            return None
        live, address = live_instance(self._opened.store.instance()), self._opened.address
        found = local_cluster(live.clusters if live is not None else (), cluster, address)
        return lambda: found

    def _define(self, request: BackfillRequest, udf: UDF | None) -> Define:
        find = finder(self._trusted)

        def define(table: ReadTable) -> Any:
            return definition_of(table, request.column, udf, find)

        return define

    def _admitted(
        self, request: BackfillRequest, udf: UDF | None, check: bool | None, strict: bool | None, cluster: str | None
    ) -> Define:
        define = self._define(request, udf)
        admit(self._opened, define(self._opened), check, strict, cluster=cluster)
        return define


def _report(intra: int, saves: bool, diversity: int | None, batch_size: int | None) -> None:
    report_ignored(
        intra_applier_concurrency=None if intra == 1 else intra,
        _enable_job_tracker_saves=None if saves else False,
        task_shuffle_diversity=diversity,
    )
    if batch_size is not None:
        warnings.warn("batch_size is the former name of checkpoint_size", DeprecationWarning, stacklevel=3)


def _named(record: ErrorRecord) -> str:
    if record.row_key:
        return ", ".join(f"{name} {value}" for name, value in record.row_key.items())
    return f"id {record.row_id}" if record.row_id is not None else f"address {record.row_address}"
