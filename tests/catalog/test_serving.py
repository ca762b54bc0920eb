"""The server of the catalog, called as Rerun's client calls it: by gRPC with the messages of the protocol."""

from __future__ import annotations

import http.client
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deployer.catalog import local
from deployer.catalog.protocol.dataframes import rows_in, schema_in
from deployer.catalog.protocol.messages import cloud, common
from deployer.catalog.serving import front_port as front
from deployer.catalog.serving.server import served
from deployer.errors import InvalidInput, NotFound
from deployer.state import open_store
from deployer.state.log.updates import SetTableProperties
from deployer.state.model.declared_properties import OWNER
from tests.catalog.clients import APPEND, DATASET, OVERWRITE, TABLE, UPSERT, VIEW, Client, hex_of, refused
from tests.tables.lakes import Lake, flights, sorted_rows


def test_the_tables_of_the_instance_are_its_entries(client: Client, lake: Lake) -> None:
    entries = client("FindEntries").entries
    assert [(each.name, each.entry_kind) for each in entries] == [
        ("__entries", TABLE),
        ("air.flights", TABLE),
        ("air.empty", TABLE),
    ]
    table = client("ReadTableEntry", cloud.ReadTableEntryRequest(id=client.entry("air.flights").id)).table
    provider = cloud.LanceTable.FromString(table.provider_details.value)
    assert table.provider_details.type_url == "/rerun.cloud.v1alpha1.LanceTable"
    assert provider.table_url == f"file://{lake.open().opened.location}"
    assert table.details.created_at.ToMilliseconds() == lake.open().opened.entry.created_at
    [listed] = client("ScanTable", cloud.ScanTableRequest(table_id=client.entry("__entries").id))
    [batch] = rows_in(listed.dataframe_part)
    assert batch["name"].to_pylist() == ["__entries", "air.flights", "air.empty"]
    assert batch["id"].to_pylist()[1].hex() == hex_of(client.entry("air.flights").id)


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({"entry_kind": TABLE}, ["__entries", "air.flights", "air.empty"]),
        ({"entry_kind": DATASET}, []),
        ({"name": "air.empty", "entry_kind": TABLE}, ["air.empty"]),
        ({"name": "none"}, []),
    ],
)
def test_entries_are_found_by_kind_and_name(wanted: dict[str, Any], names: list[str], client: Client) -> None:
    found = client("FindEntries", cloud.FindEntriesRequest(filter=wanted)).entries
    assert [each.name for each in found] == names


def test_rows_and_columns_are_those_of_the_table(client: Client) -> None:
    table_id = client.entry("air.flights").id
    schema = schema_in(client("GetTableSchema", cloud.GetTableSchemaRequest(table_id=table_id)).schema)
    keys = [field.name for field in schema if (field.metadata or {}).get(b"rerun:is_table_index") == b"true"]
    assert keys == ["carrier", "flight"]
    assert sorted_rows(client.rows("air.flights")) == sorted_rows(flights(40))
    assert client.rows("air.empty").num_rows == 0 and client.rows("air.empty").schema.names == schema.names


def test_rows_are_appended_replaced_by_key_and_overwritten_as_one_version_each(client: Client, lake: Lake) -> None:
    before = lake.open().opened.state.lance_version
    client.write("air.flights", APPEND, flights(10, 40), flights(10, 50))
    assert sorted_rows(client.rows("air.flights")) == sorted_rows(flights(60))
    changed = flights(5, 58)
    changed = changed.set_column(2, changed.schema.field("delay"), pa.array([7] * 5, changed["delay"].type))
    client.write("air.flights", UPSERT, changed)
    after = client.rows("air.flights")
    assert after.num_rows == 63 and after["delay"].to_pylist().count(7) >= 5
    client.write("air.flights", OVERWRITE, flights(3), flights(4, 3))
    assert sorted_rows(client.rows("air.flights")) == sorted_rows(flights(7))
    kinds = [each.kind for each in lake.open().history()][:3]
    assert kinds == ["overwrite", "upsert", "ingest"] and lake.open().opened.state.lance_version == before + 3


def test_a_table_is_renamed_and_deleted(client: Client, lake: Lake) -> None:
    entry = client.entry("air.empty")
    update = cloud.UpdateEntryRequest(id=entry.id, entry_details_update={"name": "air.other"})
    assert client("UpdateEntry", update).entry_details.name == "air.other"
    assert client.entry("air.other").id == entry.id
    taken = cloud.UpdateEntryRequest(id=entry.id, entry_details_update={"name": "air.flights"})
    with refused("ALREADY_EXISTS", "Entry name 'air.flights' already exists"):
        client("UpdateEntry", taken)
    client("DeleteEntry", cloud.DeleteEntryRequest(id=entry.id))
    assert [each.full_name for each in lake.store.instance().tables.values()] == ["air.flights"]
    with refused("PERMISSION_DENIED", "holds 40 rows and is protected from deletion"):
        client("DeleteEntry", cloud.DeleteEntryRequest(id=client.entry("air.flights").id))
    assert client.rows("air.flights").num_rows == 40


def test_a_table_that_a_stack_manages_is_not_renamed_or_deleted(client: Client, lake: Lake) -> None:
    table_id = lake.open("empty").opened.entry.table_id
    lake.store.commit(table_id, [SetTableProperties({"declared": {OWNER: "air/prod"}})])
    entry = client.entry("air.empty")
    with refused("PERMISSION_DENIED", "managed by air/prod and cannot be renamed here"):
        client("UpdateEntry", cloud.UpdateEntryRequest(id=entry.id, entry_details_update={"name": "air.other"}))
    with refused("PERMISSION_DENIED", "managed by air/prod and cannot be deleted here"):
        client("DeleteEntry", cloud.DeleteEntryRequest(id=entry.id))


NOBODYS = common.EntryId(id=common.Tuid(time_ns=1, inc=2))
BAD_CALLS: dict[str, tuple[str, Any, str, str]] = {
    "unknown id": ("ReadTableEntry", cloud.ReadTableEntryRequest(id=NOBODYS), "NOT_FOUND", "Entry id '0{15}10{15}2'"),
    "no id": ("ReadTableEntry", None, "INVALID_ARGUMENT", "No table entry ID provided"),
    "delete no id": ("DeleteEntry", None, "INVALID_ARGUMENT", "No entry ID provided"),
    "kind and unknown name": (
        "FindEntries",
        cloud.FindEntriesRequest(filter={"name": "none", "entry_kind": TABLE}),
        "NOT_FOUND",
        "Entry name 'none' not found",
    ),
    "kind of views": (
        "FindEntries",
        cloud.FindEntriesRequest(filter={"entry_kind": VIEW}),
        "UNIMPLEMENTED",
        "no views",
    ),
    "kind unspecified": (
        "FindEntries",
        cloud.FindEntriesRequest(filter={"entry_kind": 0}),
        "INVALID_ARGUMENT",
        "the entry kind of the filter is unspecified",
    ),
    "a call that is not served": ("WriteChunks", iter(()), "UNIMPLEMENTED", "does not answer WriteChunks"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_calls_that_do_not_fit_are_refused(case: str, client: Client) -> None:
    name, request, code, match = BAD_CALLS[case]
    with refused(code, match):
        client(name, request)


def test_rows_that_do_not_fit_change_nothing(client: Client, lake: Lake) -> None:
    before = lake.open().opened.state
    twice = pa.concat_tables([flights(1), flights(1)])
    with refused("INVALID_ARGUMENT", "is not an entry id"):
        client.write("air.flights", APPEND, flights(1), entry_id="zz")
    with refused("NOT_FOUND", "not found"):
        client.write("air.flights", APPEND, flights(1), entry_id="0" * 32)
    with refused("INVALID_ARGUMENT", "the insert mode is unspecified"):
        client.write("air.flights", 0, flights(1))
    with refused("INVALID_ARGUMENT", "several schemas"):
        client.write("air.flights", APPEND, flights(1), pa.table({"a": [1]}))
    with refused("INVALID_ARGUMENT", "the table has no row keys"):
        client.write("air.empty", UPSERT, flights(1))
    with refused("INVALID_ARGUMENT", "1 key is in more than one of the rows"):
        client.write("air.flights", UPSERT, twice)
    with refused("INVALID_ARGUMENT", "extra"):
        client.write("air.flights", APPEND, flights(1).append_column("extra", pa.array([1])))
    damaged = cloud.WriteTableRequest(dataframe_part=common.DataframePart(payload=b"none"), insert_mode=APPEND)
    with refused("INVALID_ARGUMENT", "the rows cannot be read"):
        client("WriteTable", iter([damaged]), [("x-rerun-entry-id", hex_of(client.entry("air.flights").id))])
    large = common.DataframePart(payload=b"x", compression=2, uncompressed_size=1 << 40)
    with refused("INVALID_ARGUMENT", "send smaller batches"):
        client(
            "WriteTable",
            iter([cloud.WriteTableRequest(dataframe_part=large, insert_mode=APPEND)]),
            [("x-rerun-entry-id", hex_of(client.entry("air.flights").id))],
        )
    assert lake.open().opened.state == before


def test_the_port_answers_what_the_client_asks_before_it_calls(client: Client) -> None:
    for path, status in (("/version", 200), ("/", 404), ("/" + "x" * 20_000, 404)):
        connection = http.client.HTTPConnection(client.address, timeout=30)
        with closing(connection):
            try:
                connection.request("GET", path)
                assert connection.getresponse().status == status
            except ConnectionError:  # what was not read of a head that is too long
                assert len(path) > 8192
    host, port = client.address.split(":")
    for start in (b"", b"P", b"\x00\x01\x02"):  # none of them ends the server
        with socket.create_connection((host, int(port)), timeout=30) as other:
            other.sendall(start)
    assert client("Version").build_info.crate_name.startswith("deployer ")


def test_other_users_of_the_machine_are_not_served(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "connection_user", lambda *_: os.geteuid() + 1)
    host, port = client.address.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as other:
        try:
            other.sendall(b"GET /version HTTP/1.1\r\n\r\n")
            assert other.recv(100) == b""
        except ConnectionError:
            pass


def test_a_port_that_is_taken_is_an_error(lake: Lake) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, closing(open_store(lake.root)) as store:
        port = taken.getsockname()[1]
        with (
            pytest.raises(InvalidInput, match=f"cannot listen at 127.0.0.1:{port}"),
            served(store, lake.root, port=port),
        ):
            pass


def test_a_program_has_a_server_for_the_time_of_a_block(lake: Lake) -> None:
    with local(lake.root) as url, closing(Client(url)) as client:
        assert client.rows("air.flights").num_rows == 40
    with pytest.raises(NotFound), local(str(lake.folder / "none")):
        pass


PROGRAM = """
import sys, time
from deployer.catalog import local
with local(sys.argv[1]) as url:
    print(url, flush=True)
    time.sleep(600)
"""


@pytest.mark.full
def test_the_server_of_a_program_that_is_killed_ends(lake: Lake) -> None:
    command = [sys.executable, "-c", PROGRAM, lake.root]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        with closing(Client(program.stdout.readline().strip())) as client:
            assert client.rows("air.flights").num_rows == 40
        [server] = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
        ended = os.pidfd_open(int(server))
        program.send_signal(signal.SIGKILL)
    assert select.select([ended], [], [], 120)[0] == [ended]
    os.close(ended)
