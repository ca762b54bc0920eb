"""A table that is open: its entry and state with all that Lance has, and where its dataset is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from deployer.datasets.dataset import dataset_location, open_dataset
from deployer.datasets.files.writer import Layout
from deployer.datasets.ordering.key_ranges import fault_of_keys
from deployer.datasets.recovery.as_recorded import as_recorded
from deployer.datasets.recovery.rollforward import current
from deployer.datasets.recovery.unrecorded import recorded_schema
from deployer.errors import Corrupt, InvalidInput, NotFound, Refused
from deployer.live.reader import live_table
from deployer.specs.serialized.specs import storage_from_json
from deployer.specs.types.arrow import arrow_schema, columns_of
from deployer.specs.types.types import format_type
from deployer.specs.types.view import HIDDEN
from deployer.specs.yaml.suggestions import nearest
from deployer.state import open_store
from deployer.state.model.declared_properties import VIEW
from deployer.state.model.entities import TableEntry, TableState
from deployer.state.model.keys import decode_key
from deployer.state.reader import StateReader
from deployer.state.store import StateStore

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset
    from deployer.specs.model import KeyValue
    from deployer.specs.types.types import Column


@dataclass(frozen=True)
class ReadTable:
    """A table at one state, to be read. All its results belong to that state; `refreshed` reads again.

    Commits that Lance has and the log lacks are in the state as they would be recorded. `without` are fragments of the
    dataset whose rows do not count (see `as_recorded.CurrentState`).
    """

    store: StateReader
    root: str
    entry: TableEntry
    state: TableState
    without: frozenset[int] = frozenset()

    @property
    def address(self) -> str:
        return f"table/{self.entry.full_name}"

    @property
    def location(self) -> str:
        """Path or URI of the Lance dataset."""
        return dataset_location(self.root, self.entry)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns as rows are written: Arrow's types, descriptions in the fields' metadata."""
        return arrow_schema(columns_of(recorded_schema(self.state)))

    @property
    def visible_columns(self) -> list[str]:
        """The names of the columns, without those that a view keeps for its refreshes."""
        if VIEW not in self.state.properties.declared:
            return list(self.schema.names)
        return [name for name in self.schema.names if not name.startswith(HIDDEN)]

    @cached_property
    def key_columns(self) -> tuple[Column, ...]:
        """The columns of the row keys. Raises Corrupt for recorded row keys that do not fit the table's columns."""
        return self._columns_of("row_keys", self.state.properties.row_keys)

    @property
    def row_keys(self) -> tuple[str, ...]:
        """The names of `key_columns`; raises as it does."""
        return tuple(column.name for column in self.key_columns)

    @property
    def sort_keys(self) -> tuple[str, ...]:
        """The columns of the sort keys. Raises Corrupt for recorded sort keys that do not fit the table's columns."""
        return tuple(column.name for column in self._columns_of("sort_keys", self.state.properties.sort_keys))

    def _columns_of(self, setting: str, keys: Sequence[str]) -> tuple[Column, ...]:
        columns = columns_of(self.schema)
        if fault := fault_of_keys(columns, keys):
            raise Corrupt(
                f"its recorded `{setting}` do not fit its columns: {fault}",
                where=self.address,
                remedy=f"declare the `{setting}` and columns that it is to have and run `deployer up`, or restore a "
                "savepoint",
            )
        by_name = {column.name: column for column in columns}
        return tuple(by_name[key] for key in keys)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the row keys (see `deployer.state.model.keys`); raises as `key_columns` does."""
        return tuple(format_type(column.type) for column in self.key_columns)

    @property
    def splits(self) -> list[tuple[KeyValue, ...]]:
        """The keys that separate the leaves, ascending."""
        return [decode_key(self.kinds, leaf.lower) for leaf in self.state.leaves()[1:]]

    def dataset(self, version: int | None = None) -> LanceDataset:
        """Returns the dataset at the recorded version, or at the one given. Raises NotFound when that version was
        removed."""
        return open_dataset(self.location, self.state.lance_version if version is None else version)

    def layout(self) -> Layout:
        """Returns the settings for writing rows of this table. Raises Corrupt for recorded keys that the table's
        columns cannot be."""
        storage = storage_from_json(self.state.properties.storage)
        return Layout(
            self.location,
            self.schema.serialize().to_pybytes(),
            self.row_keys,
            self.sort_keys,
            storage.data_storage_version,
            storage.max_rows_per_file,
            storage.max_bytes_per_file,
            self.root,
        )

    def refuse_view(self) -> None:
        """Raises Refused for a view, whose rows only a refresh writes."""
        if VIEW in self.state.properties.declared:
            name = self.entry.full_name
            raise Refused(
                f"{name} is a view: its rows come from its query, and only a refresh writes them; nothing was changed",
                where=self.address,
                remedy=f"change the tables that it reads, then run `deployer view refresh {name}`",
            )

    def refreshed(self) -> ReadTable:
        known = self.store.instance().tables.get(self.entry.table_id, self.entry)
        return _read(self.store, self.root, known, self.state)


@dataclass(frozen=True)
class OpenTable(ReadTable):
    """A table at one state, to be changed too: its log has all that Lance has."""

    store: StateStore

    def refreshed(self) -> OpenTable:
        known = self.store.instance().tables.get(self.entry.table_id, self.entry)
        entry, state = current(self.store, self.root, known, self.store.table(self.entry.table_id))
        return replace(self, entry=entry, state=state)


def read_entry(store: StateReader, root: str, entry: TableEntry) -> ReadTable:
    """Opens a table whose entry is known for reading; nothing is written."""
    return _read(store, root, entry, store.table(entry.table_id))


def _read(store: StateReader, root: str, entry: TableEntry, state: TableState) -> ReadTable:
    seen = as_recorded(store, root, entry, state)
    live_table(seen.entry, seen.state)  # raises Corrupt where the record is not that of a table
    return ReadTable(store, root, seen.entry, seen.state, seen.without)


def open_entry(store: StateStore, root: str, entry: TableEntry) -> OpenTable:
    """Opens a table whose entry is known for changing it; records what Lance has and the log lacks.

    Raises Corrupt where the state's records of it are not a table's.
    """
    entry, state = current(store, root, entry, store.table(entry.table_id))
    live_table(entry, state)
    return OpenTable(store, root, entry, state)


def open_to_change(root: str, name: str) -> OpenTable:
    """Returns the table `database.name`, or of that bare name when only one has it, of the instance at `root`, to be
    changed.

    Raises as `find_entry` does.
    """
    store = open_store(root)
    return open_entry(store, root, find_entry(store.instance().tables.values(), name))


def to_change(table: ReadTable) -> OpenTable:
    """Returns the table, which its caller opened to be changed. A caller that opened it to read makes a mistake:
    TypeError."""
    if not isinstance(table, OpenTable):
        raise TypeError("the table was opened to be read only")
    return table


def find_entries(entries: Collection[TableEntry], names: Sequence[str] | None) -> list[TableEntry]:
    """Returns the active tables, or those of `names`, in the order of their full names. Raises as `find_entry` does."""
    active = [entry for entry in entries if entry.status == "active"]
    found = [find_entry(active, name) for name in names] if names else active
    return sorted({entry.table_id: entry for entry in found}.values(), key=lambda entry: entry.full_name)


def find_entry(entries: Iterable[TableEntry], name: str) -> TableEntry:
    """Returns the active table of that `database.name`, or of that bare name when only one has it.

    Raises NotFound with the nearest name, InvalidInput when several tables have the bare name.
    """
    active = sorted((entry for entry in entries if entry.status == "active"), key=lambda entry: entry.full_name)
    for entry in active:
        if entry.full_name == name:
            return entry
    named = [entry for entry in active if entry.name == name]
    if len(named) == 1:
        return named[0]
    if named:
        raise InvalidInput(
            f"{len(named)} tables are called {name!r}",
            remedy=f"give one of {', '.join(entry.full_name for entry in named)}",
        )
    known = [entry.full_name for entry in active] + [entry.name for entry in active]
    near = nearest(name, known)
    raise NotFound(
        f"there is no table {name!r}",
        remedy=f"did you mean {near!r}?" if near else "`deployer tables` lists the tables",
    )
