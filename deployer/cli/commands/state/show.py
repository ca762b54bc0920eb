"""`deployer state show`: shows the state of a table or of the instance, now or at a version or time of its log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployer.cli.commands.state.log import OfInstance, OfTable, which_log
from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.state.model.entities import InstanceState, TableState
    from deployer.state.model.services import Service
    from deployer.state.snapshots.history import At

FILES = 20  #: the most files that are listed for people


def show(
    table: OfTable = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="VERSION|TIME",
            help="A version that `state log` lists, or a time such as 2026-01-31T12:00:00Z (UTC without an offset).",
            show_default=False,
        ),
    ] = None,
    instance: OfInstance = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Show the state as it is recorded: properties, partitions, files, jobs. It rolls nothing forward.

    Exit codes: 0 shown, 1 an error, such as a version that is not kept any more.
    """
    from contextlib import closing

    from deployer.cli.console.output import print_json
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.errors import NotFound
    from deployer.state import open_reader
    from deployer.state.model.entities import InstanceState

    root = root_to_read(project, stack, specs)
    moment = parse_at(at) if at is not None else None
    with closing(open_reader(root)) as store:
        name, log = which_log(store, table, instance)
        try:
            state = store.instance(moment) if instance else store.table(log, moment)
        except NotFound as error:
            error.where = name if instance else f"table/{name}"
            raise
    if as_json:
        print_json({"name": name, **_as_json(state)})
    elif isinstance(state, InstanceState):
        _print_instance(state)
    else:
        _print_table(name, state)
    return 0


def parse_at(text: str) -> At:
    """Returns a version or a time. A time without an offset is UTC. Raises InvalidInput for anything else."""
    import datetime as dt

    from deployer.errors import InvalidInput

    if text.strip().isdecimal():
        return int(text)
    try:
        moment = dt.datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(
            f"--at {text!r} is neither a version nor a time",
            remedy="give a number that `deployer state log` lists, or a time such as 2026-01-31T12:00:00Z",
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)


def _as_json(state: InstanceState | TableState) -> dict[str, Any]:
    """Returns the state in the form of log entries, with bytes in base64 and times in ISO 8601."""
    from deployer.state.log.codec import encode
    from deployer.state.model.entities import InstanceState
    from deployer.state.model.times import iso_or_none, with_times

    def as_shown(value: Any) -> dict[str, Any]:
        return with_times(value, encode(value))

    if isinstance(state, InstanceState):
        tables = [as_shown(entry) for entry in state.tables.values()]
        return {"version": state.version, "at": iso_or_none(state.at), "properties": state.properties, "tables": tables}
    return {
        "version": state.version,
        "at": iso_or_none(state.at),
        "table_id": state.table_id,
        "lance_version": state.lance_version,
        "dataset": state.dataset,
        "properties": encode(state.properties),
        "columns": _columns(state),
        "partitions": [as_shown(each) for each in state.partitions.values()],
        "files": [as_shown(each) for each in state.files],
        "jobs": [as_shown(each) for each in state.jobs.values()],
        "intents": [as_shown(each) for each in state.intents.values()],
        "datasets": [as_shown(each) for each in state.datasets],
        "services": [as_shown(each) for each in state.services.values()],
        "runs": [as_shown(each) for each in state.runs.values()],
        "savepoints": [as_shown(each) for each in state.savepoints.values()],
    }


def _columns(state: TableState) -> list[dict[str, str]]:
    from deployer.datasets.recovery.unrecorded import recorded_schema
    from deployer.specs.types.arrow import columns_of
    from deployer.specs.types.types import format_type

    columns = columns_of(recorded_schema(state))
    return [{"name": column.name, "type": format_type(column.type)} for column in columns]


def _print_instance(state: InstanceState) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from deployer.cli.console.output import stdout
    from deployer.platform.system.clock import utc

    console = stdout()
    console.print(f"instance at version {state.version} of its log, {utc(state.at)} UTC")
    facts = Table(box=None, show_header=False, pad_edge=False)
    for name, value in state.properties.items():
        facts.add_row(name, str(value))
    console.print(facts)
    tables = Table("table", "status", "id", "location", box=SIMPLE_HEAD, pad_edge=False)
    for entry in sorted(state.tables.values(), key=lambda each: each.full_name):
        tables.add_row(entry.full_name, entry.status, entry.table_id, entry.location)
    console.print(tables)


def _describe_service(service: Service) -> str:
    mode = service.trigger_mode.lower().replace("_", " ")
    return f"{service.kind} ({mode}, paused)" if service.paused else f"{service.kind} ({mode})"


def _print_table(name: str, state: TableState) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.filesize import decimal
    from rich.table import Table

    from deployer.cli.console.output import note, stdout
    from deployer.platform.system.clock import utc
    from deployer.platform.text.formatting import count
    from deployer.specs.types import column_names as names
    from deployer.state.model.declared_properties import UNIQUE

    console, properties = stdout(), state.properties
    open_runs = [run for run in state.runs.values() if run.is_open]
    console.print(f"{name} at version {state.version} of its log, {utc(state.at)} UTC")
    facts = {
        "rows": f"{state.files.rows:,} in {count(state.files.count, 'file')}, {decimal(state.files.bytes)}",
        "dataset": f"{state.dataset}, version {state.lance_version}",
        "generation": str(properties.generation),
        "columns": ", ".join(f"{names.shown(each['name'])} {each['type']}" for each in _columns(state)),
        "row keys": (names.listed(properties.row_keys) or "none")
        + (" (unique)" if properties.declared.get(UNIQUE) is True else ""),
        "sort keys": names.listed(properties.sort_keys) or "none",
        "online": "yes" if properties.online else "no",
        "partitions": f"{count(len(state.leaves()), 'leaf', 'leaves')} of {len(state.partitions)}",
        "jobs done": f"{len(state.jobs):,}",
        "in progress": ", ".join(f"{each.job_id} ({each.kind})" for each in state.intents.values()) or "nothing",
        "services": ", ".join(map(_describe_service, state.services.values())) or "none",
        "runs": ", ".join(f"{run.run_id} ({run.service}, {run.status})" for run in open_runs)
        or f"none running, {len(state.runs):,} ended",
        "savepoints": ", ".join(f"{each.name} (version {each.lance_version})" for each in state.savepoints.values())
        or "none",
    }
    shown = Table(box=None, show_header=False, pad_edge=False)
    for what, value in facts.items():
        shown.add_row(what, value)
    console.print(shown)
    files = Table(box=SIMPLE_HEAD, pad_edge=False)
    for what in ("fragment", "rows", "size"):
        files.add_column(what, justify="right")
    files.add_column("partition")
    files.add_column("sorted")
    for number, file in enumerate(state.files):
        if number == FILES:
            break
        row = (str(file.fragment_id), f"{file.rows:,}", decimal(file.bytes), file.partition or "unplaced")
        files.add_row(*row, "yes" if file.sorted else "no")
    if state.files.count:
        console.print(files)
    if state.files.count > FILES:
        note(f"{state.files.count - FILES:,} more files (--json lists all)")
