"""`deployer column load`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.options import (
    DEFAULT_STACK,
    AsJson,
    Detach,
    EngineName,
    ProjectDir,
    SpecsPath,
    StackName,
    TableName,
    WriteSpec,
    refuse_without_aws,
)

if TYPE_CHECKING:
    pass


class Missing(StrEnum):
    """The value of rows that the source has no value for."""

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
        typer.Option("--format", help="By default, the format that the names of the files show.", show_default=False),
    ] = None,
    commit_granularity: Annotated[
        int | None,
        typer.Option(metavar="N", help="Commit after every N fragments, not once at the end.", show_default=False),
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Write at most this many fragments at the same time.")] = 8,
    engine: Annotated[
        EngineName, typer.Option(help="auto: small sources in this process, large ones with Spark.")
    ] = EngineName.AUTO,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Declared cluster that the load runs on, which may be on AWS. By default, Spark runs on the only "
            "local one, or the one called `default`.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    detach: Detach = False,
    upload: Annotated[
        bool, typer.Option("--upload", help="On a cluster on AWS: upload files of this machine for the load first.")
    ] = False,
    job_id: Annotated[
        str | None,
        typer.Option(
            help="Id of the job. A job with this id is resumed, or does nothing if it is done. Random by default.",
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

    Only these columns are written, beside the rows. Loads of rows, deletions, COMPACT and CLUSTER continue meanwhile.
    """
    from dataclasses import asdict
    from functools import partial

    from deployer.cli.console.output import print_json, stdout
    from deployer.cli.console.resumable_job import show_resumable_job
    from deployer.cli.inputs.table import changed
    from deployer.cli.inputs.table import write_spec as edit_spec
    from deployer.cli.summaries.column_load import print_load
    from deployer.columns.fill.checkpoints import checked_job_id
    from deployer.columns.load.load import load_columns
    from deployer.columns.load.request import checked_request
    from deployer.compute.clusters import local_cluster, remote_cluster
    from deployer.errors import InvalidInput
    from deployer.platform.system.clock import Clock

    request = checked_request(
        source,
        pk,
        columns,
        source_format=source_format.value if source_format else None,
        on_missing=on_missing.value,
        concurrency=concurrency,
        commit_granularity=commit_granularity,
        engine=engine.value,
    )
    own_id = checked_job_id(job_id) if job_id else Clock().new_id()
    written: list[str] = []
    with changed(project, stack, specs, table, alone=write_spec) as target:
        instance = target.lake.instance
        remote = remote_cluster(instance.clusters, cluster, instance.address)
        if remote is not None:
            from deployer.cli.remote.column_load import load_on

            if write_spec:
                raise InvalidInput(
                    "--write-spec is not for a load on a cluster on AWS",
                    remedy="run `deployer drift --write-spec` when it has ended",
                )
            return load_on(
                remote,
                target.workspace,
                target.lake,
                target.name,
                request,
                own_id,
                as_json=as_json,
                detach=detach,
                upload=upload,
            )
        refuse_without_aws(detach=detach, upload=upload)
        with show_resumable_job(own_id, target.name, "loading", resumes=bool(job_id), as_json=as_json) as shown:
            done = load_columns(
                target.opened(),
                request,
                own_id,
                shown.on_progress,
                is_new=not job_id,
                cluster=partial(local_cluster, instance.clusters, cluster, instance.address),
                on_engine=shown.on_engine,
            )
        if write_spec:
            written = edit_spec(target)
    if as_json:
        print_json({"table": target.name, **asdict(done), "written": written})
        return 0
    print_load(target.name, done, wrote_spec=write_spec)
    for file in written:
        stdout().print(f"edited {file}")
    return 0
