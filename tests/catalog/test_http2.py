"""HTTP/2 as the catalog's server speaks it: windows, frames in unusual forms, and clients that break the rules."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployer.catalog.protocol.messages import cloud
from deployer.catalog.serving import server
from deployer.catalog.serving.grpc_calls import Status
from deployer.catalog.serving.http2.frames import (
    DEFAULT_WINDOW,
    END_HEADERS,
    END_STREAM,
    INITIAL_WINDOW_SIZE,
    MAX_FRAME_SIZE,
    PADDED,
    PREFACE,
    PRIORITY,
    Code,
    ConnectionFault,
    FrameReader,
    Kind,
    frame,
    head,
    number,
    settings,
)
from deployer.catalog.serving.http2.headers import LARGEST, HeaderDecoder, encoded
from deployer.catalog.serving.http2.streams import WINDOW, Stream
from deployer.catalog.serving.server import served
from deployer.state import open_store
from tests.catalog.clients import Client
from tests.catalog.http2_client import EMPTY, FrameClient, request
from tests.tables.lakes import Lake, flights


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    lake = Lake(tmp_path_factory.mktemp("http2"))
    lake.table()
    lake.ingest(lake.file(flights(2000)))
    with closing(open_store(lake.root)) as store, served(store, lake.root) as url:
        yield url.removeprefix("rerun+http://")


#: Blocks of RFC 7541 (C.4.1, C.6.1) and what they say; the second refers to no entry, and has Huffman's code.
BLOCKS: dict[str, tuple[str, list[tuple[bytes, bytes]]]] = {
    "request": (
        "828684418cf1e3c2e5f23a6ba0ab90f4ff",
        [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"www.example.com")],
    ),
    "answer": (
        "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
        [
            (b":status", b"302"),
            (b"cache-control", b"private"),
            (b"date", b"Mon, 21 Oct 2013 20:13:21 GMT"),
            (b"location", b"https://www.example.com"),
        ],
    ),
}


@pytest.mark.parametrize("case", BLOCKS)
def test_headers_are_decompressed(case: str) -> None:
    block, headers = BLOCKS[case]
    assert HeaderDecoder().decoded(bytes.fromhex(block)) == headers


def test_headers_refer_to_those_before_them() -> None:
    decoder = HeaderDecoder()
    first = decoder.decoded(bytes.fromhex("828684418cf1e3c2e5f23a6ba0ab90f4ff"))
    assert decoder.decoded(bytes.fromhex("828684be")) == first  # RFC 7541, C.4.2
    assert decoder.decoded(b"\x20") == []  # an empty table
    with pytest.raises(ConnectionFault):
        decoder.decoded(b"\xbe")


@given(st.lists(st.tuples(st.text("abcz-", min_size=1, max_size=9), st.text(st.characters(max_codepoint=126)))))
def test_headers_are_read_as_they_were_written(headers: list[tuple[str, str]]) -> None:
    found = HeaderDecoder().decoded(encoded(headers))
    assert [(name.decode(), value.decode()) for name, value in found] == headers


@given(st.binary(max_size=300))
def test_bytes_that_are_no_headers_are_a_fault_of_the_client(block: bytes) -> None:
    try:
        found = HeaderDecoder().decoded(block)
    except ConnectionFault as fault:
        assert fault.code in (Code.COMPRESSION_ERROR, Code.ENHANCE_YOUR_CALM)
    else:
        assert sum(len(name) + len(value) for name, value in found) <= LARGEST


def test_headers_that_are_small_only_when_compressed_are_refused() -> None:
    entry = b"\x40" + encoded([("a", "x" * 4000)])[1:]
    with pytest.raises(ConnectionFault, match="too large"):
        HeaderDecoder().decoded(entry + b"\xbe" * 60_000)


@given(st.data())
def test_frames_are_read_whatever_pieces_they_come_in(data: st.DataObject) -> None:
    sent = [frame(Kind.PING, payload=bytes(8)), settings({4: 9}), frame(Kind.DATA, 1, 3, b"x" * 300), b""]
    everything = PREFACE + b"".join(sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(everything)), max_size=8)))
    reader = FrameReader()
    found = [
        each
        for start, end in zip([0, *cuts], [*cuts, len(everything)], strict=True)
        for each in reader.frames(everything[start:end])
    ]
    assert b"".join(frame(Kind(each.kind), each.flags, each.stream, each.payload) for each in found) == b"".join(sent)


def test_answers_stay_within_the_windows_of_the_client(address: str) -> None:
    with FrameClient(address, {INITIAL_WINDOW_SIZE: 10}) as client:
        client.call(1, "Version")
        pieces, headers = client.answer(1, grow=7)
        assert headers[":status"] == "200" and headers["grpc-status"] == "0"
        assert max(map(len, pieces)) <= 10 and sum(map(len, pieces)) > 20
        answer = b"".join(pieces)
        assert cloud.VersionResponse.FromString(answer[5:]).build_info.crate_name.startswith("deployer ")
        assert int.from_bytes(answer[1:5], "big") == len(answer) - 5


def test_a_window_that_shrinks_holds_answers_back(address: str) -> None:
    with FrameClient(address, {INITIAL_WINDOW_SIZE: 4}) as client:
        client.call(1, "Version")
        assert len(client.until(Kind.DATA).payload) == 4
        client.ping()  # is answered, whatever waits
        client.send(settings({INITIAL_WINDOW_SIZE: 0}))
        client.send(number(Kind.WINDOW_UPDATE, 1, 5))  # of -4: one byte
        assert len(client.until(Kind.DATA).payload) == 1
        client.send(settings({INITIAL_WINDOW_SIZE: 1000}))
        pieces, headers = client.answer(1)
        assert pieces and headers["grpc-status"] == "0"


def test_frames_are_as_large_as_the_client_wants_them(address: str) -> None:
    with (
        FrameClient(address, {INITIAL_WINDOW_SIZE: 1 << 24}) as small,
        FrameClient(address, {INITIAL_WINDOW_SIZE: 1 << 24, MAX_FRAME_SIZE: 1 << 20}) as large,
        closing(Client(f"rerun+http://{address}")) as other,
    ):
        table = cloud.ScanTableRequest(table_id=other.entry("air.flights").id).SerializeToString()
        message = b"\0" + len(table).to_bytes(4, "big") + table
        found = list[bytes]()
        for client, most in ((small, 16_384), (large, 1 << 20)):
            client.send(number(Kind.WINDOW_UPDATE, 0, 1 << 24))
            client.call(1, "ScanTable", message)
            pieces, headers = client.answer(1)
            assert headers["grpc-status"] == "0" and max(map(len, pieces)) <= most
            found.append(b"".join(pieces))
            assert len(found[-1]) > 2 * 16_384
        assert len(pieces) < len(found[-1]) / 16_384
        assert len(found[0]) == len(found[1])


def test_calls_are_read_in_every_form_that_the_protocol_has(address: str) -> None:
    block = request("Version")
    forms = {
        "in pieces": frame(Kind.HEADERS, 0, 1, block[:9])
        + frame(Kind.CONTINUATION, 0, 1, block[9:20])
        + frame(Kind.CONTINUATION, END_HEADERS, 1, block[20:])
        + b"".join(frame(Kind.DATA, 0, 1, bytes([each])) for each in EMPTY)
        + frame(Kind.DATA, END_STREAM, 1),
        "padded": frame(Kind.HEADERS, END_HEADERS | PADDED | PRIORITY, 1, b"\3" + bytes(5) + block + bytes(3))
        + frame(Kind.DATA, END_STREAM | PADDED, 1, b"\7" + EMPTY + bytes(7)),
        "with trailers": frame(Kind.HEADERS, END_HEADERS, 1, block)
        + frame(Kind.DATA, 0, 1, EMPTY)
        + frame(Kind.HEADERS, END_HEADERS | END_STREAM, 1, encoded([("x", "y")])),
        "amid frames of other kinds": frame(Kind.PRIORITY, 0, 1, bytes(5))
        + frame(Kind.HEADERS, END_HEADERS, 1, block)
        + head(Kind(0), 0, 0, 0)[:3] + b"\xee\0\0\0\0\0"  # of an unknown kind
        + frame(Kind.DATA, END_STREAM, 1, EMPTY),
    }  # fmt: skip
    for sent in forms.values():
        with FrameClient(address) as client:
            client.send(sent)
            pieces, headers = client.answer(1)
            assert headers["grpc-status"] == "0" and len(b"".join(pieces)) > 5
            client.ping()


CUT = b"\0\0\0\0\x09abc"
BAD_CALLS: dict[str, tuple[list[tuple[str, str]], bytes, Status, str]] = {
    "without a message": ([], b"", Status.INVALID_ARGUMENT, "the call has no request"),
    "cut": ([], CUT, Status.INVALID_ARGUMENT, "was interrupted"),
    "compressed": ([], b"\1\0\0\0\0", Status.INVALID_ARGUMENT, "the request is compressed"),
    "a binary header": ([("x-a-bin", "*")], EMPTY, Status.INVALID_ARGUMENT, "x-a-bin is not base64"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_calls_that_are_not_grpc_are_errors_of_the_caller(case: str, address: str) -> None:
    more, message, status, text = BAD_CALLS[case]
    with FrameClient(address) as client:
        client.call(1, "FindEntries", message, *more)
        _, headers = client.answer(1)
        assert headers["grpc-status"] == str(int(status)) and text in headers["grpc-message"]
        client.ping()


def test_a_request_of_another_content_is_refused(address: str) -> None:
    with FrameClient(address) as client:
        block = encoded([(":method", "POST"), (":path", "/"), ("content-type", "text/plain")])
        client.send(frame(Kind.HEADERS, END_HEADERS | END_STREAM, 1, block))
        assert client.answer(1)[1] == {":status": "415"}


BEGUN = frame(Kind.HEADERS, END_HEADERS, 1, request("Version"))
FAULTS: dict[str, tuple[bytes, Code]] = {
    "a frame that is too large": (head(Kind.DATA, 0, 1, 1 << 20), Code.FRAME_SIZE_ERROR),
    "a stream of an even number": (frame(Kind.HEADERS, END_HEADERS, 2, request("Version")), Code.PROTOCOL_ERROR),
    "data of no stream": (frame(Kind.DATA, 0, 1, b"x"), Code.PROTOCOL_ERROR),
    "data after the end": (BEGUN + 2 * frame(Kind.DATA, END_STREAM, 1), Code.PROTOCOL_ERROR),
    "a window of no stream": (number(Kind.WINDOW_UPDATE, 5, 1), Code.PROTOCOL_ERROR),
    "a window that does not grow": (number(Kind.WINDOW_UPDATE, 0, 0), Code.PROTOCOL_ERROR),
    "a window that is too large": (number(Kind.WINDOW_UPDATE, 0, (1 << 31) - 1), Code.FLOW_CONTROL_ERROR),
    "a window of another size": (frame(Kind.WINDOW_UPDATE, 0, 0, b"x"), Code.FRAME_SIZE_ERROR),
    "more than the window": (BEGUN + 5 * frame(Kind.DATA, 0, 1, EMPTY + bytes(1 << 18))[:-5], Code.FRAME_SIZE_ERROR),
    "an initial window that is too large": (settings({4: 1 << 31}), Code.FLOW_CONTROL_ERROR),
    "a largest frame that is too small": (settings({5: 9}), Code.PROTOCOL_ERROR),
    "settings of another size": (frame(Kind.SETTINGS, payload=b"xyz"), Code.FRAME_SIZE_ERROR),
    "a ping of another size": (frame(Kind.PING, payload=b"xyz"), Code.FRAME_SIZE_ERROR),
    "a reset of no stream": (number(Kind.RST_STREAM, 7, 0), Code.PROTOCOL_ERROR),
    "more padding than bytes": (BEGUN + frame(Kind.DATA, PADDED, 1, b"\x09ab"), Code.PROTOCOL_ERROR),
    "a promise": (frame(Kind.PUSH_PROMISE, 0, 1, bytes(4)), Code.PROTOCOL_ERROR),
    "headers that do not end": (
        frame(Kind.HEADERS, 0, 1, b"x") + frame(Kind.CONTINUATION, 0, 1, bytes(60_000)) * 2,
        Code.ENHANCE_YOUR_CALM,
    ),
    "another frame amid headers": (
        frame(Kind.HEADERS, 0, 1, b"x") + frame(Kind.PING, payload=bytes(8)),
        Code.PROTOCOL_ERROR,
    ),
    "continued headers that did not begin": (frame(Kind.CONTINUATION, 0, 1, b"x"), Code.PROTOCOL_ERROR),
    "headers that are not": (frame(Kind.HEADERS, END_HEADERS, 1, b"\xff\xff\xff\xff"), Code.COMPRESSION_ERROR),
    "a message that is too large": (
        BEGUN + frame(Kind.DATA, 0, 1, b"\0\xff\xff\xff\xff"),
        Code.ENHANCE_YOUR_CALM,
    ),
    "too many pings": (
        frame(Kind.PING, payload=bytes(8)) * 4000,
        Code.ENHANCE_YOUR_CALM,
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_client_that_breaks_the_rules_loses_its_connection(case: str, address: str) -> None:
    sent, code = FAULTS[case]
    with FrameClient(address) as client:
        client.send(sent)
        assert client.goodbye() in (code, None)  # a goodbye is lost where the client still sends
    with FrameClient(address) as client:
        client.call(1, "Version")
        assert client.answer(1)[1]["grpc-status"] == "0"


@given(st.data())
def test_no_frames_end_the_server(address: str, data: st.DataObject) -> None:
    kinds = st.sampled_from([Kind.DATA, Kind.HEADERS, Kind.SETTINGS, Kind.WINDOW_UPDATE, Kind.RST_STREAM, Kind.PING])
    payloads = st.one_of(st.binary(max_size=40), st.sampled_from([request("Version"), EMPTY, bytes(8), bytes(4)]))
    made = st.builds(frame, kinds, st.integers(0, 255), st.sampled_from([0, 1, 2, 3, 5]), payloads)
    with FrameClient(address) as client, suppress(ConnectionError):
        client.send(b"".join(data.draw(st.lists(made, max_size=12))))
    with FrameClient(address) as client:
        client.call(1, "Version")
        assert client.answer(1)[1]["grpc-status"] == "0"


def test_calls_that_are_reset_leave_the_connection_to_others(address: str) -> None:
    with FrameClient(address) as client:
        for stream in range(1, 801, 2):
            client.call(stream, "FindEntries")
            client.send(number(Kind.RST_STREAM, stream, Code.CANCEL))
        client.call(801, "Version")
        assert client.answer(801)[1]["grpc-status"] == "0"


def test_calls_beyond_those_of_a_connection_are_refused(address: str) -> None:
    with FrameClient(address) as client:
        for stream in range(1, 2 * 257 + 1, 2):  # none is complete, so that none is answered
            client.send(frame(Kind.HEADERS, END_HEADERS, stream, request("Version")))
        assert client.until(Kind.RST_STREAM).payload == Code.REFUSED_STREAM.to_bytes(4, "big")
        client.send(frame(Kind.DATA, END_STREAM, 1, EMPTY))
        assert client.answer(1)[1]["grpc-status"] == "0"


def test_calls_beyond_those_of_the_server_are_refused(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_WAITING", 0)
    with (
        closing(open_store(lake.root)) as store,
        served(store, lake.root) as url,
        closing(Client(url)) as client,
        pytest.raises(grpc.RpcError, match=r"RESOURCE_EXHAUSTED.*try again later"),
    ):
        client("Version")


def test_a_connection_without_calls_is_ended(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE", 0.2)
    with (
        closing(open_store(lake.root)) as store,
        served(store, lake.root) as url,
        FrameClient(url.removeprefix("rerun+http://")) as client,
    ):
        first = client.until(Kind.GOAWAY)  # a call that is on its way would still be answered
        assert first.payload == ((1 << 31) - 1).to_bytes(4, "big") + bytes(4)
        assert client.goodbye() == Code.NO_ERROR


def test_requests_are_taken_no_faster_than_they_are_read() -> None:
    noted = list[Stream]()
    stream = Stream(1, [], DEFAULT_WINDOW, noted.append)
    message = b"\0" + (1 << 16).to_bytes(4, "big") + bytes(1 << 16)
    room, count = WINDOW, 0
    while room >= len(message):
        assert count < 1000, "the window grows without end"
        stream.arrived(message, len(message))
        room, count = room - len(message) + stream.more_room(), count + 1
    assert 4 << 20 <= count * len(message) < 6 << 20
    for taken in range(count):
        assert stream.take(1) == message[5:] and len(noted) == taken + 1
    assert stream.more_room() > 0
    with pytest.raises(ConnectionFault):
        for _ in range(100):
            stream.arrived(message, len(message))


def test_the_server_ends_while_calls_wait_for_their_clients(lake: Lake) -> None:
    before = set(threading.enumerate())
    lake.ingest(lake.file(flights(20_000)))
    with closing(open_store(lake.root)) as store, served(store, lake.root) as url:
        address = url.removeprefix("rerun+http://")
        with closing(Client(url)) as other:
            table = cloud.ScanTableRequest(table_id=other.entry("air.flights").id).SerializeToString()
        client = FrameClient(address, {INITIAL_WINDOW_SIZE: 1})
        for stream in range(1, 20, 2):
            client.call(stream, "ScanTable", b"\0" + len(table).to_bytes(4, "big") + table)
        client.until(Kind.DATA)
    with client:
        assert client.goodbye() is None
    assert not [each for each in set(threading.enumerate()) - before if each.name.startswith("catalog")]
