"""One attempt of a load: finds and reads the sources, refuses or sets aside bad rows, and commits the other rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from deployer.datasets.commit.done_jobs import find_job
from deployer.datasets.dataset import open_dataset
from deployer.datasets.files.writer import discard
from deployer.errors import Conflict, DeployerError, InvalidInput, Refused
from deployer.live.reader import has_unique_keys
from deployer.platform.system.progress import OnProgress
from deployer.state.model.entities import Job, TableEntry
from deployer.state.store import StateStore
from deployer.tables.ingest.commit.append import AppendResult, commit_append
from deployer.tables.ingest.driver import load_in_driver
from deployer.tables.ingest.engine_choice import choose_engine, for_tasks
from deployer.tables.ingest.files.dialects import notes_on, with_dialects
from deployer.tables.ingest.files.find import find_sources, splits_of
from deployer.tables.ingest.files.loaded_files import LoadedFiles, identified, loaded_before, refuse_other_files
from deployer.tables.ingest.files.model import Format, Source
from deployer.tables.ingest.files.source_files import same_place
from deployer.tables.ingest.keys.unique import Admission, UniqueLoad
from deployer.tables.ingest.loading import (
    LoadedFragments,
    LoadPlan,
    refused_duplicates,
    unique_load,
    with_duplicates_set_aside,
)
from deployer.tables.ingest.readers.splits import bad_by_file, plan_reading
from deployer.tables.ingest.request import CommitLoad, IngestRequest, IngestResult, LoadWithSpark
from deployer.tables.ingest.rows.bad_row_files import check_bad_rows_file, remove_bad_rows, write_bad_rows
from deployer.tables.ingest.rows.bad_rows import LISTED, BadRows, refusal, too_many
from deployer.tables.ingest.rows.field_map import field_map
from deployer.tables.ingest.rows.missing_columns import missing, unnamed_columns
from deployer.tables.layout.partitions.key_ranges import Ranges
from deployer.tables.open_table import OpenTable


@dataclass(slots=True)
class LoadAttempt:
    """An attempt to load the files of a request into the current table. It runs only once.

    Raises KeysTaken where others committed the same unique keys meanwhile. The next attempt then finds these keys in
    the table.
    """

    table: OpenTable
    request: IngestRequest
    job_id: str
    with_spark: LoadWithSpark
    on_progress: OnProgress
    on_engine: Callable[[str, str], None]
    on_note: Callable[[str], None]
    commit_load: CommitLoad | None
    engine: str = "none"
    reason: str = "the job was done before"
    started: float = field(default_factory=time.monotonic)

    def run(self) -> IngestResult:
        """Loads the files and returns the result. Raises the errors of `ingest`; then nothing is committed, and no
        written file is left."""
        table, request = self.table, self.request
        table.refuse_view()
        if job := done_before(table.store, table.root, table.entry, request):
            return self._result(job)
        if request.bad_rows is not None:
            check_bad_rows_file(request.bad_rows, table.schema, may_be_own=request.job_id is not None)
        unique = _unique_load(table, request)
        sources = _sources(table, request)
        files = _identified(sources)
        plan = _plan(table, request, sources, unique)
        loaded = with_duplicates_set_aside(self._load(plan))
        bad = bad_by_file(plan.splits, loaded.reports)
        with self._discarded_after(DeployerError, loaded):
            self._refuse(plan, loaded, bad)
            if job := self._done_meanwhile(plan, loaded):
                discard(table.location, loaded.written)
                return self._result(job)
            self._set_aside(bad, loaded)
        bad_rows = sum(each.rows for each in bad.values())
        if not loaded.written and request.mode != "overwrite":
            return self._result(Job(self.job_id, "ingest", 0, table.state.lance_version, 0), loaded, bad_rows)
        with self._discarded_after((Conflict, Refused, InvalidInput), loaded, bad_rows):
            done = self._commit(plan, loaded, files)
        if done.already_done:
            discard(table.location, loaded.written)
            refuse_other_files(done.job, files, table.address)
            return self._result(done.job, bad_rows=bad_rows)
        result = self._result(done.job, loaded, bad_rows)
        if request.mode != "append":
            rows = sum(each.rows for each in loaded.written)
            return replace(result, rows=rows, mode=request.mode, counts=done.job.counts)
        if files is None:
            return result
        return replace(result, loaded_before=loaded_before(files, table.state.jobs.values()))

    def _load(self, plan: LoadPlan) -> LoadedFragments:
        """Writes the rows with the chosen engine, and commits nothing."""
        self.engine, self.reason = choose_engine(self.request.engine, plan)
        self.on_engine(self.engine, self.reason)
        for note in notes_on(split.source for split in plan.splits):
            self.on_note(note)
        if self.engine == "spark":
            return self.with_spark(for_tasks(plan), self.on_progress)
        return load_in_driver(plan, self.on_progress)

    def _refuse(self, plan: LoadPlan, loaded: LoadedFragments, bad: Mapping[str, BadRows]) -> None:
        """Raises the error for columns that no file has, and for bad rows that are not set aside."""
        if absent := plan.reading.absent(loaded.reports.values()):
            raise missing(absent, self.table.schema, self.table.address)
        if self.request.bad_rows is None and any(each.rows for each in bad.values()):
            raise refusal(bad, self.table.address)

    def _done_meanwhile(self, plan: LoadPlan, loaded: LoadedFragments) -> Job | None:
        """Returns the job where another process has completed it meanwhile, so that its rows are duplicates. Raises
        Refused for other duplicates that refuse the load."""
        table = self.table
        if plan.unique is None or not (refused := refused_duplicates(loaded, plan.unique, loaded.rows, table.address)):
            return None
        if self.request.job_id and (job := find_job(table.store, table.root, table.entry.table_id, self.job_id)):
            return job
        raise refused

    def _set_aside(self, bad: Mapping[str, BadRows], loaded: LoadedFragments) -> None:
        """Writes the bad rows to their file. Raises InvalidInput where all rows are bad or more than the limit."""
        request, count = self.request, sum(each.rows for each in bad.values())
        if not count or request.bad_rows is None:
            return
        write_bad_rows(request.bad_rows, bad)
        if count == loaded.rows or (request.max_bad_rows and not request.max_bad_rows.allows(count, loaded.rows)):
            raise too_many(bad, loaded.rows, request.max_bad_rows, request.bad_rows, self.table.address)

    def _commit(self, plan: LoadPlan, loaded: LoadedFragments, files: LoadedFiles | None) -> AppendResult:
        table, request, written = self.table, self.request, loaded.written
        text = files.to_text() if files else ""
        if request.mode != "append" and self.commit_load is not None:
            return AppendResult(
                *self.commit_load(table, request.mode, request.on, self.job_id, written, text, self.on_progress)
            )
        return commit_append(
            table.store,
            table.root,
            table.entry,
            self.job_id,
            "ingest",
            written,
            table.state.schema,
            sources=text,
            admission=None if plan.unique is None else Admission(plan.unique.taken, plan.layout, written),
        )

    @contextmanager
    def _discarded_after(
        self, errors: type[DeployerError] | tuple[type[DeployerError], ...], loaded: LoadedFragments, bad_rows: int = 0
    ) -> Iterator[None]:
        """Removes the written fragments where the block raises one of the errors. If `bad_rows` is not 0, also removes
        the file of bad rows."""
        try:
            yield
        except errors:
            discard(self.table.location, loaded.written)
            if bad_rows and self.request.bad_rows is not None:
                remove_bad_rows(self.request.bad_rows)
            raise

    def _result(self, job: Job, loaded: LoadedFragments | None = None, bad_rows: int = 0) -> IngestResult:
        """Returns the result of a job. `loaded` is None for a job that was already done."""
        already_done = loaded is None
        written = loaded.written if loaded is not None else ()
        return IngestResult(
            table=self.table.entry.full_name,
            job_id=job.job_id,
            rows=0 if already_done else job.rows,
            files=len(written),
            bytes=sum(each.bytes for each in written),
            bad_rows=bad_rows,
            lance_version=job.lance_version,
            engine=self.engine,
            reason=self.reason,
            seconds=time.monotonic() - self.started,
            already_done=already_done,
            unique=has_unique_keys(self.table.state),
            duplicates_skipped=loaded.duplicates.rows if loaded and self.request.on_duplicate == "skip" else 0,
        )


def done_before(store: StateStore, root: str, entry: TableEntry, request: IngestRequest) -> Job | None:
    """Returns the job of the request if it is done. Raises InvalidInput where that job loaded other files than the
    request names."""
    if not request.job_id or not (job := find_job(store, root, entry.table_id, request.job_id)):
        return None
    refuse_other_files(job, _files_of(request), entry.address)
    return job


def _files_of(request: IngestRequest) -> LoadedFiles | None:
    """Returns the request's files; None where they cannot be read, for example because they were removed after the
    job."""
    try:
        return _identified(find_sources(request.paths, request.format))
    except DeployerError:
        return None


def _identified(sources: Sequence[Source]) -> LoadedFiles | None:
    """Returns the files; None where one cannot be read, because reading its rows reports the error later."""
    try:
        return identified(sources)
    except (DeployerError, OSError):
        return None


def _unique_load(table: OpenTable, request: IngestRequest) -> UniqueLoad | None:
    """Returns the unique keys that rows are compared with; None where rows with the same keys may be loaded."""
    if request.mode == "upsert":  # its rows replace those with their keys
        return None
    unique = unique_load(table, request.on_duplicate, sets_aside=request.bad_rows is not None)
    if unique is None or request.mode != "overwrite":
        return unique
    return replace(unique, taken=replace(unique.taken, files=()))


def _sources(table: OpenTable, request: IngestRequest) -> list[Source]:
    sources = with_dialects(find_sources(request.paths, request.format), request.options)
    if any(same_place(source.path, table.location) for source in sources):
        raise DeployerError("a table cannot be loaded into itself", where=table.address, remedy="copy it first")
    return sources


def _plan(table: OpenTable, request: IngestRequest, sources: Sequence[Source], unique: UniqueLoad | None) -> LoadPlan:
    fields = field_map(table.schema, request.renames, request.selects)
    if request.renames and not request.options.header:
        raise InvalidInput(
            "--rename is given with --no-header, and fields without a header line have no names",
            where=table.address,
            remedy="fields are then the table's columns in order: leave --rename out",
        )
    reading = plan_reading(
        sources,
        table.schema,
        table.row_keys,
        request.options,
        ignore_extra=request.ignore_extra,
        listed=LISTED if request.bad_rows is None else None,
        fields=fields,
    )
    if not request.missing_as_null:
        unnamed = unnamed_columns(table.schema, sources, reading.names, fields)
        if unnamed and all(source.format is not Format.JSON for source in sources):
            raise missing(unnamed, table.schema, table.address)
        reading = replace(reading, unnamed=unnamed)
    leaves = Ranges(tuple(table.splits), tuple(leaf.partition_id for leaf in table.state.leaves()))
    open_dataset(table.location)
    reading = replace(reading, places=unique is not None, root=table.root)
    splits = tuple(splits_of(sources))
    return LoadPlan(splits, reading, table.layout(), leaves, request.bad_rows is not None, unique=unique)
