"""The port that clients connect to.

Rerun's client first sends `GET /version` over HTTP/1.1, and then makes calls over HTTP/2 on the same port. On loopback,
the server serves only processes of its own user. Each connection has a thread; therefore the number of connections is
limited, and a connection ends when its client is gone or does not read.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from deployer.platform.system.connections import IS_USER_KNOWN, connection_user

_HTTP_2 = b"PRI"  #: the first bytes of an HTTP/2 connection (RFC 9113, 3.4)
_PATIENCE = 30.0  #: seconds for a connection's first bytes, for an HTTP/1.1 request, and for the end of threads
SENDING = 600.0  #: seconds within which a client must read some of the bytes that are sent to it
_CONNECTIONS = 256  #: most open connections; further connections are closed at once
_SILENT = 60  #: seconds of silence before the first TCP keepalive probe, and between probes
_PAUSE = 0.1  #: seconds before `accept` is called again after a temporary error
#: Temporary errors of `accept`: the connection ended, or there are too many open files or too little memory.
_TEMPORARY = frozenset({errno.ECONNABORTED, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EPROTO})
_MAX_HEAD = 8192  #: most bytes of an HTTP/1.1 request
_NO_BODY = b"Connection: close\r\nContent-Length: 0\r\n\r\n"


@contextmanager
def front_port(host: str, port: int, serve_http_2: Callable[[socket.socket], None]) -> Iterator[int]:
    """Listens at `host` and `port` (0: any free port) for the duration of a `with` block; yields the port.

    Calls `serve_http_2` for each HTTP/2 connection, in a thread of its own. Connections are closed at the end of the
    block. Raises OSError where it cannot listen at that address.
    """
    listening = socket.create_server((host, port), backlog=128)
    only_user = listening.getsockname()[0] == "127.0.0.1" and IS_USER_KNOWN
    number = int(listening.getsockname()[1])
    is_open, served, lock = [True], dict[socket.socket, threading.Thread](), threading.Lock()

    def serve(client: socket.socket) -> None:
        try:
            with lock:
                if not is_open[0]:
                    return client.close()
                served[client] = threading.current_thread()
            _serve(client, serve_http_2, only_user)
        finally:
            with lock:
                served.pop(client, None)
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
        with lock:
            is_open[0] = False
            rest = dict(served)
        for client in rest:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        for thread in rest.values():
            thread.join(_PATIENCE)


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


def _serve(client: socket.socket, serve_http_2: Callable[[socket.socket], None], only_user: bool) -> None:
    with client, contextlib.suppress(OSError, RuntimeError):  # the client disappeared, or there are too many threads
        client.settimeout(_PATIENCE)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if only_user and not _is_of_this_user(client):
            return
        head = _first_bytes(client)
        if head == _HTTP_2:
            _end_with_client(client)
            serve_http_2(client)
        elif head:
            client.sendall(_answer(client))


def _end_with_client(client: socket.socket) -> None:
    """Sets the options that end the connection when the client disappears."""
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
