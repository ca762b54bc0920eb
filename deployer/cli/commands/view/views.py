"""`deployer view refresh`, `plan` and `list`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.views.refresh.plan import RefreshPlan
    from deployer.views.refresh.results import RefreshJobResult

ViewName = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="The view as `database.name`; the name alone when it is the only one.",
        show_default=False,
    ),
]
SrcVersion = Annotated[
    int | None,
    typer.Option(metavar="N", help="Reflect this version of the view's one source; the newest by default."),
]
Full = Annotated[bool, typer.Option("--full", help="Compute all rows again.")]


def refresh(
    name: ViewName,
    src_version: SrcVersion = None,
    where: Annotated[
        str | None,
        typer.Option(
            metavar="SQL",
            help="Compute again only the view's rows that match this SQL condition, from the versions that the "
            "view reflects.",
            show_default=False,
        ),
    ] = None,
    full: Full = False,
    with_sources: Annotated[
        bool,
        typer.Option(
            "--with-sources", help="First refresh the views that this view reads, each after its own sources."
        ),
    ] = False,
    max_rows_per_fragment: Annotated[
        int | None, typer.Option(metavar="N", help="Write at most this many rows into a file.", show_default=False)
    ] = None,
    job_id: Annotated[
        str | None,
        typer.Option(
            help="Id of the job; a second refresh with the same id does nothing. Random by default.", show_default=False
        ),
    ] = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Refresh a materialized view: its rows become the result of its query over the newest rows of its tables.

    Changes since the last refresh are applied, as one version of the view; where that is not possible, all rows are
    computed again, and the reason is shown. `deployer view plan` shows it before.
    """
    from dataclasses import asdict

    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.console.progress_display import Meter
    from deployer.cli.inputs.table import changed
    from deployer.cli.summaries.refreshes import failures, refreshed
    from deployer.columns.fill.checkpoints import checked_job_id
    from deployer.platform.isolation.trusted_functions import TrustedFunctions
    from deployer.platform.system.clock import Clock
    from deployer.tables.open_table import find_entry, open_entry
    from deployer.views.refresh.create import in_order, sources_of_all
    from deployer.views.refresh.engine import queries_of
    from deployer.views.refresh.refresh import ViewJob
    from deployer.views.refresh.refresh import refresh as run
    from deployer.views.refresh.results import RefreshRequest

    request = RefreshRequest(src_version, where, max_rows_per_fragment, full)
    own_id = checked_job_id(job_id) if job_id else Clock().new_id()
    found: list[RefreshJobResult] = []
    with changed(project, stack, specs, name, alone=False) as target, Meter(as_json=as_json) as meter:
        queries = queries_of(target.root, TrustedFunctions.allowed())
        names = [target.name]
        if with_sources:
            names = in_order(sources_of_all(target.store, target.root, queries), target.name)
        for each in names:
            entry = find_entry(target.store.instance().tables.values(), each)
            opened = open_entry(target.store, target.root, entry)
            is_own = each == target.name
            job = ViewJob(
                opened, request if is_own else RefreshRequest(), own_id if is_own else Clock().new_id(), queries
            )
            found.append(run(job, meter.begin(each)))
    if as_json:
        print_json({**asdict(found[-1]), "before": [asdict(each) for each in found[:-1]]})
        return 0
    for done in found:
        stdout().print(refreshed(done))
        if failed := failures(done):
            note(failed)
    return 0


def plan(
    name: ViewName,
    src_version: SrcVersion = None,
    full: Full = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Show what a refresh of a view would read now, and why it would be a full one. No data file is opened."""
    from dataclasses import asdict

    from deployer.cli.console.output import print_json, stdout
    from deployer.cli.inputs.table import looked_at
    from deployer.platform.isolation.trusted_functions import TrustedFunctions
    from deployer.views.refresh.engine import queries_of
    from deployer.views.refresh.refresh import plan_refresh
    from deployer.views.refresh.results import RefreshRequest

    with looked_at(project, stack, specs, name) as opened:
        queries = queries_of(opened.root, TrustedFunctions.allowed())
        planned = plan_refresh(queries, opened, RefreshRequest(src_version, full=full))
    if as_json:
        print_json(asdict(planned))
        return 0
    for line in _described(planned):
        stdout().print(line)
    return 0


def list_views(
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """List the materialized views: their rows, the tables that they read, and what a refresh would do now."""
    from contextlib import closing

    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.platform.isolation.trusted_functions import TrustedFunctions
    from deployer.state import open_reader
    from deployer.views.refresh.engine import queries_of
    from deployer.views.refresh.listing import views_of

    root = root_to_read(project, stack, specs)
    with closing(open_reader(root)) as store:
        found = views_of(store, root, queries_of(root, TrustedFunctions.allowed()))
    if as_json:
        rows: list[dict[str, Any]] = [each.as_json() for each in found]
        print_json({"views": rows})
        return 0
    if not found:
        note("there are no views; `kind: View` in the specs declares them")
        return 0
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in ("view", "rows", "reads", "refresh"):
        shown.add_column(column, justify="right" if column == "rows" else "left", overflow="fold")
    for each in found:
        words = each.failure or (each.plan.mode if each.plan else "")
        shown.add_row(each.name, f"{each.rows:,}", ", ".join(each.sources), escape(words))
    stdout().print(shown)
    return 0


def _described(planned: RefreshPlan) -> list[str]:
    from deployer.platform.text.formatting import count, size

    if planned.mode == "none":
        return [f"{planned.table}: nothing to do: {planned.reason}"]
    why = f", since {planned.reason}" if planned.reason else ""
    lines = [f"{planned.table}: {'a full' if planned.mode == 'full' else 'an incremental'} refresh{why}"]
    lines.append(
        f"reads {count(planned.rows, 'row')} in {count(planned.fragments, 'fragment')} ({size(planned.bytes)}) of "
        f"{count(planned.commits, 'commit')}"
        if planned.mode == "incremental"
        else f"reads {count(planned.rows, 'row')} in {count(planned.fragments, 'fragment')} ({size(planned.bytes)})"
    )
    for table, version in planned.would_reflect.items():
        now = planned.reflects.get(table)
        lines.append(f"  {table}: {f'version {now} → ' if now else 'version '}{version}")
    return lines
