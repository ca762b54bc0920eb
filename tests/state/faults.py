"""A proxy that stands between a client and a server and does what networks and busy servers do. It counts, too."""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import urlsplit

Fault = Literal[
    "lose request",
    "lose answer",
    "delay",
    "duplicate",
    "500 before",
    "500 after",
    "throttle",
    "deny",
    "expired",
    "moved",
]

#: Each of dropping, delaying, duplicating, failing and throttling happens to 5% of the requests.
FIVE_PERCENT: Mapping[Fault, float] = {
    "lose request": 0.025,
    "lose answer": 0.025,
    "delay": 0.05,
    "duplicate": 0.05,
    "500 before": 0.025,
    "500 after": 0.025,
    "throttle": 0.05,
}

_HOP_BY_HOP = ("connection", "expect", "transfer-encoding", "content-length")


@dataclass
class Proxy:
    """`requests` are what clients sent, as `PutItem` or `GET`; `faults` what was done to those in `only`, or all."""

    target: str
    rates: Mapping[Fault, float]
    delay: float  # seconds, the longest
    seed: int
    only: Container[str] | None = None
    url: str = ""
    requests: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._random, self._lock = random.Random(self.seed), threading.Lock()  # noqa: S311

    def draw(self, request: str) -> tuple[Fault | None, float]:
        with self._lock:
            self.requests.append(request)
            point, delay = self._random.random(), self._random.uniform(0, self.delay)
            spared = self.only is not None and request not in self.only
            for fault, rate in () if spared else self.rates.items():
                point -= rate
                if point < 0:
                    self.faults[fault] += 1
                    return fault, delay
            return None, delay


@contextmanager
def proxy(target: str, rates: Mapping[Fault, float], *, delay: float = 0.8, seed: int = 1) -> Iterator[Proxy]:
    """A proxy to the server at `target` on a free port."""
    state = Proxy(target, rates, delay, seed)

    class Handler(_Handler):
        proxy = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    proxy: Proxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args: object) -> None:
        pass

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        operation = self.headers.get("X-Amz-Target", self.command).rpartition(".")[2]
        fault, delay = self.proxy.draw(operation)
        match fault:
            case None:
                self._answer(*self._forwarded(body))
            case "lose request":
                self._hang_up()
            case "lose answer":
                self._forwarded(body)
                self._hang_up()
            case "delay":
                time.sleep(delay)
                self._answer(*self._forwarded(body))
            case "duplicate":
                self._forwarded(body)
                self._answer(*self._forwarded(body))
            case "500 before":
                self._fail()
            case "500 after":
                self._forwarded(body)
                self._fail()
            case "throttle":
                self._refuse("ProvisionedThroughputExceededException", 503, "SlowDown")
            case "deny":
                self._refuse("AccessDeniedException", 403, "AccessDenied")
            case "expired":
                self._refuse("ExpiredTokenException", 400, "ExpiredToken")
            case "moved":
                self._refuse("ResourceNotFoundException", 301, "PermanentRedirect")

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any  # noqa: N815

    def _forwarded(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(urlsplit(self.proxy.target).netloc, timeout=60)
        try:
            headers = {
                name: value for name, value in self.headers.items() if name.lower() not in ("connection", "expect")
            }
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        try:
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            length = {name.lower(): value for name, value in headers}.get("content-length", "0")
            self.send_header("Content-Length", length if self.command == "HEAD" else str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:  # the client gave up
            self.close_connection = True

    def _hang_up(self) -> None:
        self.close_connection = True

    def _fail(self) -> None:
        if "X-Amz-Target" in self.headers:
            self._answer(500, [], b'{"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError"}')
        else:
            self._answer(500, [], b"<Error><Code>InternalError</Code></Error>")

    def _refuse(self, kind: str, status: int, code: str) -> None:
        if "X-Amz-Target" in self.headers:
            self._answer(400, [], b'{"__type": "com.amazonaws.dynamodb.v20120810#%s"}' % kind.encode())
        else:
            self._answer(status, [], b"<Error><Code>%s</Code></Error>" % code.encode())
