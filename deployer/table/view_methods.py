"""The methods of a table that refresh a materialized view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deployer.columns.fill.checkpoints import checked_job_id
from deployer.columns.jobs import JobFuture, report_ignored
from deployer.platform.system.clock import Clock
from deployer.table.opened import OpenedTable
from deployer.tables.open_table import open_entry

if TYPE_CHECKING:
    from deployer.state.store import StateStore
    from deployer.views.refresh.plan import RefreshPlan
    from deployer.views.refresh.refresh import ViewJob
    from deployer.views.refresh.results import RefreshJobResult


class ViewMethods(OpenedTable):
    """Refreshes of materialized views, and their plans."""

    def refresh(
        self,
        *,
        where: str | None = None,
        src_version: int | None = None,
        max_rows_per_fragment: int | None = None,
        concurrency: int = 8,
        intra_applier_concurrency: int = 1,
        full: bool = False,
        job_id: str | None = None,
        _admission_check: bool | None = None,
        _admission_strict: bool | None = None,
        **kwargs: Any,
    ) -> RefreshJobResult:
        """Brings the materialized view up to date with the newest rows of its sources, and returns the result.

        The changes since the last refresh are applied as one version; readers see the former or the new view. All
        sources are read at one point in time. Commits that only rearrange rows cost nothing. The first refresh computes
        all rows, and so does one after a change that cannot be applied; the result states the reason, and so does
        `plan_refresh` in advance.

        `src_version`, for a view with one source, is the version of the source to reflect instead of the newest.
        `where` is an SQL condition on the view's columns: the rows that meet it are computed again from the versions
        that the view already reflects, and other rows stay. `full` computes all rows again. `max_rows_per_fragment`
        limits the rows of written files. A `job_id` that is already done does nothing.

        Raises RuntimeError (`NoStableRowIds`) for a `src_version` other than the reflected one where the rows of the
        source have neither row keys nor stable row ids. Raises InvalidInput for a table that is not a view and for
        invalid arguments, NotFound for a source or version that no longer exists, Refused for a source that was
        renamed, is offline or lacks a column of the query, and Conflict while another refresh runs. An error leaves the
        view unchanged.
        """
        from deployer.views.refresh.refresh import refresh

        _report(concurrency, intra_applier_concurrency, _admission_check, _admission_strict, kwargs)
        return refresh(self._view_job(where, src_version, max_rows_per_fragment, full, job_id))

    def refresh_async(
        self,
        *,
        where: str | None = None,
        src_version: int | None = None,
        max_rows_per_fragment: int | None = None,
        concurrency: int = 8,
        intra_applier_concurrency: int = 1,
        full: bool = False,
        job_id: str | None = None,
        _admission_check: bool | None = None,
        _admission_strict: bool | None = None,
        **kwargs: Any,
    ) -> JobFuture[RefreshJobResult]:
        """Starts `refresh` in a thread with its own connection, and returns the job.

        Its `result()` waits and returns the result of `refresh`, or raises its error. The process ends only after the
        refresh has ended.
        """
        from dataclasses import replace

        from deployer.views.refresh.refresh import refresh

        _report(concurrency, intra_applier_concurrency, _admission_check, _admission_strict, kwargs)
        job = self._view_job(where, src_version, max_rows_per_fragment, full, job_id)

        def work(store: StateStore) -> RefreshJobResult:
            entry = store.instance().tables[job.table.entry.table_id]
            return refresh(replace(job, table=open_entry(store, job.table.root, entry)))

        return JobFuture(job.table.root, job.table.entry.table_id, job.job_id, work)

    def plan_refresh(self, *, src_version: int | None = None, full: bool = False) -> RefreshPlan:
        """Returns the plan of a refresh: nothing, an incremental or a full refresh, with the reason and the fragments,
        rows and bytes that it would read.

        Reads logs and manifests, but no data file. Raises the same errors as `refresh`.
        """
        from deployer.views.refresh.engine import queries_of
        from deployer.views.refresh.refresh import plan_refresh
        from deployer.views.refresh.results import RefreshRequest

        table = self._newest()
        request = RefreshRequest(src_version, full=full)
        return plan_refresh(queries_of(table.root, self._trusted), table, request)

    def _view_job(
        self, where: str | None, src_version: int | None, most: int | None, full: bool, job_id: str | None
    ) -> ViewJob:
        from deployer.views.refresh.engine import queries_of
        from deployer.views.refresh.queries import require_view
        from deployer.views.refresh.refresh import ViewJob
        from deployer.views.refresh.results import RefreshRequest

        table = self._newest()
        require_view(table)
        own_id = Clock().new_id() if job_id is None else checked_job_id(job_id)
        request = RefreshRequest(src_version, where, most, full)
        return ViewJob(table, request, own_id, queries_of(table.root, self._trusted))


def _report(concurrency: int, intra: int, check: bool | None, strict: bool | None, others: dict[str, Any]) -> None:
    report_ignored(
        concurrency=None if concurrency == 8 else concurrency,
        intra_applier_concurrency=None if intra == 1 else intra,
        _admission_check=check,
        _admission_strict=strict,
        **others,
    )
