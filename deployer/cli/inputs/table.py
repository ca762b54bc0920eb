"""The table that a command reads or changes, and the edit of its spec."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from deployer.app.stack.engine import held
from deployer.app.workspace import Workspace, open_workspace
from deployer.cli.console.output import ask
from deployer.cli.inputs.lake_root import root_despite, root_to_read
from deployer.engine import hold_stack
from deployer.errors import Corrupt, Interrupted, InvalidInput, InvalidSpecs, NotFound
from deployer.live.reader import live_instance
from deployer.specs.model import Lake
from deployer.state import open_reader, open_store
from deployer.state.model.entities import TableEntry
from deployer.state.store import StateStore
from deployer.tables.admin.ownership import require_instance_owner, require_owner
from deployer.tables.open_table import OpenTable, ReadTable, find_entry, open_entry, read_entry


@dataclass(frozen=True, slots=True)
class Target:
    """A table with its lake, and the project and stack of the command."""

    workspace: Workspace
    lake: Lake
    root: str
    store: StateStore
    entry: TableEntry

    @property
    def name(self) -> str:
        return self.entry.full_name

    def opened(self) -> OpenTable:
        return open_entry(self.store, self.root, self.entry)


@contextmanager
def looked_at(project: Path | None, stack: str, specs: Path | None, name: str) -> Iterator[ReadTable]:
    """Yields the live table of that name for reading; any stack may own it. Raises NotFound with the nearest name."""
    root = root_to_read(project, stack, specs)
    with closing(open_reader(root)) as store:
        yield read_entry(store, root, find_entry(store.instance().tables.values(), name))


@contextmanager
def changed(
    project: Path | None,
    stack: str,
    specs: Path | None,
    name: str,
    *,
    alone: bool = True,
    unreadable: bool = False,
) -> Iterator[Target]:
    """Yields the table of that name for a change. Other runs on the stack are locked out if `alone`. Raises Refused for
    tables of other stacks.

    With `unreadable`, a table whose log cannot be read is yielded too, if the stack manages the instance.
    """
    workspace = open_workspace(project, stack, specs)
    lake = workspace.lake()
    root = workspace.root(lake)
    with held(workspace, lake) if alone else nullcontext(), closing(open_store(root)) as store:
        entry = _found(store, name)
        if entry.status == "active":
            try:
                require_owner(entry, store.table(entry.table_id), workspace.owner)
            except (Corrupt, NotFound):
                if not unreadable:
                    raise
                require_instance_owner(entry, store.instance(), workspace.owner)
        yield Target(workspace, lake, root, store, entry)


@contextmanager
def state_to_change(workspace: Workspace) -> Iterator[tuple[str, StateStore]]:
    """Yields the root and the state store of the stack's lake, for changes that specs do not declare. Other runs are
    locked out of the stack. Problems of the specs are noted, and the change continues."""
    engine: str | None = None
    try:
        lake = workspace.lake()
        root, engine = workspace.root(lake), lake.instance.engine
    except InvalidSpecs as problems:
        root = root_despite(workspace, problems, "changes")
    with closing(open_store(root)) as store:
        if engine is None:
            live = live_instance(store.instance())
            engine = live.engine if live is not None else "auto"
        with hold_stack(workspace.stack_ref, engine):
            yield root, store


@contextmanager
def changed_by_state(project: Path | None, stack: str, specs: Path | None, name: str) -> Iterator[OpenTable]:
    """Yields a table for changes that specs do not declare. Problems of the specs are noted, and the change continues.

    Raises Refused for tables of other stacks.
    """
    workspace = open_workspace(project, stack, specs)
    try:
        root = workspace.root(workspace.lake())
    except InvalidSpecs as problems:
        root = root_despite(workspace, problems, "changes")
    with closing(open_store(root)) as store:
        entry = find_entry(store.instance().tables.values(), name)
        require_owner(entry, store.table(entry.table_id), workspace.owner)
        yield open_entry(store, root, entry)


def _found(store: StateStore, name: str) -> TableEntry:
    cut_off = store.instance().by_name(name)  # the same command finishes an interrupted deletion
    if cut_off is not None and cut_off.status == "deleting":
        return cut_off
    return find_entry(store.instance().tables.values(), name)


def write_spec(target: Target) -> list[str]:
    """Edits the table's spec so that it declares the live state; returns the edited files.

    Raises Refused, with the specs unchanged, for what cannot be edited in place; the table stays changed.
    """
    from deployer.app.drift_detection.find import find_drift
    from deployer.app.drift_detection.into_specs import take_over

    found = find_drift(target.workspace)
    name = target.store.instance().tables[target.entry.table_id].full_name
    addresses = {address for address, spec in found.tables.items() if spec.full_name == name}
    if not addresses:
        raise NotFound(
            f"stack {target.workspace.stack} never applied the table, so there is no spec to edit",
            where=f"table/{name}",
            remedy="declare it and run `deployer up`",
        )
    items = tuple(item for item in found.items if item.address in addresses)
    return take_over(target.workspace, replace(found, items=items)) if items else []


def confirm_by_name(name: str, what: str, *, force: bool) -> None:
    """Asks for the table's name. Raises InvalidInput if stdin is not a terminal, Interrupted for another name."""
    if force:
        return
    if not sys.stdin.isatty():
        raise InvalidInput(
            "stdin is not a terminal, so nothing can be confirmed", where=f"table/{name}", remedy="pass --force"
        )
    if ask(f"{what}. Type its name ({name}) to continue").strip() != name:
        raise Interrupted("that is not the table's name; nothing was changed")
