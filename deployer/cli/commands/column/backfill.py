"""`deployer column backfill`, `plan` and `errors`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    refuse_without_aws,
)

if TYPE_CHECKING:
    from deployer.columns.backfill.failed_rows import ErrorRecord
    from deployer.columns.backfill.results import BackfillPlan
    from deployer.platform.isolation.trusted_functions import TrustedFunctions

ColumnName = Annotated[str, typer.Argument(metavar="COLUMN", help="The computed column.")]
Where = Annotated[
    str | None,
    typer.Option(
        metavar="SQL",
        help="SQL condition of the rows to compute; '1=1' is all rows. By default, the rows that are not computed yet.",
        show_default=False,
    ),
]
NumFrags = Annotated[
    int | None, typer.Option(metavar="N", help="Compute at most this many fragments of the table.", show_default=False)
]
SkipFrags = Annotated[int, typer.Option(metavar="N", help="Skip this many fragments at the beginning of the table.")]
TrustFunction = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MODULE:FUNCTION",
        help="Allow this function of the table to run here; repeatable. Functions that the specs name may run.",
        show_default=False,
    ),
]


def backfill(
    table: TableName,
    column: ColumnName,
    where: Where = None,
    num_frags: NumFrags = None,
    skip_frags: SkipFrags = 0,
    commit_granularity: Annotated[int, typer.Option(metavar="N", help="Commit after every N fragments.")] = 64,
    task_size: Annotated[
        int | None,
        typer.Option(
            metavar="ROWS",
            help="Split fragments of more rows into tasks; two tasks of the table for each worker by default.",
            show_default=False,
        ),
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Run at most this many tasks at the same time.")] = 8,
    engine: Annotated[
        EngineName, typer.Option(help="auto: up to 20 million rows in this process, more with Spark.")
    ] = EngineName.AUTO,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Declared cluster that the backfill runs on, which may be on AWS. By default, Spark runs on the "
            "only local one, or the one called `default`.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    detach: Detach = False,
    job_id: Annotated[
        str | None,
        typer.Option(
            help="Id of the job. A job with this id is resumed, or does nothing if it is done. Random by default.",
            show_default=False,
        ),
    ] = None,
    trust_function: TrustFunction = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Compute a column for the rows that lack it, or that another version of its definition computed.

    Only this column is written, beside the rows. Loads of rows, deletions, COMPACT and CLUSTER continue meanwhile. Rows
    for which the function fails, and that it skips, are null and listed by `deployer column errors`. Columns that the
    same call of a function makes are computed together.
    """
    from dataclasses import asdict
    from functools import partial

    from deployer.cli.console.output import print_json
    from deployer.cli.console.resumable_job import show_resumable_job
    from deployer.cli.inputs.table import changed
    from deployer.cli.summaries.column_backfill import print_backfill
    from deployer.columns.backfill.admission import admit
    from deployer.columns.backfill.backfill import BackfillJob
    from deployer.columns.backfill.backfill import backfill as compute
    from deployer.columns.backfill.request import checked_backfill
    from deployer.columns.backfill.resolve import definition_of, finder
    from deployer.columns.fill.checkpoints import checked_job_id
    from deployer.compute.clusters import local_cluster, remote_cluster
    from deployer.platform.system.clock import Clock

    request = checked_backfill(
        column,
        where=where,
        num_frags=num_frags,
        skip_frags=skip_frags,
        task_size=task_size,
        commit_granularity=commit_granularity,
        concurrency=concurrency,
        engine=engine.value,
    )
    own_id = checked_job_id(job_id) if job_id else Clock().new_id()
    with changed(project, stack, specs, table, alone=False) as target:
        trusted = trusted_beside(trust_function, project, stack, specs)
        instance = target.lake.instance
        remote = remote_cluster(instance.clusters, cluster, instance.address)
        if remote is not None:
            from deployer.cli.remote.column_backfill import backfill_on

            return backfill_on(
                remote,
                target.workspace,
                target.lake,
                target.name,
                request,
                trusted,
                own_id,
                as_json=as_json,
                detach=detach,
            )
        refuse_without_aws(detach=detach)
        choose = partial(local_cluster, instance.clusters, cluster, instance.address)
        find = finder(trusted)
        opened = target.opened()
        admit(opened, definition_of(opened, column, None, find), None, None, cluster=cluster)
        with show_resumable_job(own_id, target.name, "computing", resumes=bool(job_id), as_json=as_json) as shown:
            job = BackfillJob(opened, request, own_id, not job_id, cluster=choose, on_engine=shown.on_engine)
            done = compute(job, lambda of: definition_of(of, column, None, find), shown.on_progress)
    if as_json:
        print_json({"table": target.name, **asdict(done)})
        return 0
    print_backfill(target.name, done)
    return 0


def plan(
    table: TableName,
    column: ColumnName,
    where: Where = None,
    num_frags: NumFrags = None,
    skip_frags: SkipFrags = 0,
    trust_function: TrustFunction = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Show what a backfill would compute now: rows, fragments, commits, and the time that the last one suggests.

    Nothing is computed. With --where its columns are read once.
    """
    from dataclasses import asdict

    from deployer.cli.console.output import print_json, stdout
    from deployer.cli.inputs.table import looked_at
    from deployer.columns.backfill.plan import plan_backfill
    from deployer.columns.backfill.request import checked_backfill
    from deployer.columns.backfill.resolve import definition_of, finder

    request = checked_backfill(column, where=where, num_frags=num_frags, skip_frags=skip_frags)
    with looked_at(project, stack, specs, table) as opened:
        find = finder(trusted_beside(trust_function, project, stack, specs))
        planned = plan_backfill(opened, request, definition_of(opened, column, None, find))
    if as_json:
        print_json({"table": opened.entry.full_name, **asdict(planned)})
        return 0
    for line in _described(planned):
        stdout().print(line)
    return 0


def errors(
    table: TableName,
    job_id: Annotated[
        str | None, typer.Option(help="Only errors of this job; by default, of all jobs.", show_default=False)
    ] = None,
    column: Annotated[
        str | None,
        typer.Option("--column", "-c", metavar="NAME", help="Only errors of this column.", show_default=False),
    ] = None,
    error_type: Annotated[
        str | None,
        typer.Option("--type", metavar="NAME", help="Only errors of this type of exception.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option(help="Show at most this many; 0 for all that are kept.", min=0)] = 20,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """List rows for which a function failed and that were skipped: by backfills of a column, or refreshes of a view.

    Of a view, the column is the function's name in the query, and the row is that of the source.
    """
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.inputs.table import looked_at
    from deployer.columns.backfill.failed_rows import errors_of, jobs_with_errors, of_kind
    from deployer.columns.fill.checkpoints import checked_job_id
    from deployer.state.model.times import as_document

    with looked_at(project, stack, specs, table) as opened:
        table_id = opened.entry.table_id
        jobs = jobs_with_errors(opened.root, table_id) if job_id is None else [checked_job_id(job_id)]
        every = [record for each in jobs for record in errors_of(opened.root, table_id, each).records]
        found = of_kind(every, column, error_type)
    listed = found[: limit or None]
    if as_json:
        print_json({"table": opened.entry.full_name, "errors": [as_document(each) for each in listed]})
        return 0
    if not found:
        note(f"no row of {opened.entry.full_name} is recorded as failed")
        return 0
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("job", "column", "row", "error"):
        shown.add_column(name, overflow="fold")
    for each in listed:
        key = ", ".join(f"{name} {value}" for name, value in (each.row_key or {}).items())
        shown.add_row(
            each.job_id,
            each.column_name,
            escape(key or _place(each)),
            escape(f"{each.error_type}: {each.message}"),
        )
    stdout().print(shown)
    if len(listed) < len(found):
        note(f"{len(found) - len(listed):,} more: give --limit 0 for all")
    return 0


def _place(record: ErrorRecord) -> str:
    if record.row_address is not None:
        return f"address {record.row_address}"
    return "of the source" if record.row_id is None else f"of the source, id {record.row_id}"


def trusted_beside(names: list[str] | None, project: Path | None, stack: str, specs: Path | None) -> TrustedFunctions:
    """Returns the functions that may run: the given ones, and those that the specs of the project name.

    Modules in the project's folder become importable; installed ones come first.
    """
    import sys

    from deployer.app.workspace import open_workspace
    from deployer.errors import DeployerError
    from deployer.platform.isolation.trusted_functions import TrustedFunctions, is_function_name
    from deployer.specs.types.computed import ComputedByUdf

    workspace = open_workspace(project, stack, specs)
    sys.path.append(str(workspace.dir))
    declared: list[Any] = []
    try:
        declared = [column.computed for table in workspace.lake().tables for column in table.columns]
    except DeployerError:  # specs that cannot be read do not name any function
        declared = []
    own = [each.udf for each in declared if isinstance(each, ComputedByUdf) and is_function_name(each.udf)]
    return TrustedFunctions.allowed([*(names or ()), *own])


def _described(plan: BackfillPlan) -> list[str]:
    from deployer.platform.text.formatting import count, percentage

    of = f" of {plan.total_fragments:,}" if plan.total_fragments else ""
    lines = [
        f"{plan.column} version {plan.version}: {count(plan.rows, 'row')} to compute in {plan.fragments:,}{of} "
        f"fragments, as {count(plan.commits, 'commit')}"
    ]
    if plan.seconds is not None:
        lines.append(f"at the rate of the last backfill this takes {plan.seconds:,.0f} s")
    for version, rows in sorted(plan.by_version.items(), reverse=True):
        share = percentage(rows / plan.total_rows) if plan.total_rows else "0%"
        lines.append(f"{share} by version {version}" if version else f"{share} not computed")
    return lines
