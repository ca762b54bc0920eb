"""`deployer job list`, `show` and `cancel`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName, Watch

if TYPE_CHECKING:
    from deployer.columns.job_list import Job

JobId = Annotated[str, typer.Argument(metavar="JOB", help="The id of the job.")]
OfTable = Annotated[
    str | None,
    typer.Option(
        "--table", metavar="TABLE", help="Only jobs of this table; by default, of all tables.", show_default=False
    ),
]


def list_jobs(
    table: OfTable = None,
    limit: Annotated[int, typer.Option(help="Show at most this many; 0 for all that are kept.", min=0)] = 20,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    watch: Watch = False,
    as_json: AsJson = False,
) -> int:
    """List jobs: backfills, loads of columns and refreshes of views, the newest first."""
    from functools import partial

    from deployer.cli.console.watch import watched

    show = partial(_list, table, limit, project, stack, specs, as_json=as_json)
    return watched(show, as_json=as_json) if watch else show()


def _list(table: str | None, limit: int, project: Path | None, stack: str, specs: Path | None, *, as_json: bool) -> int:
    from contextlib import closing

    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.columns.job_list import jobs_of
    from deployer.platform.system.clock import utc
    from deployer.state import open_reader
    from deployer.state.model.times import as_document
    from deployer.tables.open_table import find_entry

    with closing(open_reader(root_to_read(project, stack, specs))) as store:
        entries = [each for each in store.instance().tables.values() if each.status == "active"]
        chosen = [find_entry(entries, table)] if table else entries
        found = [job for entry in chosen for job in jobs_of(entry, store.table(entry.table_id))]
    found.sort(key=lambda job: (job.queued_at, job.run_id), reverse=True)
    listed = found[: limit or None]
    if as_json:
        print_json({"jobs": [as_document(each) for each in listed]})
        return 0
    if not found:
        note("there are no jobs yet")
        return 0
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("job", "table", "kind", "columns", "status", "began (UTC)"):
        shown.add_column(name, overflow="fold")
    for name in ("rows", "failed"):
        shown.add_column(name, justify="right")
    for job in listed:
        began = utc(job.started_at or job.queued_at)
        rows = job.rows if job.is_over else job.done
        columns, failed = ", ".join(job.columns), f"{job.errors:,}" if job.errors else ""
        shown.add_row(job.job_id, job.table, job.kind, columns, _status(job), began, f"{rows:,}", failed)
    stdout().print(shown)
    if len(listed) < len(found):
        note(f"{len(found) - len(listed):,} more: give --limit 0 for all")
    return 0


def show(
    job: JobId,
    table: OfTable = None,
    wait: Annotated[
        bool, typer.Option("--follow", "-f", help="Show the progress of the job until it has ended.")
    ] = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Show one job: its state, how many rows it writes a second, and when it is expected to end.

    Exit codes: 0 shown; 1 an error, or a followed job that failed.
    """
    import time
    from contextlib import closing

    from deployer.cli.console.output import print_json, stdout
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.columns.job_list import find_job, follow
    from deployer.state import open_reader
    from deployer.state.model.times import as_document
    from deployer.tables.open_table import find_entry

    with closing(open_reader(root_to_read(project, stack, specs))) as store:
        entry, found = find_job(store, job, find_entry(store.instance().tables.values(), table) if table else None)
        for now in follow(store, entry, job, time.sleep) if wait else [found]:
            found = now
            if wait and not as_json:
                stdout().print(_line(now))
    if as_json:
        print_json(as_document(found))
    elif not wait:
        for line in _lines(found):
            stdout().print(line)
    return 1 if wait and found.status == "FAILED" else 0


def cancel(
    job: JobId,
    table: OfTable = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Ask a job to end. What it has committed stays, and its id resumes it."""
    from deployer.cli.console.output import note, print_json
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.cli.inputs.table import changed
    from deployer.columns.job_list import cancel_job, find_job
    from deployer.state import open_reader
    from deployer.tables.open_table import find_entry

    reader = open_reader(root_to_read(project, stack, specs))
    try:
        entry, _ = find_job(reader, job, find_entry(reader.instance().tables.values(), table) if table else None)
    finally:
        reader.close()
    with changed(project, stack, specs, entry.full_name, alone=False) as target:
        requested = cancel_job(target.store, target.entry, job)
    if as_json:
        print_json({"job_id": job, "table": entry.full_name, "cancelled": requested})
    elif requested:
        note(f"job {job} was asked to end; `deployer job show {job} --follow` shows when it has")
    else:
        note(f"job {job} is not running")
    return 0


def _status(job: Job) -> str:
    return f"{job.status} (cancel requested)" if job.cancel_requested and not job.is_over else job.status


def _line(job: Job) -> str:
    """Returns the state of a job as one line."""
    from deployer.platform.text.formatting import count

    if job.is_over:
        failed = f", {count(job.errors, 'row')} failed" if job.errors else ""
        return f"{job.status}: {count(job.rows, 'row')}{failed}" + (f" ({job.reason})" if job.reason else "")
    of = "" if job.total is None else f" of {job.total:,}"
    rate = "" if job.rows_per_second is None else f", {job.rows_per_second:,.0f} rows/s"
    left = "" if job.seconds_left is None else f", about {job.seconds_left:,.0f} s left"
    return f"{_status(job)}: {job.doing or 'starting'}: {job.done:,}{of} rows{rate}{left}"


def _lines(job: Job) -> list[str]:
    from deployer.platform.system.clock import utc

    lines = [f"job {job.job_id}: {job.kind} of {', '.join(job.columns)} of {job.table}", _line(job)]
    lines.append(f"began {utc(job.started_at or job.queued_at)} UTC by {job.author}, run {job.run_id}")
    if job.ended_at is not None:
        lines.append(f"ended {utc(job.ended_at)} UTC")
    if job.runs > 1:
        lines.append(f"the {job.runs}th run of the job")
    return lines
