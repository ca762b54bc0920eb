"""A small HTTP server for GET requests: one thread, with limits for connections and their duration.

A connection has one request and one total deadline, from the accept to the last byte of the answer; a slow client is
closed at the deadline. Connections above the limit get 503 immediately.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus

_LONGEST_HEAD = 16 * 1024  #: bytes of a request's line and headers together
_BACKLOG = 512
_LINGER = 0.5  #: seconds for a refused client to read its answer


@dataclass(frozen=True, slots=True)
class Limits:
    """The seconds for one connection, and the number of concurrent connections."""

    deadline: float = 5.0
    connections: int = 64


@dataclass(frozen=True, slots=True)
class Answer:
    """The response for a path."""

    status: HTTPStatus
    kind: str
    body: bytes


def plain(status: HTTPStatus, text: str = "") -> Answer:
    """Returns an answer of one line of text."""
    return Answer(status, "text/plain; charset=utf-8", f"{text or status.phrase}\n".encode())


@contextmanager
def answering(host: str, port: int, answer: Callable[[str], Answer], limits: Limits) -> Iterator[int]:
    """Serves GET and HEAD of a path by `answer`, which is called in a thread; returns the port.

    Raises OSError. On a loopback address, `Host` must be a loopback name too, so that no web page can read the answers
    through its own name for this machine (DNS rebinding).
    """
    is_ipv6 = ":" in host
    bound = socket.create_server(
        (host, port),
        family=socket.AF_INET6 if is_ipv6 else socket.AF_INET,
        backlog=_BACKLOG,
        dualstack_ipv6=host == "::" and socket.has_dualstack_ipv6(),
    )
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()
    server = _Server(answer, limits, only_loopback=_is_loopback(host))
    thread = threading.Thread(target=_run, args=(loop, server, bound, ended), name="agent-http", daemon=True)
    thread.start()
    try:
        yield bound.getsockname()[1]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()


def _run(loop: asyncio.AbstractEventLoop, server: _Server, bound: socket.socket, ended: asyncio.Event) -> None:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(server.serve(bound, ended))


class _Server:
    def __init__(self, answer: Callable[[str], Answer], limits: Limits, *, only_loopback: bool) -> None:
        self._answer, self._limits, self._only_loopback = answer, limits, only_loopback
        self._open = self._turned_away = 0
        self._computing = asyncio.Semaphore(2)

    async def serve(self, bound: socket.socket, ended: asyncio.Event) -> None:
        server = await asyncio.start_server(self._connected, sock=bound, limit=_LONGEST_HEAD, backlog=_BACKLOG)
        async with server:
            await ended.wait()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_over = self._open >= self._limits.connections
        self._open += not is_over
        self._turned_away += is_over
        try:
            if not is_over:
                async with asyncio.timeout(self._limits.deadline):
                    await self._exchange(reader, writer)
            elif self._turned_away <= self._limits.connections:
                async with asyncio.timeout(_LINGER):
                    await self._send(writer, plain(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections"))
                    await self._drained(reader, writer)
        except (TimeoutError, OSError):
            pass
        finally:
            self._open -= not is_over
            self._turned_away -= is_over
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            await self._send(writer, plain(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE))
        except asyncio.IncompleteReadError:
            return
        else:
            method, path, host = _parsed(head)
            await self._send(writer, await self._answer_to(method, path, host), with_body=method != "HEAD")
        await self._drained(reader, writer)

    async def _answer_to(self, method: str, path: str, host: str) -> Answer:
        if not path.startswith("/"):
            return plain(HTTPStatus.BAD_REQUEST)
        if method not in ("GET", "HEAD"):
            return plain(HTTPStatus.NOT_IMPLEMENTED)
        if self._only_loopback and host and not _is_loopback(_without_port(host)):
            return plain(HTTPStatus.MISDIRECTED_REQUEST, "this agent answers only on its own machine")
        async with self._computing:
            return await asyncio.to_thread(self._answer, path.partition("?")[0])

    async def _send(self, writer: asyncio.StreamWriter, answer: Answer, *, with_body: bool = True) -> None:
        head = (
            f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\nServer: deployer\r\nConnection: close\r\n"
            f"Content-Type: {answer.kind}\r\nContent-Length: {len(answer.body)}\r\n\r\n"
        )
        writer.write(head.encode() + (answer.body if with_body else b""))
        await writer.drain()

    async def _drained(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Ends the answer and waits until the client has it: closing with unread input would discard it."""
        writer.write_eof()
        with suppress(asyncio.LimitOverrunError):
            while await reader.read(_LONGEST_HEAD):
                pass


def _parsed(head: bytes) -> tuple[str, str, str]:
    """Parses the method, path and `Host` of a request; empty where missing."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    path = rest.partition(" ")[0]
    hosts = [value.strip() for name, _, value in (line.partition(":") for line in lines) if name.lower() == "host"]
    return method, path, hosts[0] if hosts else ""


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
