"""Answers the calls of `rerun.cloud.v1alpha1.RerunCloudService` about entries and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError

from deployer import __version__
from deployer.catalog.entries import CatalogEntry, Entries
from deployer.catalog.protocol.dataframes import part, rows_in, schema_in, schema_message
from deployer.catalog.protocol.messages import cloud, common, enum_value
from deployer.catalog.serving.grpc_calls import Call
from deployer.errors import InvalidInput, NotFound
from deployer.tables.ingest.request import Mode

_VIEWS = {enum_value("EntryKind", f"ENTRY_KIND_{kind}_VIEW") for kind in ("DATASET", "TABLE")}
_MODES: Mapping[int, Mode] = {
    enum_value("TableInsertMode", "TABLE_INSERT_MODE_APPEND"): "append",
    enum_value("TableInsertMode", "TABLE_INSERT_MODE_OVERWRITE"): "overwrite",
    enum_value("TableInsertMode", "TABLE_INSERT_MODE_REPLACE"): "upsert",
}
_SYSTEM_ENTRIES = enum_value("SystemTableKind", "SYSTEM_TABLE_KIND_ENTRIES")
ENTRY_ID = "x-rerun-entry-id"  #: the header that names the table of a call
_ENTRY_ID = re.compile(r"[0-9A-Fa-f]{32}")


@dataclass(frozen=True, slots=True)
class CatalogService:
    """The calls about entries and tables. Safe for threads."""

    entries: Entries

    def calls(self) -> Mapping[str, Call]:
        """Returns the calls that this service answers, by their names in the protocol."""
        return {
            "Version": self.version,
            "FindEntries": self.find_entries,
            "CreateTableEntry": self.create_table_entry,
            "RegisterTable": self.register_table,
            "ReadTableEntry": self.read_table_entry,
            "UpdateEntry": self.update_entry,
            "DeleteEntry": self.delete_entry,
            "GetTableSchema": self.get_table_schema,
            "ScanTable": self.scan_table,
            "WriteTable": self.write_table,
        }

    def version(self, request: Any, headers: Mapping[str, str]) -> Any:
        answer = cloud.VersionResponse()
        answer.build_info.crate_name = f"deployer {__version__}"
        return answer

    def find_entries(self, request: Any, headers: Mapping[str, str]) -> Any:
        """Returns the entries that match the filter. Raises NotFound for an unknown id or name if the filter has a kind
        too."""
        wanted = request.filter
        found = list(self.entries.all())
        if wanted.HasField("entry_kind"):
            if wanted.entry_kind in _VIEWS:
                raise Unsupported("this server has no views of datasets and tables")
            if not wanted.entry_kind:
                raise InvalidInput("the entry kind of the filter is unspecified", remedy="name a kind, or none")
            found = [each for each in found if wanted.entry_kind == each.kind]
        if wanted.HasField("id"):
            found = [each for each in found if each.entry_id == id_in(wanted.id)]
        if wanted.HasField("name"):
            found = [each for each in found if each.name in (wanted.name, f"default.{wanted.name}")]
        if not found and wanted.HasField("entry_kind"):
            if wanted.HasField("name"):
                raise NotFound(f"Entry name '{wanted.name}' not found")
            if wanted.HasField("id"):
                raise NotFound(f"Entry id '{id_in(wanted.id).hex()}' not found")
        return cloud.FindEntriesResponse(entries=[details_of(each) for each in found])

    def read_table_entry(self, request: Any, headers: Mapping[str, str]) -> Any:
        if not request.HasField("id"):
            raise InvalidInput("No table entry ID provided", remedy="send the id of the table")
        return cloud.ReadTableEntryResponse(table=_table_entry(self._table(id_in(request.id))))

    def create_table_entry(self, request: Any, headers: Mapping[str, str]) -> Any:
        """Creates a table at the URL of the request; the server never deletes its data. Without a URL (clients from
        0.29 on), it creates a table of the instance."""
        schema = schema_in(request.schema)
        if request.HasField("provider_details"):
            entry = self.entries.create(request.name, schema, _url_in(request.provider_details))
        else:
            entry = self.entries.create_in_instance(request.name, schema)
        return cloud.CreateTableEntryResponse(table=_table_entry(entry))

    def register_table(self, request: Any, headers: Mapping[str, str]) -> Any:
        entry = self.entries.register(request.name, _url_in(request.provider_details))
        return cloud.RegisterTableResponse(table_entry=_table_entry(entry))

    def update_entry(self, request: Any, headers: Mapping[str, str]) -> Any:
        entry_id, update = id_in(request.id), request.entry_details_update
        renamed = update.HasField("name")
        entry = self.entries.rename(entry_id, update.name) if renamed else self.entries.by_id(entry_id)
        return cloud.UpdateEntryResponse(entry_details=details_of(entry))

    def delete_entry(self, request: Any, headers: Mapping[str, str]) -> Any:
        if not request.HasField("id"):
            raise InvalidInput("No entry ID provided", remedy="send the id of the entry")
        self.entries.delete(id_in(request.id))
        return cloud.DeleteEntryResponse()

    def get_table_schema(self, request: Any, headers: Mapping[str, str]) -> Any:
        entry = self._table(id_in(request.table_id))
        return cloud.GetTableSchemaResponse(schema=schema_message(self.entries.rows(entry).schema()))

    def scan_table(self, request: Any, headers: Mapping[str, str]) -> Iterator[Any]:
        entry = self._table(id_in(request.table_id))
        for batch in self.entries.rows(entry).batches():
            yield cloud.ScanTableResponse(dataframe_part=part(batch))

    def write_table(self, requests: Iterator[Any], headers: Mapping[str, str]) -> Any:
        """Writes all rows of the stream as one version of the table."""
        entry_id = headers.get(ENTRY_ID, "")
        if not _ENTRY_ID.fullmatch(entry_id):
            raise InvalidInput(f"the header {ENTRY_ID} is not an entry id", remedy="send 32 hex digits")
        entry = self._table(bytes.fromhex(entry_id))
        first = next(requests, None)
        if first is not None:
            mode = _MODES.get(first.insert_mode)
            if mode is None:
                raise InvalidInput("the insert mode is unspecified", where=entry.name, remedy="name an insert mode")
            self.entries.rows(entry).write(_rows_of(chain([first], requests)), mode)
        return cloud.WriteTableResponse()

    def _table(self, entry_id: bytes) -> CatalogEntry:
        """Returns the entry of a table. Raises NotFound for an unknown id, and for the id of a dataset."""
        entry = self.entries.by_id(entry_id)
        if entry.dataset is not None:
            raise NotFound(f"Entry id '{entry_id.hex()}' not found", remedy="it is a dataset, and not a table")
        return entry


class Unsupported(Exception):
    """The error for a call that this server does not answer."""


def _rows_of(requests: Iterator[Any]) -> Iterator[pa.RecordBatch]:
    mode = None
    for request in requests:
        if mode is not None and request.insert_mode != mode:
            raise InvalidInput("one stream has several insert modes", remedy="send one stream for each mode")
        mode = request.insert_mode
        yield from rows_in(request.dataframe_part)


def _url_in(details: Any) -> str:
    """Returns the URL of a Lance table from a provider's details. Raises InvalidInput for another provider."""
    if details.type_url.rpartition("/")[2] != cloud.LanceTable.DESCRIPTOR.full_name:
        raise InvalidInput(
            f"{details.type_url or 'no provider'} is not the provider of a Lance table",
            remedy="give the URL of a Lance table",
        )
    try:
        return str(cloud.LanceTable.FromString(details.value).table_url)
    except DecodeError as failure:
        raise InvalidInput(
            f"the details of the provider cannot be read: {failure}", remedy="send a LanceTable"
        ) from None


def id_in(message: Any) -> bytes:
    return int(message.id.time_ns).to_bytes(8, "big") + int(message.id.inc).to_bytes(8, "big")


def details_of(entry: CatalogEntry) -> Any:
    found = cloud.EntryDetails(name=entry.name, entry_kind=entry.kind)
    time_ns, inc = int.from_bytes(entry.entry_id[:8], "big"), int.from_bytes(entry.entry_id[8:], "big")
    found.id.CopyFrom(common.EntryId(id=common.Tuid(time_ns=time_ns, inc=inc)))
    found.created_at.FromMilliseconds(entry.created_at)
    found.updated_at.FromMilliseconds(entry.updated_at)
    return found


def _table_entry(entry: CatalogEntry) -> Any:
    found = cloud.TableEntry(details=details_of(entry))
    is_system = entry.table is None and entry.external is None
    provider = cloud.SystemTable(kind=_SYSTEM_ENTRIES) if is_system else cloud.LanceTable(table_url=entry.url)
    found.provider_details.type_url = f"/{provider.DESCRIPTOR.full_name}"
    found.provider_details.value = provider.SerializeToString()
    return found
