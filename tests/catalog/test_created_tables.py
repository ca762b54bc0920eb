"""Tables of the instance that clients create, without a URL."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deployer.catalog.protocol.dataframes import schema_in
from deployer.catalog.protocol.messages import cloud
from tests.catalog.clients import APPEND, UPSERT, Client, refused
from tests.tables.lakes import Lake

INDEX = {"rerun:is_table_index": "true"}
KEYED = pa.schema([pa.field("k", pa.int64(), metadata=INDEX), pa.field("v", pa.utf8())])


def test_a_table_without_a_url_is_one_of_the_instance(client: Client, lake: Lake) -> None:
    entry = client.create("notes", KEYED, None)
    assert entry.details.name == "default.notes" and client.entry("notes").id == entry.details.id
    table = lake.open("default.notes")
    assert table.opened.row_keys == ("k",)
    url = cloud.LanceTable.FromString(entry.provider_details.value).table_url
    assert url == f"file://{table.opened.location}"
    schema = schema_in(client("GetTableSchema", cloud.GetTableSchemaRequest(table_id=entry.details.id)).schema)
    assert schema.field("k").metadata == {b"rerun:is_table_index": b"true"}
    client.write("notes", APPEND, pa.table({"k": [1, 2], "v": ["a", "b"]}))
    client.write("notes", UPSERT, pa.table({"k": [2], "v": ["B"]}))
    assert client.rows("notes").to_pydict() == {"k": [1, 2], "v": ["a", "B"]}
    assert [each.kind for each in lake.open("default.notes").history()][:2] == ["upsert", "ingest"]


def test_it_is_renamed_and_deleted_by_clients_unless_it_is_protected(client: Client) -> None:
    client.create("air.notes", KEYED, None)
    client.rename(client.entry("air.notes"), "air.other")
    client.write("air.other", APPEND, pa.table({"k": [1], "v": ["a"]}))
    with refused("PERMISSION_DENIED", "holds 1 rows? and is protected from deletion"):
        client.delete(client.entry("air.other"))
    client.create("air.empty_notes", KEYED, None)
    client.delete(client.entry("air.empty_notes"))
    assert client.names() == ["air.flights", "air.empty", "air.other"]


BAD: dict[str, tuple[str, pa.Schema, str, str]] = {
    "taken": ("air.flights", KEYED, "ALREADY_EXISTS", "Entry name 'air.flights' already exists"),
    "name": ("air.a b", KEYED, "INVALID_ARGUMENT", "is not a name"),
    "parts": ("a.b.c", KEYED, "INVALID_ARGUMENT", "is not a name"),
    "no columns": ("air.t", pa.schema([]), "INVALID_ARGUMENT", "a table needs a column"),
    "column name": ("air.t", pa.schema([("a.b", pa.int64())]), "INVALID_ARGUMENT", "has a dot"),
    "key type": (
        "air.t",
        pa.schema([pa.field("k", pa.list_(pa.int64()), metadata=INDEX)]),
        "INVALID_ARGUMENT",
        "the index columns cannot be row keys",
    ),
    "column twice": ("air.t", pa.schema([("a", pa.int64()), ("a", pa.int64())]), "INVALID_ARGUMENT", "a"),
    "column type": ("air.t", pa.schema([("a", pa.month_day_nano_interval())]), "INVALID_ARGUMENT", "interval"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_a_table_is_refused(case: str, client: Client) -> None:
    name, schema, code, match = BAD[case]
    with refused(code, match):
        client.create(name, schema, None)
    assert client.names() == ["air.flights", "air.empty"]
