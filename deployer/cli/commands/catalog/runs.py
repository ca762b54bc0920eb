"""`deployer catalog runs`: the runs of datasets' maintenance."""

from __future__ import annotations

from typing import Annotated

import typer

from deployer.cli.commands.catalog.options import Root
from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName


def runs(
    dataset: Annotated[
        str | None, typer.Argument(metavar="[DATASET]", help="The dataset's name; all datasets unless given.")
    ] = None,
    root: Root = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """List the runs of datasets' maintenance, the newest first: COMPACT, with search indexes, and CLEAN."""
    from contextlib import closing

    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from deployer.catalog.datasets.model.registry import Datasets
    from deployer.catalog.datasets.upkeep import maintenance_runs
    from deployer.cli.commands.catalog.options import root_of
    from deployer.cli.console.output import note, print_json, stdout
    from deployer.platform.system.clock import utc
    from deployer.state import open_store
    from deployer.state.model.times import as_document

    address = root_of(root, project, stack, specs)
    with closing(open_store(address)) as store:
        datasets = Datasets(store, address)
        chosen = list(datasets.all()) if dataset is None else [datasets.by_name(dataset)]
        found = [(each.name, run) for each in chosen for run in maintenance_runs(store, each)]
    found.sort(key=lambda pair: (-pair[1].queued_at, pair[0]))
    if as_json:
        print_json({"runs": [{"dataset": name} | as_document(run) for name, run in found]})
        return 0
    if not found:
        note("there are no runs yet; `deployer catalog maintain` begins them")
        return 0
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in ("dataset", "run", "service", "status", "began (UTC)", "why"):
        shown.add_column(column, overflow="fold")
    for name, run in found:
        began = utc(run.started_at or run.queued_at)
        shown.add_row(name, run.run_id, run.service, run.status, began, run.reason or run.cause)
    stdout().print(shown)
    return 0
