"""The entries of the catalog, with their ids and names: tables of an instance, external tables, and datasets of
recordings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from deployer.catalog.datasets.declared.live import refuse_managed
from deployer.catalog.datasets.model.record import DatasetRecord, Kind
from deployer.catalog.datasets.model.registry import Datasets
from deployer.catalog.external import registry
from deployer.catalog.external.place import Place, place_of, refuse_overlap
from deployer.catalog.external.registry import ExternalTable, external_tables, full_name
from deployer.catalog.external.rows import ExternalRows, create, has_dataset, is_empty_with, no_dataset
from deployer.catalog.instance_tables import CLIENT, create_in_instance
from deployer.catalog.protocol.messages import enum_value
from deployer.catalog.tables import TableRows
from deployer.datasets.dataset import dataset_location
from deployer.errors import Conflict, InvalidInput, NotFound, Refused
from deployer.platform.system.clock import Clock
from deployer.platform.system.failpoints import reached
from deployer.state.model.declared_properties import OWNER
from deployer.state.model.entities import TableEntry
from deployer.state.model.names import fault_of_name
from deployer.state.store import StateStore
from deployer.tables.admin.deletion import delete_counted
from deployer.tables.admin.naming import rename_table
from deployer.tables.ingest.request import Mode

#: The name of the table of all entries. The client hides the table because the name begins with `__`.
ENTRIES = "__entries"

TABLE_KIND = enum_value("EntryKind", "ENTRY_KIND_TABLE")
#: The protocol's number of the entry kind, by the kind of dataset.
DATASET_KINDS: Mapping[Kind, int] = {
    "dataset": enum_value("EntryKind", "ENTRY_KIND_DATASET"),
    "blueprints": enum_value("EntryKind", "ENTRY_KIND_BLUEPRINT_DATASET"),
}

_ATTEMPTS = 3  #: attempts to create an entry while other clients create entries of the same name

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
    """The error for a name that another entry has, and for a URL that has a table."""

    kind = "NameTaken"


class Rows(Protocol):
    """The rows of an entry."""

    def schema(self) -> pa.Schema: ...

    def count(self) -> int: ...

    def batches(self) -> Iterator[pa.RecordBatch]: ...

    def write(self, batches: Iterable[pa.RecordBatch], mode: Mode) -> int: ...


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One entry. `entry_id` has 16 bytes; times are milliseconds since 1970. One of `table` (of the instance),
    `external` and `dataset` (of recordings) is set; all three are None for `__entries`."""

    entry_id: bytes
    name: str
    created_at: int
    updated_at: int
    url: str = ""
    table: TableEntry | None = None
    external: ExternalTable | None = None
    dataset: DatasetRecord | None = None

    @property
    def kind(self) -> int:
        """The protocol's number of the entry's kind."""
        return TABLE_KIND if self.dataset is None else DATASET_KINDS[self.dataset.kind]


@dataclass(frozen=True, slots=True)
class _EntryRows:
    """The rows of `__entries`."""

    found: Callable[[], pa.RecordBatch]

    def schema(self) -> pa.Schema:
        return ENTRIES_SCHEMA

    def count(self) -> int:
        return int(self.found().num_rows)

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield self.found()

    def write(self, batches: Iterable[pa.RecordBatch], mode: Mode) -> int:
        raise InvalidInput("the table of entries cannot be written", where=ENTRIES, remedy="write to a table")


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of the instance at `root`. Each call reads the new entries of the log. Safe for threads."""

    store: StateStore
    root: str
    clock: Clock = Clock()

    def all(self) -> Iterator[CatalogEntry]:
        """Yields all entries, `__entries` first. `updated_at` of a table with an unreadable log is its creation
        time."""
        yield CatalogEntry(_id_of(ENTRIES, 0), ENTRIES, 0, 0)
        instance = self.store.instance()
        active = [entry for entry in instance.tables.values() if entry.status == "active"]
        states, _ = self.store.each_table([entry.table_id for entry in active])
        for entry in active:
            known = states.get(entry.table_id)
            yield self._of(entry, entry.created_at if known is None else known.at)
        for external in external_tables(instance):
            if not external.creating:
                yield _of_external(external)
        for record in self._datasets.all():
            yield entry_of_dataset(record)

    def by_id(self, entry_id: bytes) -> CatalogEntry:
        """Returns the entry with the id `entry_id`. Raises NotFound for an unknown id."""
        if entry_id == _id_of(ENTRIES, 0):
            return CatalogEntry(entry_id, ENTRIES, 0, 0)
        instance = self.store.instance()
        for entry in instance.tables.values():
            if entry.status == "active" and _id_of(entry.table_id, entry.created_at) == entry_id:
                return self._of(entry, self.store.table(entry.table_id).at)
        for external in external_tables(instance):
            if external.entry_id == entry_id and not external.creating:
                return _of_external(external)
        if (record := self._datasets.find(entry_id.hex())) is not None:
            return entry_of_dataset(record)
        raise NotFound(f"Entry id '{entry_id.hex()}' not found")

    def rows(self, entry: CatalogEntry) -> Rows:
        """Returns the rows of an entry."""
        if entry.table is not None:
            return TableRows(self.store, self.root, entry.table)
        if entry.external is not None:
            return ExternalRows(entry.name, place_of(entry.url))
        return _EntryRows(self.table_of_entries)

    def register(self, name: str, url: str) -> CatalogEntry:
        """Adds an entry for the Lance table at a URL. The table's data is never deleted.

        Raises InvalidInput for an invalid name or URL and for a URL that overlaps another table, NotFound where the
        URL has no Lance table, and NameTaken where another entry has the name.
        """
        place = self._place_for(name, url)
        if not has_dataset(place):
            raise no_dataset(place, name)
        ExternalRows(name, place).schema()
        return self._put(registry.new_entry(name, url, self.clock.now()))

    def create_in_instance(self, name: str, schema: pa.Schema) -> CatalogEntry:
        """Creates a table of the instance, with the index columns as its row keys. Raises InvalidInput for an invalid
        name or schema, and NameTaken."""
        self._require_free(name)
        try:
            table_id = create_in_instance(self.store, self.root, name, schema)
        except Conflict:
            if registry.is_taken(self.store.instance(), name):
                raise _name_taken(name) from None
            raise
        table = self.store.instance().tables[table_id]
        return self._of(table, table.created_at)

    def create(self, name: str, schema: pa.Schema, url: str) -> CatalogEntry:
        """Creates a Lance table without rows at a URL, and its entry. A repeated call resumes an interrupted creation.

        Raises as `register` does; where there is already a table at the URL, it raises NameTaken.
        """
        for _ in range(_ATTEMPTS):
            try:
                return self._create(name, schema, url)
            except NameTaken:
                raise
            except Conflict as failure:  # another client creates an entry of that name
                lost = failure
        raise lost

    def _create(self, name: str, schema: pa.Schema, url: str) -> CatalogEntry:
        place = self._place_for(name, url)
        known = external_tables(self.store.instance())
        is_begun = any(each.creating and place_of(each.url) == place for each in known)
        entry, before = registry.new_entry(name, url, self.clock.now(), creating=True), None
        if not has_dataset(place):
            self._put(entry)
            is_begun, before = True, entry
            reached("catalog.create.begun")
            create(place, schema)
            reached("catalog.create.written")
        if not is_begun or not is_empty_with(place, schema):
            raise NameTaken(
                f"there is a Lance table at {url} already",
                where=name,
                remedy="choose another URL, or register that table",
            )
        return self._put(registry.activated(entry), before)

    def rename(self, entry_id: bytes, name: str) -> CatalogEntry:
        """Renames the entry to `name`. Raises NotFound for an unknown id, NameTaken where another entry has the name,
        InvalidInput for an invalid name, and Refused for a table or a dataset that a stack manages."""
        entry = self.by_id(entry_id)
        if entry.dataset is not None:
            refuse_managed(entry.dataset, "renamed", "change its name in the specs, and run `deployer up`")
            return entry_of_dataset(self._datasets.rename(entry.dataset.dataset_id, name))
        if entry.external is not None:
            registry.require_entry_name(name)
            if name == entry.name:
                return entry
            if full_name(name) != full_name(entry.name):
                self._require_free(name)
            return self._put(registry.renamed(entry.external, name, self.clock.now()), entry.external)
        table = _own_table(entry)
        database, _, bare = full_name(name).rpartition(".")
        for part in (database, bare):
            if fault := fault_of_name(part):
                raise InvalidInput(f"{part!r} {fault}", where=entry.name, remedy="name it `database.table`")
        if full_name(name) != table.full_name:
            self._require_free(name)
        self._refuse_managed(table, "renamed", "change its name in the specs, and run `deployer up`")
        rename_table(self.store, table, database, bare)
        return self.by_id(entry_id)

    def delete(self, entry_id: bytes) -> None:
        """Deletes the entry. A table of the instance is deleted with its data. The data of an external table and the
        recordings of a dataset stay.

        Raises NotFound for an unknown id. Raises Refused for a table that has rows and is protected from deletion, for
        a table with savepoints, and for a table or a dataset that a stack manages.
        """
        entry = self.by_id(entry_id)
        if entry.dataset is not None:
            refuse_managed(entry.dataset, "deleted", "take it out of the specs, and run `deployer up`")
            self._datasets.delete(entry.dataset.dataset_id)
            return
        if entry.external is not None:
            registry.remove(self.store, entry.external)
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

    def _place_for(self, name: str, url: str) -> Place:
        """Returns the place for a new entry. Raises InvalidInput for an invalid name or URL, and NameTaken."""
        registry.require_entry_name(name)
        self._require_free(name)
        place = place_of(url)
        known = external_tables(self.store.instance())
        refuse_overlap(place, url, self.root, [(each.name, place_of(each.url)) for each in known if not each.creating])
        return place

    def _require_free(self, name: str) -> None:
        if registry.is_taken(self.store.instance(), name):
            raise _name_taken(name)

    def _put(self, entry: ExternalTable, before: ExternalTable | None = None) -> CatalogEntry:
        try:
            registry.put(self.store, entry, before)
        except Conflict:  # the name was taken meanwhile, or the entry was changed
            if registry.is_taken(self.store.instance(), entry.name):
                raise _name_taken(entry.name) from None
            raise
        return _of_external(entry)

    def _of(self, entry: TableEntry, at: int) -> CatalogEntry:
        updated = max(entry.created_at, at)
        url = dataset_location(self.root, entry)
        shown = url if "://" in url else f"file://{url}"
        return CatalogEntry(
            _id_of(entry.table_id, entry.created_at), entry.full_name, entry.created_at, updated, shown, entry
        )

    def _refuse_managed(self, table: TableEntry, what: str, remedy: str) -> None:
        owner = str(self.store.table(table.table_id).properties.declared.get(OWNER) or "")
        if owner and not owner.startswith(CLIENT):
            raise Refused(
                f"the table is managed by {owner} and cannot be {what} here", where=table.address, remedy=remedy
            )


def _of_external(entry: ExternalTable) -> CatalogEntry:
    return CatalogEntry(entry.entry_id, entry.name, entry.created_at, entry.updated_at, url=entry.url, external=entry)


def _name_taken(name: str) -> NameTaken:
    return NameTaken(f"Entry name '{name}' already exists", remedy="choose another name")


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
    """Returns the 16 bytes of a table's entry id: its creation time in nanoseconds, with which Rerun's ids begin, and a
    hash of its table id."""
    return (created_at * 1_000_000).to_bytes(8, "big") + hashlib.blake2b(table_id.encode(), digest_size=8).digest()
