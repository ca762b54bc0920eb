"""`deployer catalog serve`: serves the tables of an instance to the client of rerun-sdk."""

from __future__ import annotations

from typing import Annotated

import typer

from deployer.cli.commands.catalog.options import Root
from deployer.cli.options import DEFAULT_STACK, ProjectDir, SpecsPath, StackName


def serve(
    root: Root = None,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen at. Anyone who can reach an address other than loopback may read and write."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen at; 0: any that is free.", min=0, max=65535)] = 51234,
    until_input_ends: Annotated[bool, typer.Option("--until-input-ends", hidden=True)] = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
) -> int:
    """Serve the tables to rerun.catalog.CatalogClient of rerun-sdk 0.28, until Ctrl-C.

    Prints the URL that clients connect to. Clients read tables, and append to, overwrite and upsert them by the same
    commits as `ingest`.
    """
    import signal
    import sys
    import threading
    from contextlib import closing

    from deployer.catalog.serving.server import served
    from deployer.cli.commands.catalog.options import root_of
    from deployer.cli.console.output import note, stdout
    from deployer.state import open_store

    address = root_of(root, project, stack, specs)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    with closing(open_store(address)) as store, served(store, address, host, port) as url:
        stdout().print(url, soft_wrap=True)
        if host not in ("127.0.0.1", "localhost", "::1"):
            note(f"everyone who can reach {host} may read and change the tables of {address}")
        if until_input_ends:
            sys.stdin.read()
        else:
            ended.wait()
    return 0
