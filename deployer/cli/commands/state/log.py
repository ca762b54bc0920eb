"""`deployer state log`: lists the entries of a log. The module also finds the log that a command names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.state.log.entries import LogEntry
    from deployer.state.reader import StateReader

OfTable = Annotated[
    str | None, typer.Argument(help="The table as `database.name`, its name alone, or its id.", show_default=False)
]
OfInstance = Annotated[bool, typer.Option("--instance", help="The instance's own log instead of a table's.")]


def log(
    table: OfTable = None,
    instance: OfInstance = False,
    after: Annotated[
        int | None,
        typer.Option("--after", min=0, metavar="VERSION", help="Entries after this version, the oldest first."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=0, help="Show at most this many entries; 0 means all.")
    ] = 20,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Show what was committed to a table's log, the newest first: version, when, by whom and what.

    The author is what the writer declared: in a lake on disk, everyone who may write it can write any name.

    Exit codes: 0 shown, 1 an error, such as an entry that cannot be read; the others are shown.
    """
    from contextlib import closing

    from deployer.cli.console.output import note, print_json
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.errors import Corrupt
    from deployer.platform.storage.envelope import RECOVERY
    from deployer.platform.text.formatting import count
    from deployer.state import open_reader
    from deployer.state.log.entries import DamagedEntry

    root = root_to_read(project, stack, specs)
    with closing(open_reader(root)) as store:
        name, chosen = which_log(store, table, instance)
        newest = _newest(store, chosen)
        start = after if after is not None else max(newest - limit, 0) if limit else 0
        entries = store.log_with_damage(chosen, start, limit or None)
    damaged = [each for each in entries if isinstance(each, DamagedEntry)]
    kept_from = entries[0].version if entries else newest + 1
    if as_json:
        listed = [
            {"version": entry.version, "damaged": entry.why} if isinstance(entry, DamagedEntry) else _document(entry)
            for entry in entries
        ]
        print_json({"log": chosen, "name": name, "newest": newest, "entries": listed})
        return 1 if damaged else 0
    _print(entries, newest_first=after is None)
    if start + 1 < kept_from and (after is not None or not limit or len(entries) < limit) and newest:
        note(f"entries before version {kept_from} are no longer kept; snapshots replace them")
    shown = entries[-1].version if entries else newest
    if after is None and start and kept_from == start + 1:
        note(f"{start:,} older (--limit 0 shows all that are kept)")
    elif after is not None and shown < newest:
        note(f"{newest - shown:,} newer (--after {shown} shows them)")
    if damaged:
        raise Corrupt(f"{count(len(damaged), 'entry', 'entries')} cannot be read", where=name, remedy=RECOVERY)
    return 0


def _document(entry: LogEntry) -> dict[str, Any]:
    """Returns an entry as it is stored, with a description of what it did; times are in ISO 8601."""
    from deployer.state.log.describe import describe_entry
    from deployer.state.log.entries import to_json
    from deployer.state.model.times import iso_utc, with_times

    document = to_json(entry)
    parts = {
        name: [with_times(each, stored) for each, stored in zip(getattr(entry, name), document[name], strict=True)]
        for name in ("updates", "requirements")
    }
    return document | parts | {"at": iso_utc(entry.at), "what": describe_entry(entry)}


def _newest(store: StateReader, log: str) -> int:
    """Returns the log's newest version, even where no state can be made from the log."""
    from deployer.errors import Corrupt
    from deployer.state.model.entities import INSTANCE_LOG

    try:
        return (store.instance() if log == INSTANCE_LOG else store.table(log)).version
    except Corrupt:
        return store.log_with_damage(log)[-1].version


def which_log(store: StateReader, table: str | None, instance: bool) -> tuple[str, str]:
    """Returns the log's name for people, and its own name. Raises InvalidInput unless exactly one log is named."""
    from deployer.errors import InvalidInput
    from deployer.state.model.entities import INSTANCE_LOG
    from deployer.tables.maintenance.verify.verify import named_entry

    if instance == (table is not None):
        raise InvalidInput("the log to list is missing", remedy="give a table, or --instance")
    if table is None:
        return INSTANCE_LOG, INSTANCE_LOG
    entry = named_entry(store.instance().tables.values(), table)
    return entry.full_name, entry.table_id


def _print(entries: list[Any], *, newest_first: bool) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from deployer.cli.console.output import stdout
    from deployer.platform.system.clock import utc
    from deployer.state.log.describe import describe_update
    from deployer.state.log.entries import DamagedEntry

    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    shown.add_column("version", justify="right")
    shown.add_column("when (UTC)", no_wrap=True)
    shown.add_column("who")
    shown.add_column("what", overflow="fold")
    for entry in reversed(entries) if newest_first else entries:
        if isinstance(entry, DamagedEntry):
            shown.add_row(str(entry.version), "", "", f"cannot be read: {entry.why}", style="red")
            continue
        shown.add_row(str(entry.version), utc(entry.at), entry.author, "\n".join(map(describe_update, entry.updates)))
    stdout().print(shown)
