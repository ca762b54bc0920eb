"""The entries of the catalog: tables and datasets of recordings, with the ids and names that clients know them by."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from deployer.catalog.datasets.model.record import DatasetRecord, Kind, id_of_name
from deployer.catalog.datasets.model.registry import Datasets
from deployer.catalog.protocol.messages import enum_value
from deployer.datasets.dataset import dataset_location
from deployer.errors import Conflict, InvalidInput, NotFound, Refused
from deployer.state.model.declared_properties import OWNER
from deployer.state.model.entities import TableEntry
from deployer.state.model.names import fault_of_name
from deployer.state.store import StateStore
from deployer.tables.admin.deletion import delete_counted
from deployer.tables.admin.naming import rename_table

#: The table of all entries, which the client hides since its name begins with `__`.
ENTRIES = "__entries"
DATABASE = "default"  #: of a table whose name is given without one

TABLE_KIND = enum_value("EntryKind", "ENTRY_KIND_TABLE")
#: The kinds of entries of datasets.
DATASET_KINDS: Mapping[Kind, int] = {
    "dataset": enum_value("EntryKind", "ENTRY_KIND_DATASET"),
    "blueprints": enum_value("EntryKind", "ENTRY_KIND_BLUEPRINT_DATASET"),
}

#: The columns of the table of all entries.
ENTRIES_SCHEMA = pa.schema(
    [
        pa.field("id", pa.binary(16), nullable=False),
        pa.field("name", pa.utf8(), nullable=False),
        pa.field("entry_kind", pa.int32(), nullable=False),
        pa.field("created_at", pa.timestamp("ns"), nullable=False),
        pa.field("updated_at", pa.timestamp("ns"), nullable=False),
    ]
)


class NameTaken(Conflict):
    """Another entry has the name."""

    kind = "NameTaken"


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One entry. `entry_id` has 16 bytes; times are milliseconds since 1970. `table` is None for `__entries` and for
    datasets, `dataset` for tables."""

    entry_id: bytes
    name: str
    created_at: int
    updated_at: int
    url: str = ""
    table: TableEntry | None = None
    dataset: DatasetRecord | None = None

    @property
    def kind(self) -> int:
        """The number of its kind in the protocol."""
        return TABLE_KIND if self.dataset is None else DATASET_KINDS[self.dataset.kind]


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of the instance at `root`. Each call reads what is new in the log. Safe for threads."""

    store: StateStore
    root: str

    def all(self) -> Iterator[CatalogEntry]:
        """Yields all entries, `__entries` first."""
        yield CatalogEntry(_id_of(ENTRIES, 0), ENTRIES, 0, 0)
        for entry in self.store.instance().tables.values():
            if entry.status == "active":
                yield self._of(entry)
        for record in self._datasets.all():
            yield entry_of_dataset(record)

    def by_id(self, entry_id: bytes) -> CatalogEntry:
        """Returns the entry of that id. Raises NotFound."""
        for entry in self.all():
            if entry.entry_id == entry_id:
                return entry
        raise NotFound(f"Entry id '{entry_id.hex()}' not found")

    def rename(self, entry_id: bytes, name: str) -> CatalogEntry:
        """Gives the entry another name. Raises NotFound; NameTaken where another entry has the name; InvalidInput for
        what is not a name; Refused for a table that a stack manages."""
        entry = self.by_id(entry_id)
        if entry.dataset is not None:
            return entry_of_dataset(self._datasets.rename(entry.dataset.dataset_id, name))
        table = _own_table(entry)
        database, _, bare = name.rpartition(".")
        for part in (database or DATABASE, bare):
            if fault := fault_of_name(part):
                raise InvalidInput(f"{part!r} {fault}", where=entry.name, remedy="name it `database.table`")
        full_name = f"{database or DATABASE}.{bare}"
        instance = self.store.instance()
        if full_name != table.full_name and (instance.by_name(full_name) or id_of_name(instance, full_name)):
            raise NameTaken(f"Entry name '{full_name}' already exists", where=entry.name, remedy="choose another name")
        self._refuse_managed(table, "renamed", "change its name in the specs, and run `deployer up`")
        rename_table(self.store, table, database or DATABASE, bare)
        return self.by_id(entry_id)

    def delete(self, entry_id: bytes) -> None:
        """Deletes the table with its data, or the dataset; recordings stay where they are.

        Raises NotFound; Refused for a table that holds rows and is protected from deletion, that has
        savepoints, or that a stack manages.
        """
        entry = self.by_id(entry_id)
        if entry.dataset is not None:
            self._datasets.delete(entry.dataset.dataset_id)
            return
        table = _own_table(entry)
        self._refuse_managed(table, "deleted", "take it out of the specs, and run `deployer up`")
        delete_counted(self.store, self.root, table, allow_destroy=False)

    def table_of_entries(self) -> pa.RecordBatch:
        """Returns the rows of `__entries`."""
        found = list(self.all())
        times = [[each.created_at for each in found], [each.updated_at for each in found]]
        return pa.RecordBatch.from_arrays(
            [
                pa.array([each.entry_id for each in found], pa.binary(16)),
                pa.array([each.name for each in found], pa.utf8()),
                pa.array([each.kind for each in found], pa.int32()),
                *(pa.array(values, pa.timestamp("ms")).cast(pa.timestamp("ns")) for values in times),
            ],
            schema=ENTRIES_SCHEMA,
        )

    @property
    def _datasets(self) -> Datasets:
        return Datasets(self.store, self.root)

    def _of(self, entry: TableEntry) -> CatalogEntry:
        updated = max(entry.created_at, self.store.table(entry.table_id).at)
        url = dataset_location(self.root, entry)
        shown = url if "://" in url else f"file://{url}"
        return CatalogEntry(
            _id_of(entry.table_id, entry.created_at), entry.full_name, entry.created_at, updated, shown, entry
        )

    def _refuse_managed(self, table: TableEntry, what: str, remedy: str) -> None:
        if owner := self.store.table(table.table_id).properties.declared.get(OWNER):
            raise Refused(
                f"the table is managed by {owner} and cannot be {what} here", where=table.address, remedy=remedy
            )


def entry_of_dataset(record: DatasetRecord) -> CatalogEntry:
    """Returns the entry of a dataset."""
    return CatalogEntry(
        bytes.fromhex(record.dataset_id), record.name, record.created_at, record.updated_at, dataset=record
    )


def _own_table(entry: CatalogEntry) -> TableEntry:
    if entry.table is None:
        raise Refused(
            "the table of entries cannot be changed", where=entry.name, remedy="change the entries themselves"
        )
    return entry.table


def _id_of(table_id: str, created_at: int) -> bytes:
    """Returns the entry id of a table: the time of its creation, as Rerun's ids begin, and a hash of its id."""
    return (created_at * 1_000_000).to_bytes(8, "big") + hashlib.blake2b(table_id.encode(), digest_size=8).digest()
