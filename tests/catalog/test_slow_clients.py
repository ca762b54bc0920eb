"""Clients that send or take too little, and too many of them: they lose connection or call, and others are served."""

from __future__ import annotations

import socket
import time
from contextlib import closing

import grpc
import pytest

from deployer.catalog.protocol.messages import SERVICE, cloud
from deployer.catalog.serving import front_port as ports
from deployer.catalog.serving import server
from deployer.catalog.serving.http2.frames import settings
from deployer.catalog.serving.server import served
from deployer.state import open_store
from tests.catalog.clients import Client
from tests.catalog.test_robustness import PREFACE
from tests.tables.lakes import Lake, flights


def connected(address: str) -> socket.socket:
    host, port = address.split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def is_closed(other: socket.socket) -> bool:
    try:
        return other.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.full
def test_a_call_whose_answers_are_not_taken_frees_its_thread(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE", 0.5)
    monkeypatch.setattr(server, "THREADS", 1)
    lake.ingest(lake.file(flights(400_000)))
    with (
        closing(open_store(lake.root)) as store,
        served(store, lake.root) as url,
        closing(Client(url)) as slow,
        closing(Client(url)) as other,
    ):
        scan = slow._channel.unary_stream(
            f"/{SERVICE}/ScanTable",
            cloud.ScanTableRequest.SerializeToString,
            cloud.ScanTableResponse.FromString,
        )
        answers = scan(cloud.ScanTableRequest(table_id=slow.entry("air.flights").id))
        next(answers)
        assert other.names() == ["air.flights", "air.empty"]  # waits for the only thread
        with pytest.raises(grpc.RpcError):
            list(answers)


def test_connections_beyond_the_limit_are_closed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_CONNECTIONS", 2)
    with closing(open_store(lake.root)) as store, served(store, lake.root) as url:
        address = url.removeprefix("rerun+http://")
        with connected(address) as first, connected(address) as second:
            for each in (first, second):
                each.sendall(PREFACE)
                assert each.recv(1)  # it is served
            with connected(address) as third:
                assert is_closed(third)
        until = time.monotonic() + 30
        while True:  # both are free as soon as their ends are seen
            with connected(address) as fourth:
                fourth.sendall(PREFACE)
                if not is_closed(fourth):
                    break
            assert time.monotonic() < until


def test_a_request_that_trickles_in_is_ended(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_PATIENCE", 0.3)
    with (
        closing(open_store(lake.root)) as store,
        served(store, lake.root) as url,
        connected(url.removeprefix("rerun+http://")) as other,
    ):
        other.sendall(b"GET /version")
        other.settimeout(0.05)
        ended = time.monotonic() + 20
        while time.monotonic() < ended:
            try:
                other.sendall(b" ")
                if is_closed(other):
                    return
            except TimeoutError:
                continue
            except ConnectionError:
                return
    raise AssertionError("it is still served")


@pytest.mark.full
def test_a_client_that_takes_no_bytes_loses_its_connection(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "SENDING", 0.5)
    monkeypatch.setattr(server, "PATIENCE", 2.0)
    sent = settings({}) * 4096  # each is answered
    with (
        closing(open_store(lake.root)) as store,
        served(store, lake.root) as url,
        connected(url.removeprefix("rerun+http://")) as client,
    ):
        client.settimeout(120)
        client.sendall(PREFACE)
        with pytest.raises(ConnectionError):
            while True:  # answers fill the buffers of both ends; then nothing more is read
                client.sendall(sent)
        with closing(Client(url)) as other:
            assert other.names() == ["air.flights", "air.empty"]
