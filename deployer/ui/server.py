"""The server: one process, on loopback, until it is interrupted. Connections of other users and of slow clients are
closed."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from deployer.errors import InvalidInput
from deployer.platform.system.connections import IS_USER_KNOWN, connection_user
from deployer.ui.pages import Site, make_app
from deployer.ui.protection import Protection

HOST = "127.0.0.1"
PATIENCE = 10.0  #: seconds for a client to send the next request or form, and to read some of an answer
_CONNECTIONS = 64  #: that may be open at once; more get 503


class Connection(H11Protocol):
    """A connection that is closed when its client does not send or read for `PATIENCE` seconds.

    A connection of another user is closed immediately, so that it does not count for the limit of connections.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._answered: Any = None  #: the request at the last check of the connection
        if IS_USER_KNOWN and not self._is_of_this_user():
            transport.abort()
        else:
            self._looking = self.loop.call_later(PATIENCE, self._end_if_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        if (looking := getattr(self, "_looking", None)) is not None:
            looking.cancel()
        super().connection_lost(exc)

    def _is_of_this_user(self) -> bool:
        if self.client is None or self.server is None or self.server[1] is None:
            return False
        return connection_user(*self.client, self.server[1]) == os.geteuid()

    def _end_if_slow(self) -> None:
        cycle = self.cycle
        waits = cycle is None or cycle.response_complete or cycle.more_body or self.flow.write_paused
        if waits and cycle is self._answered:
            self.transport.abort()
            return
        self._answered = cycle
        self._looking = self.loop.call_later(PATIENCE, self._end_if_slow)


@contextmanager
def bound(port: int) -> Iterator[tuple[socket.socket, int]]:
    """Yields a socket that listens on loopback, and its port; 0 is any that is free. Raises InvalidInput for a port
    that is in use."""
    try:
        listening = socket.create_server((HOST, port))
    except OSError as error:
        raise InvalidInput(
            f"port {port} cannot be used: {error.strerror}", where=HOST, remedy="choose another, or 0 for any: --port"
        ) from error
    with listening:
        yield listening, listening.getsockname()[1]


def server(site: Site, port: int) -> uvicorn.Server:
    """Returns the server of a site at this port; `run(sockets=[…])` serves until `should_exit` or a signal."""
    config = uvicorn.Config(
        Protection(make_app(site), port),
        log_config=None,
        log_level="critical",  # the page reports the failure
        access_log=False,
        lifespan="off",
        ws="none",
        http=Connection,
        loop="asyncio",
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)
