"""`deployer agent`: runs the services of an instance when their triggers are due."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.services.agent.agent import Agent


def agent(
    root: Annotated[
        str | None,
        typer.Option(
            help="Root of the instance, such as s3://bucket/lake, where there is no project.", show_default=False
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Run what is due now, and end.")] = False,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Time between two checks: 5s by default, 60s for a root in a bucket.",
            show_default=False,
        ),
    ] = None,
    parallel: Annotated[int, typer.Option(help="Runs that execute at a time.", min=1, max=64)] = 2,
    grace: Annotated[
        str, typer.Option(metavar="DURATION", help="How late a run may be before it is called overdue.")
    ] = "1h",
    listen: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Where /healthz and /metrics are served; `off`: nowhere."),
    ] = "127.0.0.1:9178",
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: Annotated[bool, typer.Option("--json", help="Log one JSON document a line.")] = False,
) -> int:
    """Watch the triggers of all services, those of datasets among them, and run what is due on this machine.

    Several agents may watch one instance: each run is done once. SIGTERM ends it when its runs have ended; a second
    one, or Ctrl-C, stops them, and their commits are kept. AWS starts the services on clusters on AWS.
    """
    import gc
    from contextlib import closing, nullcontext

    from deployer.catalog.datasets.declared.scheduled import ScheduledDatasets
    from deployer.cli.commands.agent.log import AgentLog
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.errors import Interrupted, InvalidInput
    from deployer.platform.text.units import OPTION_DURATION, parse_duration
    from deployer.services.agent.agent import Agent, Settings
    from deployer.services.agent.serving import address_of, served
    from deployer.state import open_store

    if root is not None and (project is not None or specs is not None):
        raise InvalidInput("--root is for where there is no project", remedy="leave out --project and --specs")
    if not once and listen != "off":
        address_of(listen)  # a bad address is reported before anything is opened
    between = parse_duration(every, OPTION_DURATION, option="--every").total_seconds() if every is not None else None
    if between == 0:
        raise InvalidInput("--every: the time between two checks is too short", remedy="give 1s or more")
    late = parse_duration(grace, OPTION_DURATION, option="--grace").total_seconds()
    root = root or root_to_read(project, stack, specs)
    settings = Settings(between or (60.0 if "://" in root else 5.0), parallel, late)
    gc.set_threshold(700, 10, 10)  # other commands seldom collect cycles, but the agent runs for long
    log = AgentLog(as_json=as_json)
    with closing(open_store(root)) as store:
        datasets = ScheduledDatasets(store, root, log.report)
        found = Agent(store, root, log.report, settings, beside=datasets)
        with obeyed(found), served(found, listen) if not once and listen != "off" else nullcontext() as address:
            log.report("watching", root=root, every=settings.every, listen=address, once=once)
            whole = found.once() if once else found.watch()
    ended = dict(found.workers.ended)
    for status, number in datasets.ended.items():
        ended[status] = ended.get(status, 0) + number
    log.report("stopped", runs=ended)
    if not whole:
        return Interrupted.exit_code
    return 1 if once and ended.get("FAILED") else 0


@contextmanager
def obeyed(agent: Agent) -> Iterator[None]:
    """Handles signals within a block. SIGTERM lets runs end, and a second one stops them. Ctrl-C stops them at once;
    pressed again, it kills them."""

    def end(_number: int, _frame: FrameType | None) -> None:
        agent.end()

    def stop(_number: int, _frame: FrameType | None) -> None:
        agent.stop()

    before = {number: signal.signal(number, does) for number, does in ((signal.SIGTERM, end), (signal.SIGINT, stop))}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
