"""Requests to one REST catalog, without redirects, proxies and metadata services, and with answers of limited size.

This layer replaces the HTTP layer of the generated client, which follows redirects and reads answers of any size.
"""

from __future__ import annotations

import ipaddress
import json
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import urllib3
from lance_namespace_urllib3_client.rest import RESTClientObject, RESTResponse
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from deployer.errors import InvalidInput
from deployer.services.kinds.metasync.targets.target import TargetFailed
from deployer.specs.values.target_server import Server, is_this_machine, refused_address

CONNECT_WITHIN, ANSWER_WITHIN = 10.0, 60.0  #: seconds; the second limit is for a whole answer
MOST_BYTES = 16 * 1024 * 1024  #: the largest size of an answer
_RETRIES = urllib3.Retry(connect=2, read=0, redirect=0, status=0, other=0)


class CheckedHttp(RESTClientObject):
    """The HTTP layer of a client of `server`.

    Every connection is checked after it is made and before anything is sent. So a later change in DNS has no effect on
    the check.
    """

    def __init__(self, server: Server) -> None:
        self._pools = urllib3.PoolManager(retries=_RETRIES, cert_reqs="CERT_REQUIRED")
        makers: dict[str, Any] = {
            "http": partial(_HttpPool, server=server),
            "https": partial(_HttpsPool, server=server),
        }
        self._pools.pool_classes_by_scheme = makers  # sets the classes of this manager only

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        post_params: Any = None,
        _request_timeout: Any = None,
    ) -> RESTResponse:
        """Sends one request with a JSON body. Raises TargetFailed, InvalidInput, and urllib3's HTTPError."""
        deadline = time.monotonic() + ANSWER_WITHIN
        answer = self._pools.urlopen(
            method,
            url,
            redirect=False,
            body=None if body is None else json.dumps(body),
            headers=dict(headers or {}),
            timeout=urllib3.Timeout(connect=CONNECT_WITHIN, read=ANSWER_WITHIN),
            preload_content=False,
        )
        try:
            found: Any = RESTResponse(answer)
            found.data = _read(answer, deadline)
        finally:
            answer.release_conn()
        if 300 <= answer.status < 400:
            raise TargetFailed(
                f"the server answered {answer.status} and names another address, which is not followed",
                remedy="declare the address that the server is really at",
            )
        response: RESTResponse = found
        return response


def _read(answer: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    parts, size = [], 0
    # The request does not accept compressed answers; to decode one could make a small answer large.
    while part := answer.read1(64 * 1024, decode_content=False):
        parts.append(part)
        size += len(part)
        late = time.monotonic() > deadline
        if size > MOST_BYTES or late:
            answer.close()
            why = f"is not complete after {ANSWER_WITHIN:g} s" if late else f"has more than {MOST_BYTES:,} bytes"
            raise TargetFailed(f"the server's answer {why}", remedy="check the server's log")
    return b"".join(parts)


def require_peer(server: Server, peer: str) -> None:
    """Raises InvalidInput where nothing may be sent to the IP address `peer`, to which the server's name resolved."""
    address = ipaddress.ip_address(peer.partition("%")[0])
    why = refused_address(address)
    if not why and server.is_loopback and not is_this_machine(address):
        why = "not an address of this machine"
    if why:
        raise InvalidInput(
            f"{server.host} leads to {address}, which is {why}; nothing was sent", remedy="correct the name in DNS"
        )


class _Http(HTTPConnection):
    server: Server

    def connect(self) -> None:
        super().connect()
        _check(self, self.server)


class _Https(HTTPSConnection):
    server: Server

    def connect(self) -> None:
        super().connect()
        _check(self, self.server)


def _check(connection: HTTPConnection, server: Server) -> None:
    assert connection.sock is not None  # noqa: S101 -- it is connected
    try:
        require_peer(server, connection.sock.getpeername()[0])
    except InvalidInput:
        connection.close()
        raise


class _HttpPool(HTTPConnectionPool):
    def __init__(self, *arguments: Any, server: Server, **options: Any) -> None:
        self.ConnectionCls = type("Http", (_Http,), {"server": server})
        super().__init__(*arguments, **options)


class _HttpsPool(HTTPSConnectionPool):
    def __init__(self, *arguments: Any, server: Server, **options: Any) -> None:
        self.ConnectionCls = type("Https", (_Https,), {"server": server})
        super().__init__(*arguments, **options)
