"""The agent's HTTP server under clients that are slow, many, or led here by a name of their own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus

import pytest

from deployer.services.agent.http_server import Answer, Limits, answering, plain

GET = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n"


def answer(path: str) -> Answer:
    return plain(HTTPStatus.OK, path)


@contextmanager
def client(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as found:
        yield found


def all_of(connection: socket.socket) -> bytes:
    """What is sent until the other side ends it."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def asked(port: int, request: bytes) -> bytes:
    with client(port) as connection:
        connection.sendall(request)
        return all_of(connection)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with answering("127.0.0.1", 0, answer, Limits()) as found:
        yield found


@pytest.mark.parametrize(
    ("request_", "status", "body"),
    [
        (b"GET /a?b HTTP/1.1\r\nHost: localhost:9178\r\n\r\n", b"200 OK", b"/a\n"),
        (b"GET /a HTTP/1.0\r\n\r\n", b"200 OK", b"/a\n"),
        (b"HEAD /a HTTP/1.1\r\nHost: [::1]\r\n\r\n", b"200 OK", b""),
        (
            b"POST /a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nsomething",
            b"501 Not Implemented",
            b"Not Implemented\n",
        ),
        (b"GET a HTTP/1.1\r\n\r\n", b"400 Bad Request", b"Bad Request\n"),
        (b"\r\n\r\n", b"400 Bad Request", b"Bad Request\n"),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", b"431 Request Header Fields Too Large", None),
    ],
)
def test_what_is_answered(port: int, request_: bytes, status: bytes, body: bytes | None) -> None:
    """F27: requests of all kinds, one for each connection."""
    head, _, found = asked(port, request_).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 " + status)
    assert b"Connection: close" in head
    assert body is None or found == body


@pytest.mark.parametrize("host", [b"evil.example", b"evil.example:9178", b"192.168.1.2", b"127.0.0.1.evil.example"])
def test_a_name_that_somebody_leads_here_is_not_answered(port: int, host: bytes) -> None:
    """F27: a web page may resolve its own name to 127.0.0.1, and would read the names of all tables (DNS rebinding)."""
    assert asked(port, b"GET /metrics HTTP/1.1\r\nHost: " + host + b"\r\n\r\n").startswith(b"HTTP/1.1 421 ")


def test_a_server_for_others_answers_any_name() -> None:
    """F27: who listens on every interface is reached by names that deployer does not know."""
    with answering("0.0.0.0", 0, answer, Limits()) as found:  # noqa: S104 -- what is tested
        assert asked(found, b"GET / HTTP/1.1\r\nHost: agent.internal\r\n\r\n").startswith(b"HTTP/1.1 200 ")


SLOW: dict[str, Callable[[socket.socket], object]] = {
    "sends nothing": lambda connection: None,
    "sends a part": lambda connection: connection.sendall(GET[:10]),
    "does not take the answer": lambda connection: connection.sendall(GET.replace(b"healthz", b"large")),
    "does not close": lambda connection: connection.sendall(GET),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_slow_client_is_closed_by_a_total_deadline(name: str) -> None:
    """F27: the limit was of each read, so that a byte every other second kept a connection and its thread forever."""
    large = Answer(HTTPStatus.OK, "text/plain", b"x" * 50_000_000)
    with answering("127.0.0.1", 0, lambda path: large if path == "/large" else answer(path), Limits(0.2)) as found:
        with client(found) as connection:
            SLOW[name](connection)
            connection.settimeout(20)
            if name == "does not take the answer":
                threading.Event().wait(0.5)
            assert len(all_of(connection)) < 50_000_000  # it ends, by the server
        assert asked(found, GET).startswith(b"HTTP/1.1 200 ")


def test_a_trickle_is_closed_too() -> None:
    """F27: bytes that keep coming do not move the deadline."""
    with answering("127.0.0.1", 0, answer, Limits(0.3)) as found, client(found) as connection:
        ended = threading.Event()

        def trickle() -> None:
            try:
                while not ended.wait(0.02):
                    connection.sendall(b"x")
            except OSError:
                pass

        thread = threading.Thread(target=trickle)
        thread.start()
        assert all_of(connection) == b""
        ended.set()
        thread.join()


def test_more_connections_than_may_be_are_turned_away_at_once() -> None:
    """F27: 200 slow clients filled the backlog of 5, and each held a thread."""
    threads = threading.active_count()
    with answering("127.0.0.1", 0, answer, Limits(deadline=60, connections=3)) as found, ExitStack() as stack:
        slow = [stack.enter_context(client(found)) for _ in range(3)]
        for each in slow:
            each.sendall(GET[:10])
        for _ in range(20):
            assert asked(found, GET).startswith(b"HTTP/1.1 503 ")
        assert threading.active_count() == threads + 1
        slow[0].sendall(GET[10:])
        assert all_of(slow[0]).startswith(b"HTTP/1.1 200 ")
        slow[0].close()
        assert any(asked(found, GET).startswith(b"HTTP/1.1 200 ") for _ in range(100))
