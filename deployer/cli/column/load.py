"""`deployer column load`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName, TableName, WriteSpec

if TYPE_CHECKING:
    from deployer.columns.load.load import LoadResult
    from deployer.platform.system.progress import Progress


class Missing(StrEnum):
    """What rows get that the source has no value for."""

    CARRY = "carry"
    NULL = "null"
    ERROR = "error"


class SourceFormat(StrEnum):
    """The format of the files."""

    PARQUET = "parquet"
    LANCE = "lance"
    IPC = "ipc"


def load(
    table: TableName,
    source: Annotated[
        list[str],
        typer.Argument(help="Files, folders, globs or s3:// addresses; a Lance dataset alone.", metavar="SOURCE…"),
    ],
    pk: Annotated[
        str, typer.Option("--pk", help="The column by which rows of the source and of the table are matched.")
    ],
    columns: Annotated[
        list[str], typer.Option("--columns", "-c", metavar="NAME", help="A column to load; repeatable.")
    ],
    on_missing: Annotated[
        Missing, typer.Option(help="Rows without a match keep their value, get null, or stop the load.")
    ] = Missing.CARRY,
    source_format: Annotated[
        SourceFormat | None,
        typer.Option("--format", help="By the names of the files unless given.", show_default=False),
    ] = None,
    commit_granularity: Annotated[
        int | None,
        typer.Option(metavar="N", help="Commit after every N fragments, not once at the end.", show_default=False),
    ] = None,
    concurrency: Annotated[int, typer.Option(help="At most so many fragments at the same time.")] = 8,
    job_id: Annotated[
        str | None,
        typer.Option(
            help="Resumes the job of that id, and does nothing when it is done; random unless given.",
            show_default=False,
        ),
    ] = None,
    write_spec: WriteSpec = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Load columns of files into the rows with the same primary key; columns that the table lacks are added.

    Only these columns are written, beside the rows. Loads of rows, deletions, COMPACT and CLUSTER go on meanwhile.
    """
    from dataclasses import asdict

    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.console.progress_display import Meter
    from deployer.cli.inputs.table import changed
    from deployer.cli.inputs.table import write_spec as edit_spec
    from deployer.columns.fill.checkpoints import checked_job_id
    from deployer.columns.load.load import load_columns
    from deployer.columns.load.request import checked_request
    from deployer.errors import DeployerError
    from deployer.platform.system.clock import Clock

    request = checked_request(
        source,
        pk,
        columns,
        source_format=source_format.value if source_format else None,
        on_missing=on_missing.value,
        concurrency=concurrency,
        commit_granularity=commit_granularity,
    )
    own_id = checked_job_id(job_id) if job_id else Clock().new_id()
    written: list[str] = []
    with changed(project, stack, specs, table, alone=write_spec) as target:
        with Meter(as_json=as_json) as meter:
            meter.begin(target.name, target.name)

            def report_progress(now: Progress) -> None:
                meter.tell(target.name, now.doing, now.done, now.total, now.unit)

            try:
                done = load_columns(target.opened(), request, own_id, report_progress, is_new=not job_id)
            except (DeployerError, KeyboardInterrupt):
                if not as_json:
                    note(f"the id of the job is {own_id}: `--job-id {own_id}` resumes what it has begun")
                raise
        if write_spec:
            written = edit_spec(target)
    if as_json:
        print_json({"table": target.name, **asdict(done), "written": written})
        return 0
    stdout().print(_summary(target.name, done))
    if done.added and not write_spec:
        note("the new columns are drift until the spec declares them: `--write-spec`, or `deployer drift --write-spec`")
    for file in written:
        stdout().print(f"edited {file}")
    return 0


def _summary(name: str, done: LoadResult) -> str:
    from deployer.platform.text.formatting import count, size

    if done.already_done:
        return f"{name}: job {done.job_id} was done before; nothing was written"
    stats = done.stats
    written = f"{count(stats.rows, 'row')} in {count(stats.fragments, 'fragment')}, {size(stats.bytes)}"
    reused = f", {stats.reused:,} of them from checkpoints" if stats.reused else ""
    added = f"; added {', '.join(done.added)}" if done.added else ""
    return f"{name}: loaded {', '.join(done.columns)} of {written}{reused}{added} (job {done.job_id})"
