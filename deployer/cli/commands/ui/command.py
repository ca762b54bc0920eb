"""`deployer ui`: shows the lake in a browser."""

from __future__ import annotations

from typing import Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, ProjectDir, SpecsPath, StackName


def ui(
    port: Annotated[
        int, typer.Option(help="Port to listen at, on loopback; 0: any that is free.", min=0, max=65535)
    ] = 8642,
    allow_runs: Annotated[
        bool, typer.Option("--allow-runs", help="Let pages queue and cancel runs of services. Read-only by default.")
    ] = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
) -> int:
    """Show the lake in a browser, until Ctrl-C: tables, history, health, plan, drift, cost, and previews of rows.

    Prints the URL, which only this machine reaches. Nothing is changed unless --allow-runs is given.
    """
    import datetime as dt
    from contextlib import closing

    from deployer.app.workspace import open_workspace
    from deployer.cli.console.output import note, stdout
    from deployer.cli.console.progress_display import working
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.live.reader import live_instance
    from deployer.state import open_reader
    from deployer.ui.lake import LakeView
    from deployer.ui.pages import Site
    from deployer.ui.server import HOST, bound, server

    workspace = open_workspace(project, stack, specs)
    root = root_to_read(project, stack, specs)
    with closing(open_reader(root)) as store, bound(port) as (listening, chosen):
        instance = live_instance(store.instance())
        name = instance.name if instance is not None else workspace.project.name
        view = LakeView(store, root)
        site = Site(view, workspace, name, allow_runs)
        with working("reading the lake"):
            view.prepare(dt.datetime.now(dt.UTC))
            site.datasets.prepare()
        stdout().print(f"http://{HOST}:{chosen}/", soft_wrap=True)
        note("press Ctrl-C to end it")
        server(site, chosen).run(sockets=[listening])
    return 0
