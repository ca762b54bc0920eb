"""A run of INGEST: it loads new files of a place, commit by commit, and sets aside files that cannot be loaded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deployer.errors import Conflict, Interrupted, InvalidInput
from deployer.platform.system.clock import Clock
from deployer.platform.system.failpoints import reached
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.platform.text.formatting import count
from deployer.platform.text.masking import masked
from deployer.runs.rewriting.run import TableStats, again
from deployer.services.kinds.ingest.batch import BatchLoad, CommittedMeanwhile, LoadedBatch, RefusedTogether
from deployer.services.kinds.ingest.landing import LandedFile, Landings, content_of
from deployer.services.kinds.ingest.options import IngestOptions
from deployer.services.kinds.ingest.planning import PlannedFiles, commits_of, plan_files
from deployer.services.kinds.ingest.queue import no_messages, received
from deployer.services.kinds.ingest.record import FileLists, LoadedFile, Record, next_job, own_intents
from deployer.services.kinds.ingest.results import FileProblem, IngestFilesResult
from deployer.services.kinds.ingest.set_aside import LONGEST, NotLoaded, NotLoadedFiles, SetAside
from deployer.state.log.requirements import JobNotDone
from deployer.state.log.updates import CommitAbandoned
from deployer.state.model.services import FinalStatus
from deployer.tables.ingest.files.source_files import is_on_s3
from deployer.tables.layout.indexes.build import catch_up
from deployer.tables.layout.partitions.split import split_after_load
from deployer.tables.open_table import OpenTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deployer.runs.rewriting.run import Engine

ATTEMPTS = 5  #: how often a commit is tried again because others changed the table
SHOWN = 20  #: the most problems that a result lists
SAID = 120  #: the most characters of a reason in the record of the run


@dataclass(slots=True)
class FilesRun:
    """One run on one table."""

    table: OpenTable
    options: IngestOptions
    run_id: str
    session: Callable[[], SparkSession]
    engine: Engine = "auto"
    on_progress: OnProgress = no_progress
    problems: list[FileProblem] = field(default_factory=list)
    files: int = 0
    rows: int = 0
    bytes: int = 0
    commits: int = 0
    not_loaded: NotLoaded = field(default_factory=NotLoaded)

    def run(self) -> IngestFilesResult:
        """Loads the new files. Commits that were made before an error or a cancellation stay.

        Raises InvalidInput for a bad file with `on_error: fail`, Refused for a place within the lake's root, and
        Conflict where others change the table continuously. A cancelled run returns a result.
        """
        started = time.monotonic()
        self.table.refuse_view()
        place = Landings.of(
            self.options.files,
            self.table.root,
            any_name=self.options.format is not None,
            listed=self.options.queue is None,
        )
        before = TableStats.of(self.table)
        status: FinalStatus = "SUCCEEDED"
        messages, gone, stopped = no_messages(), 0, ""
        try:
            self.not_loaded = self._aside.read()
            self._settle()
            if self.options.queue:
                for part in received(self.options.queue, place):
                    messages = part
                    try:
                        there = place.now(part.paths)
                        gone += len(part.paths) - len(there)
                        self._load_all(place, there.values(), complete=False)
                    except BaseException:
                        part.release()
                        raise
                    reached("services.ingest.before-delete-messages")
                    part.delete()
            else:
                self.on_progress(Progress("listing files", 0, None, "files"))
                self._load_all(place, place.list(), complete=True)
            self._brought_up_to_date()
        except (Interrupted, KeyboardInterrupt) as stop:
            status, stopped = "CANCELLED", str(stop) or "interrupted"
        if status == "SUCCEEDED" and not self.files:
            status = "SKIPPED"
        return IngestFilesResult(
            table=self.table.entry.full_name,
            run_id=self.run_id,
            status=status,
            why=stopped or self._why(place),
            place=place.files,
            files=self.files,
            rows=self.rows,
            bytes=self.bytes,
            commits=self.commits,
            set_aside=len(self.not_loaded.files),
            changed=len(self.not_loaded.changed),
            problems=tuple(self.problems[:SHOWN]),
            messages=messages.count,
            outside=messages.outside,
            gone=gone,
            unknown=messages.unknown,
            before=before,
            after=TableStats.of(again(self.table)),
            seconds=time.monotonic() - started,
        )

    @property
    def _lists(self) -> FileLists:
        return FileLists(self.table.root, self.table.entry.table_id)

    @property
    def _aside(self) -> NotLoadedFiles:
        return NotLoadedFiles(self.table.root, self.table.entry.table_id)

    def _settle(self) -> None:
        """Ends the commits that a dead run had begun.

        If that run was only paused and commits after all, its commit is recorded and takes the number that this run
        would use.
        """
        for job_id in own_intents(self.table.state):
            with suppress(Conflict):  # the other run has committed meanwhile
                self.table.store.commit(self.table.entry.table_id, [CommitAbandoned(job_id)], [JobNotDone(job_id)])
        self.table = self.table.refreshed()

    def _load_all(self, place: Landings, listed: Iterable[LandedFile], *, complete: bool) -> None:
        """Loads the new files among `listed`. `complete` says that the place has no other file."""
        landed = list(listed)
        for _ in range(ATTEMPTS):
            record = self._lists.read(self.table.state)
            planned = self._planned(landed, record)
            self._note_changes(landed, planned, complete=complete)
            try:
                for files in commits_of(planned.new, self.options):
                    self._load(place, files)
            except CommittedMeanwhile:  # files that the other run loaded must not be loaded again
                self.table = again(self.table)
                continue
            self._lists.merge(self._lists.read(self.table.state) if planned.new else record)
            return
        raise _overtaken(self.table)

    def _planned(self, landed: Sequence[LandedFile], record: Record) -> PlannedFiles:
        now = Clock().now()
        return plan_files(landed, record, self.not_loaded, self.options, _same_content, now)

    def _note_changes(self, landed: Sequence[LandedFile], planned: PlannedFiles, *, complete: bool) -> None:
        """Records the changed files, and removes entries of files that left the place or were loaded meanwhile.

        `complete` says that `landed` has all files of the place.
        """
        seen, there = {each.path for each in planned.changed}, {each.path for each in landed}
        kept = {*planned.aside, *(each.path for each in planned.new)}

        def change(now: NotLoaded) -> NotLoaded:
            gone = {path for path in now.files if path not in kept and (complete or path in there)}
            old = {path for path in now.changed if path not in seen and (complete or path in there)}
            rest = NotLoaded(now.without(gone).files, now.without(old).changed)
            return NotLoaded(rest.files, {**rest.changed, **{each.path: each for each in planned.changed}})

        known = set(self.not_loaded.changed)
        self.not_loaded = self._aside.change(change)
        self.problems += [
            FileProblem(each.path, "it has changed since it was loaded")
            for each in planned.changed
            if each.path not in known
        ]

    def _load(self, place: Landings, files: Sequence[LandedFile]) -> None:
        """Loads files as one commit. Files that cannot be one commit are loaded as several, in their order."""
        try:
            done = self._tried(place, files)
        except RefusedTogether as refused:
            if len(files) == 1:
                self._set_aside(files, {files[0].path: refused.why})
                return
            middle = len(files) // 2
            self._load(place, files[:middle])
            self._load(place, files[middle:])
            return
        if done.bad:
            self._set_aside(files, done.bad)
        if done.job is not None:
            self.commits += 1
            self.files += len(done.loaded)
            self.rows += done.rows
            self.bytes += sum(each.bytes for each in done.loaded)
            self._forget([each.path for each in done.loaded])
            self.table = again(self.table)

    def _tried(self, place: Landings, files: Sequence[LandedFile]) -> LoadedBatch:
        for attempt in range(ATTEMPTS):
            job_id = next_job(self.table.state)
            load = BatchLoad(
                self.table, self.options, place, self._lists, job_id, self.engine, self.session, self.on_progress
            )
            reached("services.ingest.before-load")
            try:
                return load.run(files)
            except Conflict:  # such as a change of columns, or rows with the same unique keys
                if attempt == ATTEMPTS - 1:
                    raise
                self.table = again(self.table)
        raise AssertionError("the loop returns or raises")

    def _set_aside(self, files: Sequence[LandedFile], bad: Mapping[str, str]) -> None:
        by_path = {each.path: each for each in files}
        now = Clock().now()
        found = [
            SetAside(path, by_path[path].tag, by_path[path].bytes, masked(reason)[:LONGEST], now, self.run_id)
            for path, reason in bad.items()
        ]
        if self.options.on_error == "fail":
            more = f", and {count(len(found) - 1, 'more file')}" if len(found) > 1 else ""
            raise InvalidInput(
                f"{found[0].reason}{more}",
                where=found[0].path,
                remedy="fix or remove the file; or set such files aside with `on_error: set_aside`",
            )
        self.not_loaded = self._aside.change(lambda now: now.with_files(found))
        self.problems += [FileProblem(each.path, each.reason) for each in found]
        reached("services.ingest.after-set-aside")

    def _forget(self, loaded: Sequence[str]) -> None:
        """Removes the loaded files from the record of files that are not loaded."""
        if self.not_loaded.files.keys() & set(loaded) or self.not_loaded.changed.keys() & set(loaded):
            self.not_loaded = self._aside.change(lambda now: now.without(loaded))

    def _brought_up_to_date(self) -> None:
        """Splits leaves above the limit and brings indexes up to date, as after any load."""
        if self.commits:
            table_id = self.table.entry.table_id
            split_after_load(self.table.store, self.table.root, table_id, self.on_progress)
            catch_up(self.table.store, self.table.root, table_id, self.on_progress)

    def _why(self, place: Landings) -> str:
        parts = [] if self.files else [f"no new file is at {place.files}"]
        if aside := self.not_loaded.files:
            first = next(iter(aside.values()))
            said = f"{first.path}: {first.reason[:SAID].rstrip()}{'…' if len(first.reason) > SAID else ''}"
            parts.append(f"{count(len(aside), 'file is', 'files are')} set aside ({said})")
        if changed := self.not_loaded.changed:
            parts.append(
                f"{count(len(changed), 'loaded file has', 'loaded files have')} changed ({next(iter(changed))})"
            )
        return "; ".join(parts)


def _same_content(file: LandedFile, known: LoadedFile) -> bool:
    """Returns whether a file on the disk has the content that was loaded. Such a file was touched or copied again."""
    if is_on_s3(file.path) or not known.content or file.bytes != known.bytes:
        return False
    try:
        return content_of(file.path) == known.content
    except OSError:
        return False


def _overtaken(table: OpenTable) -> Conflict:
    return Conflict(
        "other runs load files into the table at the same time, again and again",
        where=table.address,
        remedy="wait for them to end, then run it again",
    )
