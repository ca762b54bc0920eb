"""`load_columns`: loads values of columns from files by a primary key, as a recorded run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from deployer.columns.fill.added_columns import refuse_new_column
from deployer.columns.fill.commit import Filling
from deployer.columns.fill.job_ids import other_job, refuse_used_id
from deployer.columns.fill.run import FillRun, FillSizes, FillStats
from deployer.columns.fill.work import Target
from deployer.columns.load.engine_choice import choose_engine
from deployer.columns.load.joined import JoinedColumns
from deployer.columns.load.keys import refuse_key_types
from deployer.columns.load.on_spark import ShuffledColumns
from deployer.columns.load.request import LoadRequest
from deployer.columns.load.source import LoadSource, find_load_source
from deployer.columns.load.spooled import NO_VALUES
from deployer.compute.clusters import declared_cluster
from deployer.compute.spark.local import LocalCluster, job_session
from deployer.errors import InvalidInput
from deployer.platform.files.temporary import temporary_folder
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.runs.runner import RunRequest, as_run
from deployer.specs.types.arrow import arrow_field, column_of, columns_of
from deployer.specs.types.types import Column, format_type, holds_blob
from deployer.state.model.services import Figures, FinalStatus, ServiceKind
from deployer.tables.conversion.casts import castable
from deployer.tables.ingest.rows.computed_values import computed_problem
from deployer.tables.open_table import OpenTable, open_entry

LOAD_COLUMNS: ServiceKind = "LOAD_COLUMNS"


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The result of a load. `already_done` states that the job was complete before, and that nothing was written.
    `added` are the new columns."""

    job_id: str
    run_id: str = ""
    columns: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    already_done: bool = False
    stats: FillStats = FillStats()
    lance_version_before: int | None = None
    lance_version_after: int | None = None
    engine: str = "none"

    status: FinalStatus = "SUCCEEDED"
    why: str = ""

    @property
    def figures(self) -> Figures:
        """The figures for the run's record."""
        return Figures(
            rows_out=self.stats.rows,
            bytes_out=self.stats.bytes,
            lance_version_before=self.lance_version_before,
            lance_version_after=self.lance_version_after,
        )


def load_columns(
    table: OpenTable,
    request: LoadRequest,
    job_id: str,
    on_progress: OnProgress = no_progress,
    *,
    is_new: bool = False,
    cluster: Callable[[], LocalCluster] | None = None,
    on_engine: Callable[[str, str], None] = lambda _engine, _reason: None,
) -> LoadResult:
    """Loads the columns as a run of LOAD_COLUMNS, and adds columns that the table lacks.

    With the id of a completed job, nothing is written; with the id of an interrupted job, the rest is written. Raises
    InvalidInput, NotFound and Refused for values that cannot be loaded; then nothing is changed. Raises Conflict where
    another run loads one of the columns, the source changes, or a change of the table prevents the rest of the load.

    `is_new` states that the id was just made. `cluster` returns the sizes of a local session if the load needs Spark;
    None stands for the declared local cluster. `on_engine` gets the engine and the reason for it.
    """
    table.refuse_view()
    kind = f"load columns {', '.join(request.columns)}"
    if (done := table.state.jobs.get(job_id)) is not None:
        if done.kind != kind:
            raise other_job(table, job_id, f"a job of kind {done.kind} had it")
        return LoadResult(job_id, columns=request.columns, already_done=True)
    if not is_new:
        refuse_used_id(table, job_id)
    source = find_load_source(request)
    target = _target(table, request, source)
    engine, reason = choose_engine(request.engine, source, table.state.files.rows)
    on_engine(engine, reason)
    run_request = RunRequest(cause=f"job {job_id}", target=request.columns, job=job_id)

    def work(run_id: str, report_progress: OnProgress) -> LoadResult:
        return _loaded(table, request, source, target, job_id, run_id, kind, report_progress, engine, cluster)

    return as_run(table.store, table.entry.table_id, LOAD_COLUMNS, run_request, work, on_progress)


def _loaded(
    table: OpenTable,
    request: LoadRequest,
    source: LoadSource,
    target: Target,
    job_id: str,
    run_id: str,
    kind: str,
    on_progress: OnProgress,
    engine: str,
    cluster: Callable[[], LocalCluster] | None,
) -> LoadResult:
    table = open_entry(table.store, table.root, table.store.instance().tables[table.entry.table_id])
    run = table.state.runs[run_id]
    filling = Filling(
        store=table.store,
        root=table.root,
        entry=table.entry,
        job_id=job_id,
        run_id=run_id,
        holder=run.holder or "",
        kind=kind,
        target=target,
        inputs=(request.pk,),
    )
    document = {
        "kind": LOAD_COLUMNS,
        "columns": list(request.columns),
        "pk": request.pk,
        "on_missing": request.on_missing,
        "source": source.identity,
    }
    sizes = FillSizes(request.commit_granularity, request.concurrency, request.checkpoints)
    if engine == "spark":
        sizes_of = cluster or partial(declared_cluster, table.store.instance(), table.address)
        shuffled = ShuffledColumns(partial(job_session, sizes_of), source, request, target, table.address, on_progress)
        with closing(shuffled):
            stats = FillRun(filling, shuffled, NO_VALUES, sizes, document, on_progress, shuffled).fill()
    else:
        with temporary_folder("columns") as folder:
            values = JoinedColumns(source, request, target, table.address, Path(folder), on_progress)
            stats = FillRun(filling, values, values, sizes, document, on_progress).fill()
    after = table.store.table(table.entry.table_id).lance_version
    added = tuple(column.name for column in target.added)
    return LoadResult(
        job_id=job_id,
        run_id=run_id,
        columns=request.columns,
        added=added,
        already_done=False,
        stats=stats,
        lance_version_before=table.state.lance_version,
        lance_version_after=after,
        engine=engine,
    )


def _target(table: OpenTable, request: LoadRequest, source: LoadSource) -> Target:
    """Returns the columns to write. Raises InvalidInput for columns that cannot be loaded."""
    there = {column.name: column for column in columns_of(table.schema)}
    if request.pk not in there:
        raise InvalidInput(
            f"the table has no column {request.pk}",
            where=table.address,
            remedy=f"name one that it has: {', '.join(list(there)[:10])}",
        )
    refuse_key_types(
        request.pk, table.schema.field(request.pk).type, source.schema.field(request.pk).type, table.address
    )
    keys = {*table.row_keys, *table.sort_keys}
    columns = [_column(table, name, there.get(name), source, keys) for name in request.columns]
    return Target(tuple(columns), tuple(column for column in columns if column.name not in there))


def _column(table: OpenTable, name: str, there: Column | None, source: LoadSource, keys: set[str]) -> Column:
    if name in keys:
        raise InvalidInput(
            f"column {name} is a row key or sort key, by which files are arranged",
            where=table.address,
            remedy="load another column, or change rows by an update",
        )
    given = source.schema.field(name)
    if there is None:
        column = column_of(given.with_nullable(True).remove_metadata())
        refuse_new_column(table, column)
        if holds_blob(column.type):
            raise _blobs(table, name)
        return column
    if there.computed is not None:
        raise InvalidInput(
            computed_problem(name, there.computed),
            where=table.address,
            remedy="let a backfill compute it, or load another column",
        )
    if holds_blob(there.type):
        raise _blobs(table, name)
    if not castable(given.type, arrow_field(there).type):
        raise InvalidInput(
            f"column {name} is {given.type} in the source and {format_type(there.type)} in the table",
            where=source.sources[0].name,
            remedy="cast it in the source",
        )
    return there


def _blobs(table: OpenTable, name: str) -> InvalidInput:
    return InvalidInput(
        f"column {name} holds blobs, which cannot be loaded beside the rows",
        where=table.address,
        remedy="load the rows with their blobs by `ingest`",
    )
