"""Loads sources into a table once: finds them, chooses how, refuses or sets aside bad rows, commits."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from deployer.datasets.commit.done_jobs import find_job
from deployer.datasets.dataset import open_dataset
from deployer.datasets.files.writer import WrittenFragment, discard
from deployer.errors import Conflict, DeployerError, InvalidInput, KeysTaken, Refused
from deployer.live.reader import has_unique_keys
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.state.model.entities import Job, RowCounts, TableEntry
from deployer.state.store import StateStore
from deployer.tables.ingest.commit.append import AppendResult, commit_append
from deployer.tables.ingest.driver import load_in_driver
from deployer.tables.ingest.engine_choice import Engine, choose_engine, for_tasks
from deployer.tables.ingest.files.dialects import notes_on, with_dialects
from deployer.tables.ingest.files.find import find_sources, refuse_credentials, splits_of
from deployer.tables.ingest.files.loaded_files import (
    LoadedBefore,
    LoadedFiles,
    identified,
    loaded_before,
    refuse_other_files,
)
from deployer.tables.ingest.files.model import Format, ReadOptions, Source
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
from deployer.tables.ingest.rows.bad_row_files import check_bad_rows_file, remove_bad_rows, write_bad_rows
from deployer.tables.ingest.rows.bad_rows import LISTED, BadRowLimit, refusal, too_many
from deployer.tables.ingest.rows.field_map import check_given_once, field_map
from deployer.tables.ingest.rows.missing_columns import missing, unnamed_columns
from deployer.tables.ingest.rows.selects import Select
from deployer.tables.layout.indexes.build import CaughtUp, catch_up
from deployer.tables.layout.partitions.key_ranges import Ranges
from deployer.tables.layout.partitions.split import SplitResult, split_after_load
from deployer.tables.open_table import OpenTable

ATTEMPTS = 5  #: how often a load starts again because others added rows with the same keys meanwhile

LoadWithSpark = Callable[[LoadPlan, OnProgress], LoadedFragments]
Mode = Literal["append", "upsert", "overwrite"]
#: Commits written rows in another mode than `append`: gives the job, and whether an earlier run had done it. Its
#: arguments are the table, the mode, the columns that rows are matched by, the job's id, the rows, and their files.
CommitLoad = Callable[
    [OpenTable, str, Sequence[str], str, Sequence[WrittenFragment], str, OnProgress], tuple[Job, bool]
]


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """A request to load files. If `job_id` is omitted, a random id is used; the load is then not idempotent."""

    paths: tuple[str, ...]
    format: Format | None = None
    options: ReadOptions = ReadOptions()
    ignore_extra: bool = False
    bad_rows: str | Path | None = None  #: where bad rows are set aside; a file, or an s3:// address
    job_id: str | None = None
    engine: Engine = "auto"
    indexes: bool = True  #: bring the table's indexes up to date once the rows are committed
    services: bool = True  #: for the job that asks: run the table's services that are due then
    max_bad_rows: BadRowLimit | None = None  #: more bad rows refuse the load
    missing_as_null: bool = False  #: columns that no file has and that have no default are null, not an error
    on_duplicate: Literal["reject", "skip"] = "reject"  #: what becomes of rows whose unique keys are there
    renames: tuple[tuple[str, str], ...] = ()  #: fields of the files, and the columns that they fill
    selects: tuple[Select, ...] = ()  #: columns that expressions over the files' fields give
    mode: Mode = "append"  #: rows are added, take the place of those with their keys, or of all rows
    on: tuple[str, ...] = ()  #: the columns that an upsert matches rows by; the row keys by default

    def __post_init__(self) -> None:
        """Raises InvalidInput for addresses that have credentials in them, and options that do not go together."""
        if self.max_bad_rows is not None and self.bad_rows is None:
            raise InvalidInput("--max-bad-rows is given without --bad-rows", remedy="give --bad-rows FILE too")
        if self.on and self.mode != "upsert":
            raise InvalidInput("--on is given without --mode upsert", remedy="give --mode upsert too")
        if self.mode == "upsert" and self.on_duplicate == "skip":
            raise InvalidInput(
                "--on-duplicate skip is given with --mode upsert, which replaces the rows whose keys are there",
                remedy="leave one of them out",
            )
        check_given_once(self.renames, self.selects)
        refuse_credentials([*self.paths, *([self.bad_rows] if isinstance(self.bad_rows, str) else [])])


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The result of a load; `bad_rows` were set aside. `reason` explains the choice of `engine`."""

    table: str
    job_id: str
    rows: int
    files: int
    bytes: int
    bad_rows: int
    lance_version: int
    engine: str
    reason: str
    seconds: float
    already_done: bool = False
    indexes: CaughtUp = CaughtUp()
    splits: SplitResult | None = None  #: of leaves above the limit that the table declares; None without one
    loaded_before: tuple[LoadedBefore, ...] = ()  #: files of this load that an earlier one had loaded
    unique: bool = False  #: the table's row keys are unique: no row is in it twice
    duplicates_skipped: int = 0  #: rows that were left out, since their unique keys were there
    mode: Mode = "append"
    counts: RowCounts | None = None  #: of a load in another mode; `rows` are those that it wrote


def ingest(
    table: OpenTable,
    request: IngestRequest,
    with_spark: LoadWithSpark,
    on_progress: OnProgress = no_progress,
    on_engine: Callable[[str, str], None] = lambda _engine, _reason: None,
    on_note: Callable[[str], None] = lambda _note: None,
    new_id: str | None = None,
    commit_load: CommitLoad | None = None,
) -> IngestResult:
    """Loads all sources as one version of the table, or nothing. Then splits leaves above the limit that the table
    declares, and brings its indexes up to date: what fails of that is in the result, and the next load tries again.

    `new_id` is the load's id where the request has none (None: a random one). `commit_load` is needed for modes other
    than `append`.
    Raises NotFound and InvalidInput for sources that cannot be read, Refused for bad rows that are not set aside, and
    for rows whose unique keys are there and that are neither set aside nor skipped, InvalidInput when too many rows are
    bad, or all of them, which are set aside then too, Conflict when the table was changed meanwhile.
    """
    job_id = request.job_id or new_id or uuid.uuid4().hex
    for attempt in range(ATTEMPTS):
        try:
            result = _load(table, request, job_id, with_spark, on_progress, on_engine, on_note, commit_load)
            break
        except KeysTaken:  # the next try finds these keys in the table
            if attempt == ATTEMPTS - 1:
                raise
            table = table.refreshed()
    result = replace(result, splits=split_after_load(table.store, table.root, table.entry.table_id, on_progress))
    if not request.indexes:
        return result
    return replace(result, indexes=catch_up(table.store, table.root, table.entry.table_id, on_progress))


def _load(
    table: OpenTable,
    request: IngestRequest,
    job_id: str,
    with_spark: LoadWithSpark,
    on_progress: OnProgress,
    on_engine: Callable[[str, str], None],
    on_note: Callable[[str], None],
    commit_load: CommitLoad | None,
) -> IngestResult:
    started = time.monotonic()
    table.refuse_view()
    if job := done_before(table.store, table.root, table.entry, request):
        return _result(table, job, 0, 0, 0, "none", "the job was done before", started, already_done=True)
    if request.bad_rows is not None:
        check_bad_rows_file(request.bad_rows, table.schema, may_be_own=request.job_id is not None)
    unique = None  # the rows of an upsert take the place of those with their keys
    if request.mode != "upsert":
        unique = unique_load(table, request.on_duplicate, sets_aside=request.bad_rows is not None)
    if unique is not None and request.mode == "overwrite":
        unique = replace(unique, taken=replace(unique.taken, files=()))
    sources = _sources(table, request)
    files = _identified(sources)
    plan = _plan(table, request, sources, unique)
    engine, reason = choose_engine(request.engine, plan)
    on_engine(engine, reason)
    for note in notes_on(split.source for split in plan.splits):
        on_note(note)
    loaded = with_spark(for_tasks(plan), on_progress) if engine == "spark" else load_in_driver(plan, on_progress)
    if absent := plan.reading.absent(loaded.reports.values()):
        discard(table.location, loaded.written)
        raise missing(absent, table.schema, table.address)
    loaded = with_duplicates_set_aside(loaded)
    bad = bad_by_file(plan.splits, loaded.reports)
    bad_rows = sum(each.rows for each in bad.values())
    if bad_rows and request.bad_rows is None:
        discard(table.location, loaded.written)
        raise refusal(bad, table.address)
    rows = sum(report.rows for report in loaded.reports.values())
    if unique is not None and (refused := refused_duplicates(loaded, unique, rows, table.address)):
        discard(table.location, loaded.written)
        if request.job_id and (job := find_job(table.store, table.root, table.entry.table_id, job_id)):
            return _result(table, job, 0, 0, 0, engine, reason, started, already_done=True)  # by another run meanwhile
        raise refused
    skipped = loaded.duplicates.rows if request.on_duplicate == "skip" else 0
    if bad_rows and request.bad_rows is not None:
        try:
            write_bad_rows(request.bad_rows, bad)
            if bad_rows == rows or (request.max_bad_rows and not request.max_bad_rows.allows(bad_rows, rows)):
                raise too_many(bad, rows, request.max_bad_rows, request.bad_rows, table.address)
        except DeployerError:
            discard(table.location, loaded.written)
            raise
    if not loaded.written and request.mode != "overwrite":
        empty = Job(job_id, "ingest", 0, table.state.lance_version, 0)
        return _result(table, empty, 0, 0, bad_rows, engine, reason, started, skipped=skipped)
    try:
        text = files.to_text() if files else ""
        if request.mode != "append" and commit_load is not None:
            done = AppendResult(
                *commit_load(table, request.mode, request.on, job_id, loaded.written, text, on_progress)
            )
        else:
            done = commit_append(
                table.store,
                table.root,
                table.entry,
                job_id,
                "ingest",
                loaded.written,
                table.state.schema,
                sources=text,
                admission=None if unique is None else Admission(unique.taken, plan.layout, loaded.written),
            )
    except (Conflict, Refused, InvalidInput):
        discard(table.location, loaded.written)
        if bad_rows and request.bad_rows is not None:
            remove_bad_rows(request.bad_rows)
        raise
    if done.already_done:
        discard(table.location, loaded.written)
        refuse_other_files(done.job, files, table.address)
    size = sum(each.bytes for each in loaded.written)
    result = _result(
        table,
        done.job,
        len(loaded.written),
        size,
        bad_rows,
        engine,
        reason,
        started,
        already_done=done.already_done,
        skipped=skipped,
    )
    if request.mode != "append" and not done.already_done:
        written_rows = sum(each.rows for each in loaded.written)
        return replace(result, rows=written_rows, mode=request.mode, counts=done.job.counts)
    if done.already_done or files is None:
        return result
    return replace(result, loaded_before=loaded_before(files, table.state.jobs.values()))


def done_before(store: StateStore, root: str, entry: TableEntry, request: IngestRequest) -> Job | None:
    """Returns the job of the request, if it is done. Raises InvalidInput when it loaded other files than the request
    has."""
    if not request.job_id or not (job := find_job(store, root, entry.table_id, request.job_id)):
        return None
    refuse_other_files(job, _files_of(request), entry.address)
    return job


def _files_of(request: IngestRequest) -> LoadedFiles | None:
    """Returns the request's files; None when they cannot be read, such as those that are gone since their job was
    done."""
    try:
        return _identified(find_sources(request.paths, request.format))
    except DeployerError:
        return None


def _identified(sources: Sequence[Source]) -> LoadedFiles | None:
    """Returns the files; None when one cannot be read: reading its rows reports the error."""
    try:
        return identified(sources)
    except (DeployerError, OSError):
        return None


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


def _result(
    table: OpenTable,
    job: Job,
    files: int,
    size: int,
    bad_rows: int,
    engine: str,
    reason: str,
    started: float,
    *,
    already_done: bool = False,
    skipped: int = 0,
) -> IngestResult:
    return IngestResult(
        table.entry.full_name,
        job.job_id,
        0 if already_done else job.rows,
        0 if already_done else files,
        0 if already_done else size,
        bad_rows,
        job.lance_version,
        engine,
        reason,
        time.monotonic() - started,
        already_done,
        unique=has_unique_keys(table.state),
        duplicates_skipped=0 if already_done else skipped,
    )
