"""No request ends the server: malformed, truncated, oversized and unknown ones, and clients of other releases."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployer.catalog.protocol.dataframes import part, schema_message
from deployer.catalog.protocol.messages import SERVICE, cloud, methods
from deployer.catalog.serving import server
from deployer.catalog.serving.server import served
from deployer.catalog.serving.versions import CLIENT_VERSION
from deployer.state import open_store
from tests import forks
from tests.catalog.clients import APPEND, Client, hex_of, lance, refused
from tests.tables.lakes import Lake, flights

#: What a caller that errs is told. INTERNAL and UNKNOWN would be errors of the server.
ERRORS_OF_CALLERS = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNIMPLEMENTED,
}
TABLE_CALLS = (
    "Version", "FindEntries", "DeleteEntry", "UpdateEntry", "CreateTableEntry", "ReadTableEntry", "RegisterTable",
    "GetTableSchema", "ScanTable", "WriteTable",
)  # fmt: skip
DATASET_CALLS = (
    "CreateDatasetEntry", "ReadDatasetEntry", "UpdateDatasetEntry", "RegisterWithDataset", "QueryTasks",
    "QueryTasksOnCompletion", "GetDatasetSchema", "GetSegmentTableSchema", "ScanSegmentTable",
    "GetDatasetManifestSchema", "ScanDatasetManifest", "QueryDataset", "FetchChunks", "DoMaintenance",
)  # fmt: skip
ROWS = pa.record_batch({"carrier": ["UA", None], "flight": pa.array([1, 2], pa.int32()), "x": [[1.5], []]})


class RawClient:
    """Calls the server with bytes, whatever they are."""

    def __init__(self, url: str) -> None:
        self._channel = grpc.insecure_channel(url.removeprefix("rerun+http://"))
        self._methods = {each.name: each for each in methods()}

    def __call__(self, name: str, *requests: bytes, headers: tuple[tuple[str, str], ...] = ()) -> grpc.StatusCode:
        method = self._methods.get(name)
        takes = method is not None and method.takes_stream
        gives = method is not None and method.gives_stream
        kind = ("stream" if takes else "unary") + "_" + ("stream" if gives else "unary")
        call = getattr(self._channel, kind)(f"/{SERVICE}/{name}")
        try:
            answer = call(iter(requests) if takes else requests[0], metadata=headers, timeout=60)
            if gives:
                list(answer)
        except grpc.RpcError as failure:
            code: grpc.StatusCode = failure.code()
            return code
        return grpc.StatusCode.OK

    def close(self) -> None:
        self._channel.close()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RawClient, str, str]]:
    """A client of a server, and the ids of a table and of a dataset."""
    folder = tmp_path_factory.mktemp("robust")
    lake = Lake(folder)
    lake.table()
    lake.ingest(lake.file(flights(10)))
    with closing(open_store(lake.root)) as store, served(store, lake.root) as url:
        with closing(Client(url)) as client:
            table = hex_of(client.entry("air.flights").id)
            made = client("CreateDatasetEntry", cloud.CreateDatasetEntryRequest(name="drives"))
            dataset = hex_of(made.dataset.details.id)
        with closing(RawClient(url)) as raw:
            yield raw, table, dataset


def valid_requests(name: str, table: str) -> list[bytes]:
    """Requests of a call that are well formed, for examples that are nearly so."""
    entry_id = {"id": {"time_ns": int(table[:16], 16), "inc": int(table[16:], 16)}}
    details = lance("ftp://somewhere/outside")  # changed, it still names no place that could be written
    schema = schema_message(ROWS.schema)
    made: dict[str, Any] = {
        "DeleteEntry": {"id": {"id": {"time_ns": 1, "inc": 2}}},
        "UpdateEntry": {"id": entry_id, "entry_details_update": {"name": "air.flights"}},
        "CreateTableEntry": {"name": "__t", "schema": schema, "provider_details": details},
        "RegisterTable": {"name": "t", "provider_details": details},
        "ReadTableEntry": {"id": entry_id},
        "GetTableSchema": {"table_id": entry_id},
        "ScanTable": {"table_id": entry_id},
        "FindEntries": {"filter": {"id": entry_id, "entry_kind": 3}},
        "WriteTable": {"dataframe_part": part(ROWS), "insert_mode": APPEND},
    }
    request = next(each.request for each in methods() if each.name == name)
    return [request(**made.get(name, {})).SerializeToString()] * 2


def test_a_stream_that_stops_is_ended_and_writes_nothing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE", 0.3)
    stopped = threading.Event()

    def requests() -> Iterator[Any]:
        yield cloud.WriteTableRequest(dataframe_part=part(flights(1, 500).to_batches()[0]), insert_mode=APPEND)
        stopped.wait(60)

    with closing(open_store(lake.root)) as store, served(store, lake.root) as url, closing(Client(url)) as client:
        with refused("DEADLINE_EXCEEDED", r"was idle for 0\.3 s, and nothing was written"):
            client("WriteTable", requests(), [("x-rerun-entry-id", hex_of(client.entry("air.flights").id))])
        stopped.set()
        assert client.rows("air.flights").num_rows == 40
        client.write("air.flights", APPEND, flights(1, 500))
        assert client.rows("air.flights").num_rows == 41


@given(data=st.data())
def test_no_request_is_an_error_of_the_server(target: tuple[RawClient, str, str], data: st.DataObject) -> None:
    client, table, dataset = target
    name = data.draw(st.sampled_from(TABLE_CALLS + DATASET_CALLS))
    requests = valid_requests(name, table)
    kind = data.draw(st.sampled_from(["bytes", "changed", "cut", "as it is"]))
    if kind == "bytes":
        requests[-1] = data.draw(st.binary(max_size=200))
    elif kind == "changed" and requests[-1]:
        changed = bytearray(requests[-1])
        for place in data.draw(st.lists(st.integers(0, len(changed) - 1), min_size=1, max_size=8)):
            changed[place] = data.draw(st.integers(0, 255))
        requests[-1] = bytes(changed)
    elif kind == "cut":
        requests[-1] = requests[-1][: data.draw(st.integers(0, len(requests[-1])))]
    entry_id = data.draw(st.sampled_from([table, dataset, table.upper(), "", "zz", "0" * 32, "é", table[:-1]]))
    headers = (("x-rerun-entry-id", entry_id),) if entry_id.isascii() else ()
    code = client(name, *requests, headers=headers)
    assert code in ERRORS_OF_CALLERS | {grpc.StatusCode.OK}
    assert client("Version", b"") == grpc.StatusCode.OK


CALLS: dict[str, tuple[str, bytes, grpc.StatusCode]] = {
    "not a message": ("FindEntries", b"\xff\xff\xff", grpc.StatusCode.INVALID_ARGUMENT),
    "a length beyond the end": ("FindEntries", b"\x0a\xff\xff\xff\xff\x0f", grpc.StatusCode.INVALID_ARGUMENT),
    "too deep": ("FindEntries", b"\x0a\x7f" * 5000, grpc.StatusCode.INVALID_ARGUMENT),
    "unknown method": ("DropEverything", b"", grpc.StatusCode.UNIMPLEMENTED),
    "half of a text": ("FindEntries", b"\x0a\x04\x12\x02\xed\xa0", grpc.StatusCode.INVALID_ARGUMENT),
}


@pytest.mark.parametrize("case", CALLS)
def test_malformed_calls_are_errors_of_the_caller(case: str, target: tuple[RawClient, str, str]) -> None:
    name, request, code = CALLS[case]
    assert target[0](name, request) == code
    assert target[0]("Version", b"") == grpc.StatusCode.OK


SIZES: dict[str, dict[str, Any]] = {
    "more than fits": {"payload": b"x", "compression": 2, "uncompressed_size": 1 << 62},
    "less than there is": {"payload": b"\xf0" + b"\xff" * 50, "compression": 2, "uncompressed_size": 1},
    "an unknown compression": {"payload": b"x", "compression": 9},
    "a header beyond the end": {"payload": b"\xff\xff\xff\xff\xff\xff\xff\x7f"},
}


@pytest.mark.parametrize("case", SIZES)
def test_sizes_of_callers_are_not_trusted(case: str, target: tuple[RawClient, str, str]) -> None:
    client, table, _ = target
    request = cloud.WriteTableRequest(dataframe_part=SIZES[case], insert_mode=APPEND).SerializeToString()
    assert client("WriteTable", request, headers=(("x-rerun-entry-id", table),)) == grpc.StatusCode.INVALID_ARGUMENT


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"  #: with empty settings
CONNECTIONS = {
    "half a preface": PREFACE[:10],
    "garbage after the preface": PREFACE + b"\xde\xad\xbe\xef" * 64,
    "a frame of 16 MB that ends early": PREFACE + b"\xff\xff\xff\0\0\0\0\0\1" + b"x" * 100,
    "headers that are not": PREFACE + b"\0\0\4\1\4\0\0\0\1\xff\xff\xff\xff",
    "another protocol": b"\x16\3\1\2\0\1\0\1\xfc\3\3",
    "a request without an end": b"GET /version HTTP/1.1\r\nHost: x\r\n",
}


@pytest.mark.parametrize("case", CONNECTIONS)
def test_broken_connections_do_not_end_the_server(case: str, client: Client) -> None:
    host, port = client.address.split(":")
    for _ in range(3):
        with socket.create_connection((host, int(port)), timeout=30) as other:
            other.sendall(CONNECTIONS[case])
    assert client.names() == ["air.flights", "air.empty"]


def test_a_connection_that_cannot_be_accepted_is_not_the_last(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [OSError(errno.EMFILE, "too many open files"), OSError(errno.ECONNABORTED, "it is gone")]
    accept = socket.socket.accept

    def failing(listening: socket.socket) -> Any:
        if failures and listening.family == socket.AF_INET:
            raise failures.pop()
        return accept(listening)

    monkeypatch.setattr(socket.socket, "accept", failing)
    with closing(open_store(lake.root)) as store, served(store, lake.root) as url, closing(Client(url)) as client:
        assert client.names() == ["air.flights", "air.empty"] and not failures


VERSIONS = {
    "rerun-py/0.28.2": True,
    "rerun-py/0.31.0": True,
    "rerun-py/0.29.0-alpha.1+dev": True,
    "rerun-viewer/0.28.0": True,
    "rerun-py/0.27.3": False,
    "rerun-py/0.32.0": False,
    "rerun-py/0.281.0": False,
    "rerun-py/1.28.0": False,
    "rerun-py": False,
    "": False,
}


@pytest.mark.parametrize("version", VERSIONS)
def test_clients_of_other_releases_are_refused(version: str, client: Client) -> None:
    headers = [(CLIENT_VERSION, version)]
    assert client("Version", headers=headers).build_info.crate_name.startswith("deployer ")
    if VERSIONS[version]:
        assert client("FindEntries", headers=headers).entries
        return
    with refused("FAILED_PRECONDITION", "this server answers clients of rerun-sdk 0.28 to 0.31.*install rerun-sdk"):
        client("FindEntries", headers=headers)


WRITER = """
import os, signal, sys
from tests.catalog.clients import APPEND, Client, cloud, part
from tests.tables.lakes import flights

client = Client(sys.argv[1])

def requests():
    for start in (40, 50):
        for batch in flights(10, start).to_batches():
            yield cloud.WriteTableRequest(dataframe_part=part(batch), insert_mode=APPEND)
    print("sent", flush=True)
    sys.stdin.read()

client("WriteTable", requests(), [("x-rerun-entry-id", sys.argv[2])])
"""


def test_rows_of_a_stream_that_is_broken_off_are_not_written(client: Client, lake: Lake, tmp_path: Path) -> None:
    before = lake.open().opened.state
    command = [sys.executable, "-c", WRITER, f"rerun+http://{client.address}", hex_of(client.entry("air.flights").id)]
    with forks.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == b"sent\n"
        os.kill(writer.pid, signal.SIGKILL)
    client.write("air.empty", APPEND, flights(1))  # what came before it on the server is done
    assert lake.open().opened.state == before and client.rows("air.flights").num_rows == 40
