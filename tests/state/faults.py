"""A proxy that stands between a client and a server and does what networks and busy servers do. It counts, too."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import parse_qs, urlsplit

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
    "no role",
    "not ready",
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

#: What AWS calls a refusal: of DynamoDB (and all that has a target in its header), of the others, and the status.
_REFUSALS: Mapping[str, tuple[str, str, int]] = {
    "throttle": ("ProvisionedThroughputExceededException", "SlowDown", 503),
    "deny": ("AccessDeniedException", "AccessDenied", 403),
    "expired": ("ExpiredTokenException", "ExpiredToken", 400),
    "not ready": ("ResourceNotFoundException", "NoSuchEntity", 404),
    "moved": ("ResourceNotFoundException", "PermanentRedirect", 301),
    "no role": ("ValidationException", "NoRole", 400),
}

_HOP_BY_HOP = ("connection", "expect", "transfer-encoding", "content-length")


@dataclass(frozen=True)
class Asked:
    """A request as a rule sees it. `operation` is `PutItem`, `CreateRole` or, for REST, `PUT`."""

    operation: str
    service: str  #: as in the signature's scope, such as `s3`
    path: str
    token: str  #: the session's


@dataclass
class Proxy:
    """`requests` are what clients sent, as `PutItem` or `GET`; `faults` what was done to those in `only`, or all."""

    target: str
    rates: Mapping[Fault, float]
    delay: float  # seconds, the longest
    seed: int
    only: Container[str] | None = None
    rule: Callable[[Asked], Fault | None] | None = None  #: says which requests are to fail, whatever the rates
    answered: Callable[[Asked, bytes], bytes] | None = None  #: sees every answer, and may give another
    url: str = ""
    requests: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._random, self._lock = random.Random(self.seed), threading.Lock()  # noqa: S311

    def draw(self, asked: Asked) -> tuple[Fault | None, float]:
        request = asked.operation
        with self._lock:
            self.requests.append(request)
            if self.rule is not None and (ruled := self.rule(asked)) is not None:
                self.faults[ruled] += 1
                return ruled, 0.0
            point, delay = self._random.random(), self._random.uniform(0, self.delay)
            spared = self.only is not None and request not in self.only
            for fault, rate in () if spared else self.rates.items():
                point -= rate
                if point < 0:
                    self.faults[fault] += 1
                    return fault, delay
            return None, delay


#: Puts proxies between this process and the servers, DynamoDB's and S3's.
Interpose = Callable[..., tuple[Proxy, Proxy]]


@contextmanager
def proxy(target: str, rates: Mapping[Fault, float], *, delay: float = 0.8, seed: int = 1) -> Iterator[Proxy]:
    """A proxy to the server at `target` on a free port."""
    state = Proxy(target, rates, delay, seed)

    class Handler(_Handler):
        proxy = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
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
    _asked: Asked
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args: object) -> None:
        pass

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._asked = self._described(body)
        fault, delay = self.proxy.draw(self._asked)
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
            case _:
                self._refuse(*_REFUSALS[fault])

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any  # noqa: N815

    def _described(self, body: bytes) -> Asked:
        scope = self.headers.get("Authorization", "").partition("Credential=")[2].split("/")
        named = parse_qs(body.decode("latin-1")) if "x-www-form" in self.headers.get("Content-Type", "") else {}
        operation = self.headers.get("X-Amz-Target", "").rpartition(".")[2] or named.get("Action", [self.command])[0]
        service = scope[3] if len(scope) > 3 else "sts"  # AssumeRoleWithWebIdentity is not signed
        return Asked(operation, service, self.path, self.headers.get("X-Amz-Security-Token", ""))

    def _forwarded(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(urlsplit(self.proxy.target).netloc, timeout=60)
        try:
            headers = {
                name: value for name, value in self.headers.items() if name.lower() not in ("connection", "expect")
            }
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
            if self.proxy.answered is not None:
                content = self.proxy.answered(self._asked, content)
            return answer.status, answer.getheaders(), content
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

    def _refuse(self, kind: str, code: str, status: int) -> None:
        words = "refused by the test's rule"
        kind = "ThrottlingException" if code == "SlowDown" and self._asked.service != "dynamodb" else kind
        if "X-Amz-Target" in self.headers:
            self._answer(400, [], json.dumps({"__type": f"com.amazonaws#{kind}", "message": words}).encode())
        elif self._asked.service == "emr-serverless":
            words = "Could not assume the role arn:aws:x" if code == "NoRole" else words
            self._answer(403, [("x-amzn-ErrorType", kind)], json.dumps({"message": words}).encode())
        elif self._asked.service == "s3":
            error = f"<Error><Code>{code}</Code><Message>{words}</Message></Error>"
            self._answer(status, [], error.encode())
        else:
            error = f"<ErrorResponse><Error><Code>{code}</Code><Message>{words}</Message></Error></ErrorResponse>"
            self._answer(status, [], error.encode())
