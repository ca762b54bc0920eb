"""The refresh of a view: a recorded run that, in one commit, makes the view equal its query at one point in time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from deployer.errors import InvalidInput, NotFound, Refused
from deployer.platform.system.failpoints import reached
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.runs.runner import RunRequest, as_run
from deployer.state.model.services import FinalStatus, ServiceKind
from deployer.state.transactions.services import to_go_on
from deployer.tables.changes.timeline import Position
from deployer.tables.open_table import OpenTable
from deployer.tables.read.conditions import check_condition
from deployer.tables.rows.matching import matching_rows
from deployer.views.definition import ReflectedInputs, SourceVersion, ViewDefinition
from deployer.views.query.model import FullRefreshNeeded, ViewQuery
from deployer.views.refresh.commit import NewRows, RefreshCommit, write
from deployer.views.refresh.plan import Decision, RefreshPlan, decide, plan_of
from deployer.views.refresh.queries import FoundQuery, Queries, find_query, parsed_again, require_view
from deployer.views.refresh.reading import Changes, Identities, ReadStoredRows, Sources
from deployer.views.refresh.record import KIND, reflected
from deployer.views.refresh.results import NoStableRowIds, RefreshJobResult, RefreshRequest
from deployer.views.refresh.skipped_rows import SkippedRows
from deployer.views.refresh.sources import Source, at_version, held_sources, read_sources, require_online

if TYPE_CHECKING:
    from deployer.datasets.files.writer import WrittenFragment
    from deployer.datasets.lance_types import LanceDataset
    from deployer.tables.open_table import ReadTable
    from deployer.tables.rows.change import RowChange

SERVICE: ServiceKind = "REFRESH"


@dataclass(frozen=True)
class ViewJob:
    """A refresh of one view as a job. `queries` parses and computes the view's query."""

    table: OpenTable
    request: RefreshRequest
    job_id: str
    queries: Queries


def refresh(job: ViewJob, on_progress: OnProgress = no_progress) -> RefreshJobResult:
    """Refreshes the view as a run of REFRESH.

    Does nothing if the job is already done. If an error is raised, the view is unchanged. Raises InvalidInput for a
    table that is not a view and for invalid arguments; Refused and NotFound, naming the source, for sources that cannot
    be read; NoStableRowIds, which is a RuntimeError, for a `src_version` of a source whose rows cannot be identified
    again; Conflict where another refresh is running.
    """
    table = job.table.refreshed()
    require_view(table)
    if (done := done_before(table, job.job_id)) is not None:
        return done
    require_view_online(table)
    asked = RunRequest(cause=f"job {job.job_id}", job=job.job_id)

    def work(run_id: str, report_progress: OnProgress) -> RefreshJobResult:
        return do_refresh(replace(job, table=table.refreshed()), run_id, report_progress)

    return as_run(table.store, table.entry.table_id, SERVICE, asked, work, on_progress)


def done_before(table: ReadTable, job_id: str) -> RefreshJobResult | None:
    """Returns the result of a job that is done. Raises InvalidInput for the id of a job of another kind."""
    done = table.state.jobs.get(job_id)
    if done is None:
        return None
    if done.kind != KIND:
        raise InvalidInput(
            f"{job_id} is the id of another job: a job of kind {done.kind} had it",
            where=table.address,
            remedy="give this job another job id",
        )
    return RefreshJobResult(
        job_id,
        table.entry.full_name,
        "none",
        already_done=True,
        lance_version_after=done.lance_version,
        reason="it was done before",
    )


def require_view_online(table: ReadTable) -> None:
    """Raises Refused for a view that is offline."""
    if not table.state.properties.online:
        raise Refused("the view is offline", where=table.address, remedy="set it online first")


def plan_refresh(queries: Queries, table: ReadTable, request: RefreshRequest = RefreshRequest()) -> RefreshPlan:  # noqa: B008
    """Returns what a refresh would do now, computed from logs and manifests without opening a data file. Raises the
    same errors as `refresh` for invalid arguments and unreadable sources."""
    definition = require_view(table)
    found = find_query(queries, table, definition)
    sources = read_sources(table.store, table.root, found.entries)
    query, sources = _at(queries, table, definition, found, sources, request)
    return plan_of(table, query, decide(table, query, definition.fingerprint, sources, full=request.full), sources)


def do_refresh(job: ViewJob, run_id: str, on_progress: OnProgress) -> RefreshJobResult:
    """Refreshes the view within the run `run_id`, which is already recorded as running."""
    begun = time.monotonic()
    table = job.table
    if (done := done_before(table, job.job_id)) is not None:
        return done
    on_progress(Progress("looking for changes", 0, None))
    definition = require_view(table)
    found = find_query(job.queries, table, definition, table.store)
    base = reflected(table.state)
    with held_sources(table.store, table.root, found.entries, _since(base, found)) as sources:
        reached("views.refresh.pinned")
        query, sources = _at(job.queries, table, definition, found, sources, job.request)
        work = _Work(job, run_id, definition, query, sources, on_progress)
        result = work.done()
    return replace(result, seconds=time.monotonic() - begun)


def _since(base: ReflectedInputs | None, found: FoundQuery) -> dict[str, SourceVersion]:
    """Returns the version of each source that the view reflects, by the source's name."""
    known = {} if base is None else {each.table_id: each for each in base.sources}
    return {name: known[entry.table_id] for name, entry in found.entries.items() if entry.table_id in known}


def _at(
    queries: Queries,
    table: ReadTable,
    definition: ViewDefinition,
    found: FoundQuery,
    sources: Mapping[str, Source],
    request: RefreshRequest,
) -> tuple[ViewQuery, dict[str, Source]]:
    """Returns the query and its sources at the requested versions. Raises the same errors as `refresh`."""
    chosen = dict(sources)
    for source in chosen.values():
        require_online(source)
    if request.where is not None:
        check_condition(request.where, table.address, table.schema)
        chosen = _as_reflected(table, chosen)
    if request.src_version is not None:
        if len(chosen) != 1:
            raise InvalidInput(
                f"`src_version` is given, and the view reads {len(chosen)} tables: {', '.join(chosen)}",
                where=table.address,
                remedy="leave it out: a refresh reads all of them at one moment",
            )
        [(name, source)] = chosen.items()
        chosen[name] = at_version(source, request.src_version)
        _require_known_rows(table, chosen[name])
    return parsed_again(queries, found, definition, chosen, table.address), chosen


def _as_reflected(table: ReadTable, sources: Mapping[str, Source]) -> dict[str, Source]:
    """Returns the sources at the versions that the view reflects. Raises Refused where the view does not reflect a
    source yet, and for versions that were removed."""
    base = reflected(table.state)
    known = {} if base is None else {each.table_id: each for each in base.sources}
    found = {}
    for name, source in sources.items():
        since = known.get(source.table.entry.table_id)
        if since is None:
            raise Refused(
                "the view was not refreshed from this table yet, so there are no rows to compute again",
                where=source.table.address,
                remedy="refresh it without `where` first",
            )
        found[name] = replace(source, position=Position(since.dataset, since.lance_version))
        try:
            _ = found[name].dataset
        except NotFound as removed:
            raise Refused(
                f"version {found[name].position} of {name}, which the view reflects, is not kept any more",
                where=table.address,
                remedy="refresh it without `where`: it then reflects the newest version",
            ) from removed
    return found


def _require_known_rows(table: ReadTable, source: Source) -> None:
    """Raises NoStableRowIds where the rows of the source cannot be identified again and its version is not the one that
    the view reflects."""
    base = reflected(table.state)
    known = {} if base is None else {each.table_id: each for each in base.sources}
    since = known.get(source.table.entry.table_id)
    if since is None or source.row_keys or source.stable_row_ids:
        return
    if source.position != Position(since.dataset, since.lance_version):
        raise NoStableRowIds(
            f"the view reflects version {since.dataset}:{since.lance_version} of {source.name} and cannot be refreshed "
            f"to version {source.position}: the rows of {source.name} have neither row keys nor stable row ids",
            where=table.address,
            remedy="leave `src_version` out, or give the table row keys or `stable_row_ids: true`",
        )


@dataclass
class _Work:
    """The work of one run, while the sources are protected from CLEAN."""

    job: ViewJob
    run_id: str
    definition: ViewDefinition
    query: ViewQuery
    sources: Mapping[str, Source]
    on_progress: OnProgress
    read: int = field(default=0)
    skipped: SkippedRows = field(init=False)

    def __post_init__(self) -> None:
        self.skipped = SkippedRows(self.table, self.job.job_id, self.query, self.sources)

    @property
    def table(self) -> OpenTable:
        return self.job.table

    def done(self) -> RefreshJobResult:
        request = self.job.request
        record = self._record()
        if request.where is not None:
            base = reflected(self.table.state)
            assert base is not None  # noqa: S101 -- `_as_reflected` has required it
            rows = self._some_again(request.where)
            return self._committed(Decision("incremental", "rows of a condition", base), base, rows)
        found = decide(self.table, self.query, self.definition.fingerprint, self.sources, full=request.full)
        reached("views.refresh.planned")
        if found.mode == "none" and not found.moves:
            return self._result(found, None, "SKIPPED", found.reason)
        if found.mode == "none":
            empty = pa.table({name: pa.nulls(0) for name in self.query.identity})
            return self._committed(found, record, NewRows((), empty, None))
        if found.mode == "incremental":
            try:
                return self._committed(found, record, self._changed(found))
            except FullRefreshNeeded as why:
                found = Decision("full", str(why), found.base)
            except NotFound as removed:
                found = Decision("full", f"changes were removed meanwhile: {removed.what}", found.base)
            self.skipped.clear()
        return self._committed(found, record, self._all())

    def _record(self) -> ReflectedInputs:
        version = self.table.store.instance().version
        sources = tuple(self.sources[name].version for name in self.query.tables)
        return ReflectedInputs(self.definition.fingerprint, version, sources)

    def _changed(self, found: Decision) -> NewRows:
        """Computes which rows of the view change, and writes the new rows."""
        table, dataset = self.table, self.table.dataset()
        stored = ReadStoredRows(table, dataset, self.query.identity)
        reader, changes = Sources(self.sources, self._count), Changes(found.changes, self._count)
        delta = self.job.queries.delta(self.definition, self.query, changes, reader, stored, self.skipped)
        names = list(self.query.identity)
        schema = pa.schema([self.query.stored_schema.field(name) for name in names])
        removed = pa.Table.from_batches([batch.select(names).cast(schema) for batch in delta.removed], schema)
        added: list[pa.RecordBatch] = []

        def noted() -> Iterator[pa.RecordBatch]:
            for batch in delta.added:
                if removed.num_rows and not delta.all_return:
                    added.append(batch.select(names))
                yield batch

        written = self._written(dataset, noted())
        come = pa.Table.from_batches(added, schema) if added else None
        grouped = self.query.grouped
        # Each removed group is one row that was read, so the addresses of all removed rows are known.
        known = grouped and len(stored.found) == removed.num_rows
        places = (table.location, int(dataset.version), stored.found) if known else None
        return NewRows(written, removed, come, places, replaced=grouped, all_return=delta.all_return)

    def _all(self) -> NewRows:
        return NewRows(self._written(self.table.dataset(), self._built()), None, None)

    def _built(self) -> Iterator[pa.RecordBatch]:
        reader = Sources(self.sources, self._count)
        return self.job.queries.build(self.definition, self.query, reader, self.skipped)

    def _some_again(self, where: str) -> NewRows:
        """Computes the rows that match the condition again. Rows are matched by identity."""
        table, dataset, names = self.table, self.table.dataset(), list(self.query.identity)
        schema = pa.schema([table.schema.field(name) for name in names])
        found = [batch.select(names) for batch in matching_rows(table, dataset, where, names)]
        chosen = pa.Table.from_batches(found).cast(schema) if found else schema.empty_table()
        wanted = Identities(chosen)
        added: list[pa.RecordBatch] = []

        def again() -> Iterator[pa.RecordBatch]:
            for batch in self._built():
                batch = batch.take(pa.array(wanted.places_in([batch.column(name) for name in names])))
                added.append(batch.select(names))
                yield batch

        written = self._written(dataset, again()) if chosen.num_rows else ()
        return NewRows(written, chosen, pa.Table.from_batches(added).cast(schema) if added else None)

    def _written(self, dataset: LanceDataset, rows: Iterator[pa.RecordBatch]) -> tuple[WrittenFragment, ...]:
        most = self.job.request.max_rows_per_fragment
        written = write(self.table, dataset, rows, most)
        reached("views.refresh.written")
        return written

    def _count(self, rows: int) -> None:
        self.read += rows
        self.on_progress(Progress("reading the sources", self.read, None))

    def _committed(self, found: Decision, record: ReflectedInputs, rows: NewRows) -> RefreshJobResult:
        run = self.table.store.table(self.table.entry.table_id).runs[self.run_id]
        held = tuple(to_go_on(self.run_id, run.holder or ""))
        base = reflected(self.table.state)
        self.on_progress(Progress("committing", self.read, self.read))
        self.skipped.save()
        commit = RefreshCommit(self.job.job_id, base, record, self.query.identity, held)
        change = commit.run(self.table, rows)
        reached("views.refresh.committed")
        done = self._result(found, change)
        return replace(done, bytes=sum(each.bytes for each in rows.written), fragments=len(rows.written))

    def _result(
        self, found: Decision, change: RowChange | None, status: FinalStatus = "SUCCEEDED", why: str = ""
    ) -> RefreshJobResult:
        counts = None if change is None else change.counts
        before = self.table.state.lance_version
        return RefreshJobResult(
            job_id=self.job.job_id,
            table=self.table.entry.full_name,
            mode=found.mode,
            reason=found.reason,
            run_id=self.run_id,
            rows_read=self.read,
            rows_inserted=0 if counts is None else counts.inserted,
            rows_updated=0 if counts is None else counts.updated,
            rows_deleted=0 if counts is None else counts.deleted,
            errors=self.skipped.rows,
            sources={name: str(each.position) for name, each in self.sources.items()},
            already_done=change is not None and change.already_done,
            lance_version_before=before,
            lance_version_after=before if change is None else change.version,
            status=status,
            why=why,
        )
