"""The server: one process, on loopback, until it is interrupted."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from deployer.errors import InvalidInput
from deployer.ui.pages import Site, make_app
from deployer.ui.protection import Protection

HOST = "127.0.0.1"
_CONNECTIONS = 64  #: that may be open at once; more get 503


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
        log_level="critical",  # the page says what failed
        access_log=False,
        lifespan="off",
        ws="none",
        http="h11",
        loop="asyncio",
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)
