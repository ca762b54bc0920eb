"""The port that clients connect to.

Rerun's client first sends `GET /version` over HTTP/1.1, and then makes calls over HTTP/2 on the same port. The gRPC
server accepts only HTTP/2. Therefore this module listens on the port: it answers the HTTP/1.1 request, and copies the
bytes of HTTP/2 connections to the gRPC socket, which only this user can open. On loopback, it serves only processes of
its own user. Each connection takes two threads; therefore the number of connections is limited, and a connection ends
when its client is gone or does not read.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import unquote

from deployer.platform.system.connections import IS_USER_KNOWN, connection_user

_HTTP_2 = b"PRI"  #: the first bytes of an HTTP/2 connection (RFC 9113, 3.4)
_PIECE = 1 << 18  #: most bytes that are copied at once
_PATIENCE = 30.0  #: seconds for a connection's first bytes, for an HTTP/1.1 request, and for the end of threads
_SENDING = 600  #: seconds within which a client must read some of the bytes that are sent to it
_CONNECTIONS = 256  #: most open connections; further connections are closed at once
_SILENT = 60  #: seconds of silence before the first TCP keepalive probe, and between probes
_PAUSE = 0.1  #: seconds before `accept` is called again after a temporary error
#: Temporary errors of `accept`: the connection ended, or there are too many open files or too little memory.
_TEMPORARY = frozenset({errno.ECONNABORTED, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EPROTO})
_MAX_HEAD = 8192  #: most bytes of an HTTP/1.1 request
_NO_BODY = b"Connection: close\r\nContent-Length: 0\r\n\r\n"


class LiveConnections:
    """The connections whose clients are still connected, by the path of the socket that gRPC sees as the peer.

    When a connection breaks, gRPC may first report a normal end of a stream of requests, and only later the break. This
    class drops a connection before gRPC can see its end, so that a call can check whether its client was still there.
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self._paths = set[str]()

    @contextmanager
    def connected(self, inner: str) -> Iterator[tuple[socket.socket, Callable[[], None]]]:
        """Yields a socket that is connected to the gRPC socket at path `inner`, and a function that marks the
        connection as ended."""
        path = f"{inner}.{next(self._numbers)}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
            try:
                server.bind(path)
                self._paths.add(path)
                server.connect(inner)
                yield server, lambda: self._paths.discard(path)
            finally:
                self._paths.discard(path)
                Path(path).unlink(missing_ok=True)

    def has(self, peer: str) -> bool:
        """Returns whether a client is still connected. `peer` is gRPC's name of its connection, `unix:PATH`."""
        return unquote(peer).removeprefix("unix:") in self._paths


@contextmanager
def front_port(host: str, port: int, inner: str, connections: LiveConnections) -> Iterator[int]:
    """Listens at `host` and `port` (0: any free port) for the duration of a `with` block; yields the port.

    `inner` is the path of the gRPC socket. Raises OSError where it cannot listen at that address.
    """
    listening = socket.create_server((host, port), backlog=128)
    only_user = listening.getsockname()[0] == "127.0.0.1" and IS_USER_KNOWN
    number = int(listening.getsockname()[1])

    def serve(client: socket.socket) -> None:
        try:
            _serve(client, inner, only_user, connections)
        finally:
            free.release()

    free = threading.BoundedSemaphore(_CONNECTIONS)
    accepting = threading.Thread(target=_accept, args=(listening, free, serve), daemon=True)
    accepting.start()
    try:
        yield number
    finally:
        with contextlib.suppress(OSError):  # wakes `accept`
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        accepting.join(_PATIENCE)


def _accept(listening: socket.socket, free: threading.BoundedSemaphore, serve: Callable[[socket.socket], None]) -> None:
    while True:
        try:
            client, _ = listening.accept()
        except OSError as failure:
            if failure.errno not in _TEMPORARY:  # the listening socket was closed
                return
            time.sleep(_PAUSE)
            continue
        if not free.acquire(blocking=False):
            client.close()
            continue
        try:
            threading.Thread(target=serve, args=(client,), daemon=True).start()
        except RuntimeError:  # there are too many threads
            client.close()
            free.release()


def _serve(client: socket.socket, inner: str, only_user: bool, connections: LiveConnections) -> None:
    with client, contextlib.suppress(OSError, RuntimeError):  # the client went away, or there are too many threads
        client.settimeout(_PATIENCE)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if only_user and not _is_of_this_user(client):
            return
        head = _first_bytes(client)
        if head == _HTTP_2:
            client.settimeout(None)
            _end_with_client(client)
            with connections.connected(inner) as (server, end):
                _pass_on_both(client, server, end)
        elif head:
            client.sendall(_answer(client))


def _end_with_client(client: socket.socket) -> None:
    """Sets the options that end the connection when the client disappears, or reads nothing for `_SENDING` seconds."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", _SENDING, 0))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option in ("TCP_KEEPIDLE", "TCP_KEEPINTVL"):  # not all systems have these options
        if hasattr(socket, option):
            client.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), _SILENT)


def _first_bytes(client: socket.socket) -> bytes:
    """Returns the first three bytes without consuming them; fewer where the client sends no more."""
    return client.recv(len(_HTTP_2), socket.MSG_PEEK | socket.MSG_WAITALL)


def _is_of_this_user(client: socket.socket) -> bool:
    host, port = client.getpeername()[:2]
    return connection_user(host, port, client.getsockname()[1]) == os.geteuid()


def _answer(client: socket.socket) -> bytes:
    """Reads an HTTP/1.1 request and returns the answer."""
    request = b""
    ends = time.monotonic() + _PATIENCE
    while b"\r\n\r\n" not in request and len(request) < _MAX_HEAD:
        client.settimeout(max(ends - time.monotonic(), 0.001))
        piece = client.recv(_MAX_HEAD)
        if not piece:
            break
        request += piece
    if request.startswith((b"GET /version ", b"GET /version?")):
        return b"HTTP/1.1 200 OK\r\n" + _NO_BODY
    return b"HTTP/1.1 404 Not Found\r\n" + _NO_BODY


def _pass_on_both(client: socket.socket, server: socket.socket, end: Callable[[], None]) -> None:
    """Copies bytes in both directions until both are closed. Calls `end` when the client closes its direction.

    Where gRPC closes its direction or the client does not read, no more answers can be sent. Then the client's
    direction is closed too.
    """

    def pass_back() -> None:
        _pass_on(server, client)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    back = threading.Thread(target=pass_back, daemon=True)
    back.start()
    _pass_on(client, server, end)
    back.join()


def _pass_on(source: socket.socket, target: socket.socket, end: Callable[[], None] = lambda: None) -> None:
    """Copies bytes from `source` to `target` until one of them is closed; then calls `end` and closes the target for
    writing."""
    piece = bytearray(_PIECE)
    view = memoryview(piece)
    with contextlib.suppress(OSError):
        while read := source.recv_into(piece):
            target.sendall(view[:read])
    end()
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
