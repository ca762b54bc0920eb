"""`deployer service run --all`: runs everything that is due on all tables, or one service on each table that has it,
one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from deployer.cli.commands.service.look import look_at_services
from deployer.cli.console.output import note, print_json, stdout
from deployer.cli.console.progress_display import Meter
from deployer.cli.summaries.service_run import print_done
from deployer.compute.clusters import local_cluster
from deployer.errors import DeployerError, Interrupted
from deployer.platform.text.formatting import count
from deployer.runs.runner import RunRequest
from deployer.services.agent.watch import WatchedTable, is_here
from deployer.services.registry import run_service
from deployer.specs.model import InstanceSpec
from deployer.state.model.services import ServiceKind

if TYPE_CHECKING:
    from deployer.runs.rewriting.run import Engine


@dataclass(frozen=True, slots=True)
class Planned:
    """A planned run: its table and service, why it runs, and its declared cluster."""

    table: str
    service: ServiceKind
    why: str
    cluster: str | None
    asked: RunRequest


def run_all(
    root: str,
    instance: InstanceSpec,
    kind: ServiceKind | None,
    options: Mapping[str, Any] | None,
    *,
    cluster: str | None,
    engine: Engine,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Runs what is due, or `kind` wherever it is attached; returns the exit code, which is 1 when a run failed.

    A failed run does not stop the others. With `dry_run` nothing runs, and the planned runs are printed.
    """
    seen = sorted(look_at_services(root).tables.values(), key=lambda each: each.entry.full_name)
    planned = [each for table in seen for each in _planned(table, instance, kind, cluster)]
    unreadable = {table.entry.full_name: table.trouble for table in seen if table.trouble}
    for name, why in unreadable.items():
        note(f"{name} is left out, since it cannot be read: {why}")
    if dry_run:
        _print_planned(planned, kind, unreadable, as_json=as_json)
        return 0
    found: list[dict[str, Any]] = []
    code = 0
    with Meter(as_json=as_json) as meter:
        for number, each in enumerate(planned, 1):
            if not as_json:
                note(f"{number} of {len(planned)}: {each.table} {each.service}: {each.why}")
            done, failure = None, ""
            try:
                done = _run(root, instance, each, options, engine, meter)
            except Interrupted:
                raise
            except DeployerError as error:
                failure = str(error)
            if not as_json and done is not None:
                print_done(done)
            elif not as_json:
                note(f"{each.table} {each.service} failed: {failure}")
            status = done.status if done is not None else "FAILED"
            about = {"table": each.table, "service": each.service, "why": each.why}
            found.append({**about, "status": status, "reason": failure or (done.why if done is not None else "")})
            if status == "CANCELLED":  # Ctrl-C, or another process
                code = Interrupted.exit_code
                break
            code = 1 if status == "FAILED" else code
    if as_json:
        print_json({"runs": found, "unreadable": unreadable})
    elif not planned:
        stdout().print(_nothing(kind))
    return code


def _run(
    root: str, instance: InstanceSpec, each: Planned, options: Mapping[str, Any] | None, engine: Engine, meter: Meter
) -> Any:
    name = f"{each.table} {each.service}"
    choose = partial(local_cluster, instance.clusters, each.cluster, instance.address)
    try:
        return run_service(
            root,
            each.table,
            each.service,
            options,
            cluster=choose,
            engine=engine,
            on_progress=meter.begin(name),
            asked=each.asked,
        )
    finally:
        meter.end(name)


def _planned(
    table: WatchedTable, instance: InstanceSpec, kind: ServiceKind | None, cluster: str | None
) -> Iterator[Planned]:
    name, services = table.entry.full_name, table.state.services
    if kind is None:
        for due in table.due:
            where = cluster or services[due.service].cluster
            asked = RunRequest(cause=due.cause, cluster=where, new_id=due.run_id)
            yield Planned(name, due.service, due.why, where, asked)
        return
    service = services.get(kind)
    if service is None:
        return
    where = cluster or service.cluster
    if service.paused or not table.state.properties.online:
        note(f"{name} {kind} is left out: {'it is paused' if service.paused else 'the table is offline'}")
    elif not is_here(where, instance.clusters):
        note(f"{name} {kind} is left out: its cluster is on AWS; `service run {name} {kind}` runs it there")
    else:
        yield Planned(name, kind, "the table has it", where, RunRequest(cluster=where))


def _print_planned(
    planned: list[Planned], kind: ServiceKind | None, unreadable: Mapping[str, str], *, as_json: bool
) -> None:
    if as_json:
        rows = [{"table": each.table, "service": each.service, "why": each.why} for each in planned]
        print_json({"would_run": rows, "unreadable": unreadable})
        return
    for each in planned:
        stdout().print(f"{each.table} {each.service}: {each.why}", soft_wrap=True)
    stdout().print(f"{count(len(planned), 'run')}; nothing was run" if planned else _nothing(kind))


def _nothing(kind: ServiceKind | None) -> str:
    return "nothing is due" if kind is None else f"no table has a {kind} service that could run here"
