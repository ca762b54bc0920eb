"""`/healthz` and `/metrics` of an agent over HTTP."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST

from deployer.errors import InvalidInput
from deployer.services.agent.agent import Agent
from deployer.services.agent.metrics import AgentMetrics

LISTEN = "127.0.0.1:9178"  #: unless told otherwise: to this machine alone


def address_of(text: str) -> tuple[str, int]:
    """Host and port of `127.0.0.1:9178`, `:9178` (every interface) or `[::1]:9178`. Raises InvalidInput."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise InvalidInput(f"--listen: {text!r} is no address", remedy=f"write HOST:PORT, such as {LISTEN}, or `off`")
    return host.removeprefix("[").removesuffix("]") or "0.0.0.0", int(port)  # noqa: S104 -- it was asked for


@contextmanager
def served(agent: Agent, listen: str) -> Iterator[str]:
    """Answers at `listen` (see `address_of`) from a thread; gives the address, with the port that 0 asked for.

    Raises InvalidInput when the address cannot be had.
    """
    host, port = address_of(listen)
    metrics = AgentMetrics(agent)

    class Handler(_Handler):
        def body(self, path: str) -> tuple[HTTPStatus, str, bytes]:
            if path == "/metrics":
                return HTTPStatus.OK, CONTENT_TYPE_LATEST, metrics.text()
            if path == "/healthz":
                return _health(agent)
            return HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", b"there are /healthz and /metrics\n"

    kind = _Server6 if ":" in host else _Server
    try:
        server = kind((host, port), Handler)
    except OSError as error:
        raise InvalidInput(
            f"--listen {listen}: {error.strerror or error}",
            remedy="give another address; port 0 takes a free one, and `off` none",
        ) from None
    thread = threading.Thread(target=server.serve_forever, name="agent-http", daemon=True)
    thread.start()
    try:
        yield f"{f'[{host}]' if ':' in host else host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _health(agent: Agent) -> tuple[HTTPStatus, str, bytes]:
    status = "ending" if agent.is_ending else "ok" if agent.is_well else "late"
    about = {"status": status, "seconds_since_last_look": round(agent.silent_for, 1), "runs": len(agent.workers)}
    code = HTTPStatus.OK if agent.is_well else HTTPStatus.SERVICE_UNAVAILABLE
    return code, "application/json", json.dumps(about).encode() + b"\n"


class _Server(ThreadingHTTPServer):
    daemon_threads = True


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD, and says nothing of who asks."""

    timeout = 10
    server_version, sys_version = "deployer", ""

    def body(self, path: str) -> tuple[HTTPStatus, str, bytes]:
        raise AssertionError

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        code, kind, body = self.body(self.path.partition("?")[0])
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are no events of the agent."""
