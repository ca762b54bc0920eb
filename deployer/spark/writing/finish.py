"""The driver's part of a write after its tasks have ended: it checks their reports, and makes one commit or none."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from deployer.datasets.commit.done_jobs import find_job
from deployer.datasets.dataset import open_dataset
from deployer.datasets.files.writer import WrittenFragment
from deployer.datasets.lance_transactions import metadata_at
from deployer.errors import Conflict, DeployerError
from deployer.live.reader import has_unique_keys
from deployer.platform.system.failpoints import reached
from deployer.services.triggers.after_load import run_due_services
from deployer.services.triggers.due import due_services
from deployer.spark.writing.cross_task_keys import BETWEEN, refuse_repeated, without_repeated
from deployer.spark.writing.file_notes import WriteNotes
from deployer.spark.writing.plan import WritePlan
from deployer.spark.writing.stores import store_at
from deployer.spark.writing.task import TaskMessage
from deployer.state.model.entities import Job
from deployer.tables.ingest.commit.append import commit_append
from deployer.tables.ingest.commit.lance_append import fence_appends
from deployer.tables.ingest.keys.unique import Admission, Duplicates
from deployer.tables.ingest.loading import LoadedFragments, refused_duplicates, with_duplicates_set_aside
from deployer.tables.ingest.rows.bad_row_files import remove_bad_rows, write_bad_rows
from deployer.tables.ingest.rows.bad_rows import BadRows, refusal, too_many
from deployer.tables.layout.indexes.build import catch_up
from deployer.tables.layout.partitions.split import split_after_load
from deployer.tables.open_table import OpenTable
from deployer.tables.rows.load import WrittenRows, commit_written


@dataclass(frozen=True, slots=True)
class Write:
    """One write whose tasks have ended. `owner` is the stream that it is a batch of, empty for other writes; `bad_rows`
    is the file for its bad rows, and `all_may_be_bad` allows that no row is good."""

    plan: WritePlan
    job_id: str
    owner: str = ""
    bad_rows: str | None = None
    all_may_be_bad: bool = False

    @property
    def notes(self) -> WriteNotes:
        return WriteNotes(self.plan.location, self.plan.scope)

    def commit(self, messages: Sequence[TaskMessage]) -> Job | None:
        """Commits the rows as one version, or nothing; nothing for a completed job id.

        Then removes the files of other attempts. Returns the job; None where there were no rows to write. Raises
        Refused and InvalidInput for rows that cannot be written, Conflict when the table was changed meanwhile.
        """
        store = store_at(self.plan.options.root)
        entry = store.instance().tables.get(self.plan.table_id)
        if entry is None or entry.status != "active":
            raise Conflict("the table was removed while rows were being written for it", where=self.plan.address)
        if known := find_job(store, self.plan.options.root, self.plan.table_id, self.job_id):
            self._remove_other_files(known)
            return known
        # a commit searches for versions that the log lacks; each search lists all versions
        table = OpenTable(store, self.plan.options.root, entry, store.table(entry.table_id))
        loaded = self._admitted(table, messages)
        job, already_done = self._committed(table, loaded.written)
        if already_done and job is not None:
            self._remove_other_files(job)
        else:
            self.notes.remove_files({f"data/{each.path}" for each in loaded.written})
        return job

    def _remove_other_files(self, job: Job) -> None:
        """Removes the noted files that the completed job did not commit. An earlier attempt of a batch that was killed
        right after its commit noted its files too. Where the job's files are no longer known, `table gc` removes the
        rest."""
        with contextlib.suppress(DeployerError):
            found = metadata_at(open_dataset(self.plan.location), job.lance_version)
            own = [info for info in found if info.job_id == job.job_id]
            if own:
                self.notes.remove_files({f"data/{each.path}" for info in own for each in info.files})

    def _committed(self, table: OpenTable, written: tuple[WrittenFragment, ...]) -> tuple[Job | None, bool]:
        """Returns the job (None where there was nothing to write), and whether another run did it."""
        options = self.plan.options
        if not written and options.mode != "overwrite":
            return None, False
        reached("spark.commit.checked")
        self.notes.begin_commit()
        try:
            if options.mode == "append":
                unique = self.plan.unique
                job: Job | None
                done = commit_append(
                    table.store,
                    table.root,
                    replace(table.entry, dataset=self.plan.dataset),
                    self.job_id,
                    "append",
                    written,
                    self.plan.schema,
                    admission=None if unique is None else Admission(unique.taken, self.plan.layout, written),
                )
                job, already_done = done.job, done.already_done
            else:
                if options.mode == "upsert" or has_unique_keys(table.state):
                    refuse_repeated(self.plan, written)
                rows = WrittenRows(tuple(written), self.plan.schema, self.plan.dataset)
                changed = commit_written(table, rows, options.mode, self.job_id)
                job, already_done = changed.job, changed.already_done
        except Conflict:
            if self.bad_rows is not None:
                remove_bad_rows(self.bad_rows)
            self.plan.require_columns(table.refreshed())
            raise
        reached("spark.commit.committed")
        return job, already_done

    def _admitted(self, table: OpenTable, messages: Sequence[TaskMessage]) -> LoadedFragments:
        """Returns the rows to commit. Raises the error that refuses the write. Bad rows are set aside."""
        plan, address = self.plan, self.plan.address
        for message in messages:
            if message.report.error is not None:
                raise message.report.error.as_error()
        messages = without_repeated(plan, messages)
        duplicates = reduce(Duplicates.joined, (each.duplicates for each in messages), Duplicates())
        loaded = LoadedFragments(
            tuple(fragment for each in messages for fragment in each.written),
            {each.number: each.report for each in messages},
            duplicates,
        )
        loaded = with_duplicates_set_aside(loaded)
        bad = _by_task(loaded)
        rows, bad_rows = sum(each.report.rows for each in messages), sum(each.rows for each in bad.values())
        if bad_rows and self.bad_rows is None:
            raise refusal(bad, address)
        if plan.unique is not None and (refused := refused_duplicates(loaded, plan.unique, rows, address)):
            raise refused
        if bad_rows and self.bad_rows is not None:
            if self.owner:
                remove_bad_rows(self.bad_rows)  # of an attempt of the same batch
            write_bad_rows(self.bad_rows, bad)
            limit = plan.options.max_bad_rows
            all_bad = bad_rows == rows and not self.all_may_be_bad
            if all_bad or (limit is not None and not limit.allows(bad_rows, rows)):
                raise too_many(bad, rows, limit, self.bad_rows, address)
        return loaded

    def abort(self) -> None:
        """Removes all files of the write, unless they are or may be committed: the process of the commit may have been
        killed, or may not know the outcome. `table gc` removes files of a commit that began and was not made."""
        store = store_at(self.plan.options.root)
        root, table_id = self.plan.options.root, self.plan.table_id
        if self.notes.has_begun_commit:
            with contextlib.suppress(DeployerError):
                fence_appends(self.plan.location, self.job_id)
                if (known := find_job(store, root, table_id, self.job_id)) is not None:
                    self._remove_other_files(known)
                elif self.job_id not in store.table(table_id).intents:
                    self.notes.remove_files()
            return
        self.notes.remove_files()

    def run_services(self) -> None:
        """Splits leaves that became too large, updates indexes and runs due services.

        The rows are committed already: a failure here is tried again after the next load.
        """
        options = self.plan.options
        with contextlib.suppress(DeployerError):
            store = store_at(options.root)
            split_after_load(store, options.root, self.plan.table_id)
            if options.indexes:
                catch_up(store, options.root, self.plan.table_id)
            entry = store.instance().tables[self.plan.table_id]
            table = OpenTable(store, options.root, entry, store.table(entry.table_id))
            if options.services and table.state.services and due_services(table):
                run_due_services(options.root, entry.full_name)


def _by_task(loaded: LoadedFragments) -> dict[str, BadRows]:
    found = {number: report.bad for number, report in sorted(loaded.reports.items())}
    return {_source(number): bad for number, bad in found.items() if bad.rows}


def _source(number: int) -> str:
    return "rows of several partitions" if number == BETWEEN else f"partition {number} of the DataFrame"
