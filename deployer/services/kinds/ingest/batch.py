"""Loads the files of one commit.

The rows of the files are written. Files that cannot be loaded are left out, and the rest is committed with the list of
its files.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from deployer.datasets.dataset import open_dataset
from deployer.datasets.files.writer import WrittenFragment, discard
from deployer.errors import Conflict, Interrupted, InvalidInput, Refused
from deployer.platform.system.failpoints import reached
from deployer.platform.system.progress import OnProgress, Progress
from deployer.services.kinds.ingest.landing import LandedFile, Landings, content_of
from deployer.services.kinds.ingest.options import IngestOptions
from deployer.services.kinds.ingest.reading import FileReader, PlannedFile, bad_reason
from deployer.services.kinds.ingest.record import FileList, FileLists, sources_of
from deployer.state.log.updates import FilesAdded
from deployer.state.model.entities import Job
from deployer.state.transactions.tables import to_add_files
from deployer.tables.ingest.commit.append import commit_append
from deployer.tables.ingest.driver import write_rows
from deployer.tables.ingest.engine_choice import for_tasks
from deployer.tables.ingest.files.source_files import is_on_s3
from deployer.tables.ingest.keys.unique import Admission, UniqueLoad
from deployer.tables.ingest.loading import LoadedFragments, LoadPlan, unique_load
from deployer.tables.layout.partitions.key_ranges import Ranges
from deployer.tables.open_table import OpenTable
from deployer.tables.rows.load import commit_load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deployer.runs.rewriting.run import Engine

SPARK_BYTES = 512 << 20  #: the least size of a commit that Spark loads
SPARK_FILE_BYTES = 4 << 20  #: the least average file size for Spark; smaller files are read faster without tasks


@dataclass(frozen=True, slots=True)
class LoadedBatch:
    """The outcome of one commit. `job` is None where nothing was committed.

    `loaded` has the files of the commit. `bad` has the reason of each file that was left out, by path. `moved` has the
    files that changed or disappeared while they were read.
    """

    job: Job | None
    loaded: tuple[LandedFile, ...] = ()
    bad: Mapping[str, str] = field(default_factory=dict)
    moved: tuple[str, ...] = ()
    rows: int = 0


class CommittedMeanwhile(Exception):
    """The error that another process has made the commit of this number, with other files."""


class RefusedTogether(Exception):
    """The error that the files cannot be one commit; `why` is the reason. Some may be loaded alone or after others."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(slots=True)
class BatchLoad:
    """The load of some files as the job `job_id`."""

    table: OpenTable
    options: IngestOptions
    place: Landings
    lists: FileLists
    job_id: str
    engine: Engine
    session: Callable[[], SparkSession]
    on_progress: OnProgress
    bad: dict[str, str] = field(default_factory=dict)
    moved: list[str] = field(default_factory=list)
    contents: dict[str, str] = field(default_factory=dict)

    def run(self, files: Sequence[LandedFile]) -> LoadedBatch:
        """Loads the files that can be loaded, in at most one commit.

        Raises RefusedTogether, CommittedMeanwhile, and Conflict where another process changed the table meanwhile.
        """
        unique = None
        if self.options.mode != "upsert":  # rows of an upsert replace the rows with the same keys
            unique = unique_load(self.table, "reject", sets_aside=True)
        if unique is not None and self.options.mode == "overwrite":
            unique = replace(unique, taken=replace(unique.taken, files=()))
        left = list(files)
        while left:
            written, loadable = self._written(left, unique)
            left = [each for each in left if each.path not in self.bad and each.path not in self.moved]
            if loadable:
                break
            discard(self.table.location, written)
        if not left or (self.bad and self.options.on_error == "fail"):
            if left:
                discard(self.table.location, written)
            return LoadedBatch(None, (), dict(self.bad), tuple(self.moved))
        job = self._committed(left, written, unique)
        rows = sum(each.rows for each in written)
        return LoadedBatch(job, tuple(left), dict(self.bad), tuple(self.moved), rows)

    def _written(
        self, files: Sequence[LandedFile], unique: UniqueLoad | None
    ) -> tuple[Sequence[WrittenFragment], bool]:
        """Writes rows of the files. Returns the fragments, and whether they have exactly the rows of the good files."""
        reader = FileReader(self.table, self.options, unique is not None, self._report(len(files)))
        if self._uses_spark(files):
            loaded, excluded = self._with_spark(reader, files, unique)
        else:
            loaded, excluded = self._here(reader, files, unique)
        for split in loaded.duplicates.bad:
            path = reader.splits[split]
            bad = loaded.duplicates.bad[split]
            reader.bad.setdefault(path, f"{bad.rows:,} rows cannot be loaded: {bad.problems[0]}")
            excluded = False
        self.contents |= reader.small_files.contents
        now = self.place.now([each.path for each in files])
        moved = [each.path for each in files if (found := now.get(each.path)) is None or found.tag != each.tag]
        self.moved += moved
        self.bad |= {path: reason for path, reason in reader.bad.items() if path not in moved}
        in_rows = {each.path for each in files if each.path not in reader.bad}
        return loaded.written, excluded and not in_rows & set(moved)

    def _report(self, total: int) -> Callable[[int], None]:
        return lambda done: self.on_progress(Progress("loading", done, total, "files"))

    def _here(
        self, reader: FileReader, files: Sequence[LandedFile], unique: UniqueLoad | None
    ) -> tuple[LoadedFragments, bool]:
        """Loads in this process. Rows of bad files are not written."""
        plan = self._plan(reader, (), unique)
        stopped: list[BaseException] = []

        def rows() -> Iterator[pa.RecordBatch]:
            try:
                yield from reader.rows(files)
            except BaseException as stop:  # raised after the writer is done: Lance would hide its type
                stopped.append(stop)

        try:
            written, duplicates = write_rows(plan, rows(), {})
        except BaseException:
            if stopped:
                raise stopped[0] from None
            raise
        if stopped:
            discard(self.table.location, written)
            raise stopped[0]
        return LoadedFragments(tuple(written), {}, duplicates), True

    def _uses_spark(self, files: Sequence[LandedFile]) -> bool:
        size = sum(each.bytes for each in files)
        if self.engine != "auto":
            return self.engine == "spark"
        return size >= SPARK_BYTES and size >= SPARK_FILE_BYTES * len(files)

    def _with_spark(
        self, reader: FileReader, files: Sequence[LandedFile], unique: UniqueLoad | None
    ) -> tuple[LoadedFragments, bool]:
        """Loads with Spark. The written rows may include rows of bad files; the caller then does not commit them."""
        from deployer.compute.spark.progress import Tasks, run_job
        from deployer.tables.ingest.spark import SparkLoad

        planned = [found for each in files if (found := reader.plan(each)) is not None]
        if not planned:
            return LoadedFragments((), {}), True
        session = self.session()
        load = SparkLoad(session, for_tasks(self._plan(reader, planned, unique)))
        group = f"ingest-{uuid.uuid4().hex[:8]}"
        stopped: list[Interrupted] = []

        def watch(tasks: Tasks) -> None:
            try:
                self.on_progress(Progress("loading", tasks.done, tasks.total, "tasks", load.rows))
            except Interrupted as stop:
                stopped.append(stop)
                session.sparkContext.cancelJobGroup(group)

        try:
            loaded = run_job(session, group, f"ingest into {self.table.location}", load.run, watch)
        except Exception:
            if stopped:
                raise stopped[0] from None
            # Pages of a file may be damaged. Loading in this process finds out which file it is.
            return self._here(reader, files, unique)
        for each in planned:
            if reason := bad_reason([loaded.reports[split.number] for split in each.splits]):
                reader.bad[each.file.path] = reason
        return loaded, not any(each.file.path in reader.bad for each in planned)

    def _plan(self, reader: FileReader, planned: Sequence[PlannedFile], unique: UniqueLoad | None) -> LoadPlan:
        table = self.table
        leaves = Ranges(tuple(table.splits), tuple(leaf.partition_id for leaf in table.state.leaves()))
        open_dataset(table.location)
        reading = reader.reading_of(planned)
        splits = tuple(split for each in planned for split in each.splits)
        return LoadPlan(splits, reading, table.layout(), leaves, sets_aside=True, unique=unique)

    def _committed(
        self, files: Sequence[LandedFile], written: Sequence[WrittenFragment], unique: UniqueLoad | None
    ) -> Job:
        contents = _contents([each for each in files if not is_on_s3(each.path)], self.contents)
        digest = self.lists.put(FileList.of(self.job_id, files, contents))
        reached("services.ingest.after-list")
        sources = sources_of(files, digest)
        try:
            job, was_done = self._commit(written, sources, unique)
        except (Conflict, Refused, InvalidInput) as refused:
            discard(self.table.location, written)
            if isinstance(refused, Refused | InvalidInput) and self.options.mode == "upsert":
                raise RefusedTogether(f"{refused.what}; {refused.remedy}" if refused.remedy else refused.what) from None
            raise
        reached("services.ingest.after-commit")
        if was_done:
            discard(self.table.location, written)
        if job.sources != sources:
            raise CommittedMeanwhile
        return job

    def _commit(self, written: Sequence[WrittenFragment], sources: str, unique: UniqueLoad | None) -> tuple[Job, bool]:
        """Returns the job, and whether another process had already done it. In that case no version has the written
        files."""
        table, job_id, mode = self.table, self.job_id, self.options.mode
        if not written and (mode != "overwrite" or not table.state.files.count):
            return self._recorded(sources)
        if mode != "append":
            return commit_load(table, mode, self.options.on, job_id, written, sources, self.on_progress)
        done = commit_append(
            table.store,
            table.root,
            table.entry,
            job_id,
            "ingest",
            written,
            table.state.schema,
            sources=sources,
            admission=None if unique is None else Admission(unique.taken, table.layout(), written),
        )
        return done.job, done.already_done

    def _recorded(self, sources: str) -> tuple[Job, bool]:
        """Records files without rows. The dataset gets no new version."""
        table, state = self.table, self.table.state
        done = FilesAdded((), state.lance_version, self.job_id, 0, sources=sources)
        required = to_add_files(self.job_id, state.schema, table.entry.dataset)
        try:
            return table.store.commit(table.entry.table_id, [done], required).jobs[self.job_id], False
        except Conflict:
            if (job := table.store.table(table.entry.table_id).jobs.get(self.job_id)) is not None:
                return job, True
            raise


def _contents(files: Sequence[LandedFile], known: Mapping[str, str]) -> dict[str, str]:
    """Returns the hash of each file's content by path, with the `known` ones. A file that disappears meanwhile has no
    hash."""
    found = dict(known)
    for each in files:
        if not each.is_lance and each.path not in found:
            try:
                found[each.path] = content_of(each.path)
            except OSError:
                continue
    return found
