"""The job that loads files into a table: small files in this process, large ones with Spark.

As a Spark application: `spark-submit spark_jobs/ingest.py --root ROOT --table DATABASE.NAME [options] FILE…`; it then
uses the session that spark-submit made.
"""

from __future__ import annotations

import argparse
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from deployer.compute.spark.failures import job_failed
from deployer.compute.spark.local import LocalCluster, job_session
from deployer.compute.spark.progress import Tasks, run_job
from deployer.datasets.commit.done_jobs import find_job
from deployer.errors import DeployerError, Interrupted
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.platform.system.signals import TERMINATED, Terminated, raising_terminated
from deployer.services.triggers.after_load import run_due_services
from deployer.state import open_store
from deployer.tables.ingest.files.model import Format, ReadOptions
from deployer.tables.ingest.job import ingest
from deployer.tables.ingest.loading import LoadedFragments, LoadPlan
from deployer.tables.ingest.request import IngestRequest, IngestResult
from deployer.tables.ingest.rows.bad_rows import BadRowLimit
from deployer.tables.ingest.rows.field_map import rename_of
from deployer.tables.ingest.rows.selects import select_of
from deployer.tables.ingest.rows.time_texts import date_format
from deployer.tables.ingest.spark import SparkLoad, first_error
from deployer.tables.open_table import find_entry, open_entry
from deployer.tables.rows.load import commit_load
from spark_jobs.program import run_program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deployer.state.model.entities import TableEntry
    from deployer.state.store import StateStore


def run(
    root: str,
    table: str,
    request: IngestRequest,
    cluster: Callable[[], LocalCluster] = LocalCluster,
    on_progress: OnProgress = no_progress,
    on_engine: Callable[[str, str], None] = lambda _engine, _reason: None,
    on_note: Callable[[str], None] = lambda _note: None,
) -> IngestResult:
    """Loads files into `table` (`database.name`, or only the name if it is unique) of the instance at `root`.

    `cluster` is called when the load needs Spark; an exception that it raises ends the load, and nothing is written.
    Raises Interrupted for Ctrl-C and SIGTERM, with the outcome of the load.
    """
    job_id = request.job_id or uuid.uuid4().hex

    def with_spark(plan: LoadPlan, progress: OnProgress) -> LoadedFragments:
        return load_with_spark(job_session(cluster), plan, progress)

    with closing(open_store(root)) as store:
        opened = open_entry(store, root, find_entry(store.instance().tables.values(), table))
        try:
            with raising_terminated():
                return ingest(opened, request, with_spark, on_progress, on_engine, on_note, job_id, commit_load)
        except (KeyboardInterrupt, Interrupted) as stop:
            raise _interrupted(store, root, opened.entry, job_id, stop) from None


def _interrupted(store: StateStore, root: str, entry: TableEntry, job_id: str, stop: BaseException) -> Interrupted:
    """Returns the error for a load that `stop` ended. It says whether the rows were loaded, from the table's log and
    dataset."""
    again = f"run it again with --job-id {job_id}"
    try:
        job = find_job(store, root, entry.table_id, job_id)
    except DeployerError as failure:
        what, remedy = f"whether it was loaded is unknown ({failure.what})", f"{again}: it adds nothing twice"
    else:
        what = "nothing was loaded" if job is None else f"it was loaded as version {job.lance_version}"
        remedy = again if job is None else ""
    reason = stop.what if isinstance(stop, Interrupted) else "interrupted"
    error = Interrupted(f"{reason}; {what}", where=entry.address, remedy=remedy)
    if isinstance(stop, Terminated):
        error.exit_code = TERMINATED
    return error


def load_with_spark(session: SparkSession, plan: LoadPlan, on_progress: OnProgress) -> LoadedFragments:
    """Runs the load on a session and reports its progress. Cancels the load when bad rows refuse it, or when it is
    interrupted."""
    load = SparkLoad(session, plan)
    group = f"ingest-{uuid.uuid4().hex[:8]}"
    stopped: list[Interrupted] = []

    def watch(tasks: Tasks) -> None:
        try:
            on_progress(Progress("loading", tasks.done, tasks.total, "tasks", load.rows))
        except Interrupted as stop:
            stopped.append(stop)
        if stopped or load.refused:
            session.sparkContext.cancelJobGroup(group)

    try:
        loaded = run_job(session, group, f"ingest into {plan.layout.location}", load.run, watch)
    except Exception as failure:
        if stopped:
            raise stopped[0] from None
        if not load.refused:
            raise job_failed(failure, plan.layout.location) from failure
        loaded = LoadedFragments((), load.reports)
    if error := first_error(dict(loaded.reports)):
        raise error
    return loaded


def arguments_of(root: str, table: str, request: IngestRequest) -> tuple[str, ...]:
    """Returns the command line with which `main` loads a request that has a job id."""
    options = {
        "--root": root,
        "--table": table,
        "--format": request.format,
        "--delimiter": request.options.delimiter,
        "--encoding": request.options.encoding,
        "--timezone": request.options.timezone,
        "--bad-rows": request.bad_rows,
        "--max-bad-rows": request.max_bad_rows,
        "--job-id": request.job_id,
        "--engine": request.engine,
        "--on-duplicate": request.on_duplicate,
        "--mode": None if request.mode == "append" else request.mode,
    }
    flags = {
        "--no-header": not request.options.header,
        "--ignore-extra": request.ignore_extra,
        "--missing-as-null": request.missing_as_null,
        "--no-indexes": not request.indexes,
        "--no-services": not request.services,
    }
    # Joined by =, so that a value may begin with a dash.
    return (
        *(f"{name}={value}" for name, value in options.items() if value is not None),
        *(f"--null-value={text}" for text in request.options.null_values),
        *(f"--date-format={column or ''}={form}" for column, form in request.options.date_formats),
        *(f"--rename={old}={new}" for old, new in request.renames),
        *(f"--select={select}" for select in request.selects),
        *(f"--on={name}" for name in request.on),
        *(name for name, wanted in flags.items() if wanted),
        "--",
        *request.paths,
    )


def read_options(given: argparse.Namespace) -> ReadOptions:
    """Returns the options for reading text, from the job's command line."""
    nulls = tuple(given.null_value) if given.null_value else ("",)
    formats = tuple(date_format(text) for text in given.date_format or ())
    return ReadOptions(nulls, given.delimiter, given.encoding, not given.no_header, formats, given.timezone)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line of the job. Prints its result as JSON, or an error message; returns the exit code."""
    parser = argparse.ArgumentParser(prog="ingest", description="Load files into a table.")
    parser.add_argument("--root", required=True, help="the instance's root")
    parser.add_argument("--table", required=True, help="database.name")
    parser.add_argument("--format", choices=[each.value for each in Format])
    parser.add_argument("--null-value", action="append", help="a CSV text that is null; repeatable (default: empty)")
    parser.add_argument("--delimiter")
    parser.add_argument("--encoding", default="utf-8")
    parser.add_argument("--date-format", action="append", help="[COLUMN=]FORMAT of dates and times; repeatable")
    parser.add_argument("--timezone", help="of times without an offset")
    parser.add_argument("--no-header", action="store_true", help="the first line of CSV is a row")
    parser.add_argument("--ignore-extra", action="store_true", help="leave out columns that the table does not have")
    parser.add_argument("--rename", action="append", help="FIELD=COLUMN: the column that a field fills; repeatable")
    parser.add_argument("--select", action="append", help="EXPR AS COLUMN: a column by SQL; repeatable")
    parser.add_argument("--missing-as-null", action="store_true", help="load null into columns that no file has")
    parser.add_argument("--bad-rows", help="set rows that do not fit aside in this file, or at this s3:// address")
    parser.add_argument("--max-bad-rows", help="more bad rows than this number, or share such as 5%%, refuse the load")
    parser.add_argument("--on-duplicate", choices=["reject", "skip"], default="reject", help="of unique row keys")
    parser.add_argument("--mode", choices=["append", "upsert", "overwrite"], default="append")
    parser.add_argument("--on", action="append", help="a column that an upsert matches rows by; repeatable")
    parser.add_argument("--job-id")
    parser.add_argument("--engine", choices=["auto", "spark", "driver"], default="auto")
    parser.add_argument("--memory", default="2g", help="of a local session")
    parser.add_argument("--cores", type=int, help="of a local session")
    parser.add_argument("--no-indexes", action="store_true", help="do not bring the table's indexes up to date")
    parser.add_argument("--no-services", action="store_true", help="leave the table's services that are due")
    parser.add_argument(
        "--tell", help="name of this attempt, under which progress and outcome are stored below the root"
    )
    parser.add_argument("files", nargs="+")
    given = parser.parse_args(argv)
    request = IngestRequest(
        tuple(given.files),
        format=Format(given.format) if given.format else None,
        options=read_options(given),
        ignore_extra=given.ignore_extra,
        bad_rows=given.bad_rows,
        job_id=given.job_id,
        engine=given.engine,
        indexes=not given.no_indexes,
        services=not given.no_services,
        max_bad_rows=None if given.max_bad_rows is None else BadRowLimit.parse(given.max_bad_rows),
        missing_as_null=given.missing_as_null,
        on_duplicate=given.on_duplicate,
        renames=tuple(map(rename_of, given.rename or ())),
        selects=tuple(map(select_of, given.select or ())),
        mode=given.mode,
        on=tuple(given.on or ()),
    )

    def work(on_progress: OnProgress) -> Mapping[str, Any]:
        sizes = LocalCluster(given.cores, given.memory)
        notes: list[str] = []
        result = run(given.root, given.table, request, lambda: sizes, on_progress, on_note=notes.append)
        due = run_due_services(given.root, result.table, lambda: sizes, on_progress) if request.services else []
        return {**asdict(result), "services": [each.as_json() for each in due], "notes": notes}

    return run_program(given.root, given.tell, work)


if __name__ == "__main__":
    sys.exit(main())
