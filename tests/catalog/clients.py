"""A client that calls the server as Rerun's does: by gRPC, with the messages of the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc
import pyarrow as pa
import pytest

from deployer.catalog.protocol.dataframes import part, rows_in, schema_message
from deployer.catalog.protocol.messages import SERVICE, cloud, methods

DATASET, VIEW, TABLE, BLUEPRINTS = 1, 2, 3, 5
APPEND, OVERWRITE, UPSERT = 1, 2, 3


class Client:
    """Calls the server at a URL."""

    def __init__(self, url: str) -> None:
        self.address = url.removeprefix("rerun+http://")
        self._channel = grpc.insecure_channel(self.address)
        self._methods = {each.name: each for each in methods()}

    def __call__(self, name: str, request: Any = None, headers: Sequence[tuple[str, str | bytes]] = ()) -> Any:
        """The answer, or the answers of a stream."""
        method = self._methods[name]
        kind = ("stream" if method.takes_stream else "unary") + "_" + ("stream" if method.gives_stream else "unary")
        response = getattr(cloud, f"{name}Response")
        serialize = type(method.request()).SerializeToString
        call = getattr(self._channel, kind)(f"/{SERVICE}/{name}", serialize, response.FromString)
        answer = call(method.request() if request is None else request, metadata=headers, timeout=60)
        return list(answer) if method.gives_stream else answer

    def entry(self, name: str) -> Any:
        [found] = self("FindEntries", cloud.FindEntriesRequest(filter={"name": name})).entries
        return found

    def rows(self, name: str) -> pa.Table:
        answers = self("ScanTable", cloud.ScanTableRequest(table_id=self.entry(name).id))
        return pa.Table.from_batches([batch for each in answers for batch in rows_in(each.dataframe_part)])

    def write(self, name: str, mode: int, *tables: pa.Table, entry_id: str | None = None) -> None:
        requests = [
            cloud.WriteTableRequest(dataframe_part=part(batch), insert_mode=mode)
            for table in tables
            for batch in table.to_batches()
        ]
        headers = [("x-rerun-entry-id", hex_of(self.entry(name).id) if entry_id is None else entry_id)]
        self("WriteTable", iter(requests), headers)

    def create(self, name: str, schema: pa.Schema, url: str | None) -> Any:
        """Creates a table at a URL, or one of the instance; returns its entry."""
        details = None if url is None else lance(url)
        request = cloud.CreateTableEntryRequest(name=name, schema=schema_message(schema), provider_details=details)
        return self("CreateTableEntry", request).table

    def register(self, name: str, url: str) -> Any:
        """Registers the table at a URL; returns its entry."""
        return self("RegisterTable", cloud.RegisterTableRequest(name=name, provider_details=lance(url))).table_entry

    def rename(self, entry: Any, name: str) -> Any:
        """Gives an entry another name; returns its details."""
        request = cloud.UpdateEntryRequest(id=entry.id, entry_details_update={"name": name})
        return self("UpdateEntry", request).entry_details

    def delete(self, entry: Any) -> None:
        self("DeleteEntry", cloud.DeleteEntryRequest(id=entry.id))

    def names(self) -> list[str]:
        """The names of all entries but `__entries`."""
        return [each.name for each in self("FindEntries").entries][1:]

    def close(self) -> None:
        self._channel.close()


def lance(url: str) -> dict[str, Any]:
    """The details of the provider of a Lance table."""
    value = cloud.LanceTable(table_url=url).SerializeToString()
    return {"type_url": "/rerun.cloud.v1alpha1.LanceTable", "value": value}


def hex_of(entry_id: Any) -> str:
    return f"{entry_id.id.time_ns:016x}{entry_id.id.inc:016x}"


def refused(code: str, match: str) -> Any:
    return pytest.raises(grpc.RpcError, match=rf"(?s)StatusCode\.{code}.*{match}")
