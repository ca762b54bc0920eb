"""`deployer ingest`: loads files into a table."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.inputs.text_options import (
    DateFormats,
    Delimiter,
    Encoding,
    NoHeader,
    NullValues,
    TimeZone,
    read_options,
)
from deployer.cli.options import (
    DEFAULT_STACK,
    AsJson,
    Detach,
    EngineName,
    ProjectDir,
    SpecsPath,
    StackName,
    TableName,
    refuse_without_aws,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from deployer.compute.spark.local import LocalCluster
    from deployer.platform.system.progress import Progress
    from deployer.services.triggers.after_load import AfterLoad
    from deployer.services.triggers.due import Due


class FileFormat(StrEnum):
    """The formats of files."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"
    LANCE = "lance"


class Mode(StrEnum):
    """The handling of the existing rows of the table."""

    APPEND = "append"
    UPSERT = "upsert"
    OVERWRITE = "overwrite"


class OnDuplicate(StrEnum):
    """The handling of rows whose unique keys exist already."""

    REJECT = "reject"
    SKIP = "skip"


def ingest(
    table: TableName,
    files: Annotated[
        list[str],
        typer.Argument(help="Files, folders or globs, here or at s3:// addresses; - is stdin.", metavar="FILE…"),
    ],
    format: Annotated[
        FileFormat | None,
        typer.Option("--format", "-f", help="By default, the format that the suffix shows.", show_default=False),
    ] = None,
    null_value: NullValues = None,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    no_header: NoHeader = False,
    date_format: DateFormats = None,
    timezone: TimeZone = None,
    ignore_extra: Annotated[
        bool, typer.Option("--ignore-extra", help="Ignore columns of the files that the table does not have.")
    ] = False,
    rename: Annotated[
        list[str] | None,
        typer.Option(
            help="Fill COLUMN from the field FIELD of the files; repeatable. See also `source:` of columns.",
            metavar="FIELD=COLUMN",
            show_default=False,
        ),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            help="Fill a column from a SQL expression over the files' fields, such as `upper(code) AS code`; "
            "repeatable. Other columns are filled as usual.",
            metavar="EXPR AS COLUMN",
            show_default=False,
        ),
    ] = None,
    missing_as_null: Annotated[
        bool, typer.Option("--missing-as-null", help="Load null into columns that no file and no folder has.")
    ] = False,
    bad_rows: Annotated[
        str | None,
        typer.Option(
            help="Set rows that do not fit aside in this new file, here or on S3 (.parquet, else JSON lines), with the "
            "reasons, and load the others.",
            show_default=False,
        ),
    ] = None,
    max_bad_rows: Annotated[
        str | None,
        typer.Option(
            help="With --bad-rows: load nothing if more rows are bad than this number, or this share, such as 5%.",
            metavar="N|N%",
            show_default=False,
        ),
    ] = None,
    mode: Annotated[
        Mode,
        typer.Option(
            help="append: rows are added; upsert: rows replace those with their keys, others are added; "
            "overwrite: the rows replace all others."
        ),
    ] = Mode.APPEND,
    on: Annotated[
        list[str] | None,
        typer.Option(
            help="With --mode upsert: match rows by this column; repeatable. The row keys by default.",
            metavar="COLUMN",
            show_default=False,
        ),
    ] = None,
    on_duplicate: Annotated[
        OnDuplicate,
        typer.Option(
            help="In a table with unique row keys, for rows whose keys the table or the load already has. reject: "
            "nothing is loaded, unless --bad-rows sets these rows aside; skip: the other rows are loaded."
        ),
    ] = OnDuplicate.REJECT,
    job_id: Annotated[
        str | None,
        typer.Option(help="Id of this load. A second load with the same id adds nothing.", show_default=False),
    ] = None,
    engine: Annotated[
        EngineName, typer.Option(help="auto: small files in this process, large ones with Spark.")
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
    no_indexes: Annotated[
        bool, typer.Option("--no-indexes", help="Do not update the table's indexes; a later load does.")
    ] = False,
    no_services: Annotated[
        bool, typer.Option("--no-services", help="Do not run the table's services that are due afterwards.")
    ] = False,
    detach: Detach = False,
    upload: Annotated[
        bool, typer.Option("--upload", help="On a cluster on AWS: upload files of this machine for the load first.")
    ] = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Load files into a table: all rows or none, as one version, sorted within each partition."""
    from dataclasses import asdict, replace
    from functools import partial

    from deployer.app.workspace import open_workspace
    from deployer.cli.console.output import note, print_json
    from deployer.cli.console.progress_display import Meter
    from deployer.cli.inputs.standard_input import refuse_standard_input, standard_input
    from deployer.cli.summaries.load import print_result
    from deployer.compute.clusters import local_cluster, remote_cluster
    from deployer.platform.files.temporary import remove_abandoned_folders
    from deployer.platform.system.progress import with_rows_read
    from deployer.tables.ingest.files.model import Format
    from deployer.tables.ingest.request import IngestRequest
    from deployer.tables.ingest.rows.bad_rows import BadRowLimit
    from deployer.tables.ingest.rows.field_map import rename_of
    from deployer.tables.ingest.rows.selects import select_of
    from spark_jobs.ingest import run

    remove_abandoned_folders()  # of loads that were killed
    options = read_options(null_value, delimiter, encoding, no_header, date_format, timezone)
    workspace = open_workspace(project, stack, specs)
    lake = workspace.lake()
    root, instance = workspace.root(lake), lake.instance
    choose = partial(local_cluster, instance.clusters, cluster, instance.address)
    remote = remote_cluster(instance.clusters, cluster, instance.address)
    if remote is None:
        refuse_without_aws(detach=detach, upload=upload)
    request = IngestRequest(
        tuple(files),
        format=Format(format.value) if format else None,
        options=options,
        ignore_extra=ignore_extra,
        bad_rows=bad_rows,
        job_id=job_id,
        engine=engine.value,
        indexes=not no_indexes,
        services=not no_services,
        max_bad_rows=None if max_bad_rows is None else BadRowLimit.parse(max_bad_rows),
        missing_as_null=missing_as_null,
        on_duplicate=on_duplicate.value,
        renames=tuple(map(rename_of, rename or ())),
        selects=tuple(map(select_of, select or ())),
        mode=mode.value,
        on=tuple(on or ()),
    )
    if remote is not None:
        from deployer.cli.remote.load import ingest_on

        refuse_standard_input(files)
        return ingest_on(remote, workspace, lake, table, request, as_json=as_json, detach=detach, upload=upload)
    with Meter(as_json=as_json) as meter, standard_input(files, format) as paths:

        def begun(engine: str, reason: str) -> None:
            where = "with Spark" if engine == "spark" else "in this process"
            if not as_json:
                note(f"loading {where}: {reason}")
            meter.begin(table)

        def report_progress(now: Progress) -> None:
            meter.report(table, with_rows_read(now))

        notes: list[str] = []

        def noted(text: str) -> None:
            notes.append(text)
            if not as_json:
                note(text)

        result = run(root, table, replace(request, paths=tuple(paths)), choose, report_progress, begun, noted)
    if not as_json:
        print_result(result, bad_rows)
    due = _services_after(root, result.table, choose, as_json=as_json) if request.services else []
    if as_json:
        print_json({**asdict(result), "services": [each.as_json() for each in due], "notes": notes})
    return 0


def _services_after(root: str, table: str, cluster: Callable[[], LocalCluster], *, as_json: bool) -> list[AfterLoad]:
    """Runs the services that are due after the load, and prints their results."""
    from functools import partial

    from deployer.cli.console.output import note
    from deployer.cli.console.progress_display import Meter
    from deployer.cli.summaries.service_run import print_done
    from deployer.services.triggers.after_load import run_due_services

    with Meter(as_json=as_json) as meter:

        def begun(due: Due) -> None:
            if not as_json:
                note(f"{due.service} is due: {due.why}")
            meter.begin(table, f"{table} {due.service}")

        done = run_due_services(root, table, cluster, partial(meter.report, table), begun)
    for each in () if as_json else done:
        if each.done is not None:
            print_done(each.done)
        else:
            note(f"{each.service} did not complete, and the rows are loaded: {each.failure}")
    return done
