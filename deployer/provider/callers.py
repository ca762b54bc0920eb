"""Who may call a gRPC server on a loopback port: processes of this user, and no other on the machine.

Pulumi's protocol has no passwords: engines and plugins tell each other a port, which every user of the machine can
connect to. On Linux the kernel says to which user each end of a connection belongs. Where both ends are deployer's, the
caller sends a secret too, which the plugin got in its environment.

Other systems do not say whose a connection is; there only the secret protects a server.
"""

from __future__ import annotations

import hmac
import inspect
import os
import socket
import struct
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import grpc

TOKEN_VARIABLE = "DEPLOYER_PROVIDER_TOKEN"  # noqa: S105 -- a name
TOKEN_KEY = "deployer-token"  # noqa: S105 -- a name; of the metadata of a call

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_IS_KNOWN = sys.platform == "linux"  #: whether the system says whose a connection is


class Callers:
    """Decides about calls to the server at `port`, which is set once the server has one. `token`: what callers send."""

    def __init__(self, token: str = "") -> None:
        self.port = 0
        self._token = token

    def refusal(self, context: Any) -> str | None:
        """Returns why the caller is not allowed; None when it is."""
        if self._token:
            sent = next((value for key, value in context.invocation_metadata() or () if key == TOKEN_KEY), "")
            if not hmac.compare_digest(str(sent).encode(), self._token.encode()):
                return "the call has no secret, or another one: only the engine that started this plugin may call it"
        if not _IS_KNOWN:
            return None
        user = user_of(context.peer(), self.port)
        if user == os.geteuid():
            return None
        whose = "an unknown user" if user is None else f"the user with the number {user}"
        return f"the connection belongs to {whose}, and only the user who started this server may call it"


def user_of(peer: str, port: int) -> int | None:
    """Returns the user whose process has the other end of an open connection to `port` here; None when that is not
    known.

    `peer` is gRPC's form, such as `ipv4:127.0.0.1:40000`. A connection that its owner has closed already is no longer
    known: the kernel gives it to user 0 then.
    """
    kind, _, rest = peer.partition(":")
    address, _, number = rest.rpartition(":")
    if kind != "ipv4" or not number.isdecimal():
        return None
    try:
        packed = socket.inet_aton(address)
    except OSError:
        return None
    found = _asked_of_kernel(packed, int(number), port)
    return _found_in_tables(packed, int(number), port) if found is None else found


_SERVER = socket.inet_aton("127.0.0.1")
_ESTABLISHED = 1
_REQUEST = struct.Struct("=IHHIIBBBxI2s2s16s16s4s8s")  # nlmsghdr, inet_diag_req_v2, inet_diag_sockid in it
_ANSWER = struct.Struct("=IHHIIBBBB48sIIIII")  # nlmsghdr, inet_diag_msg
_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST = 4, 20, 1  # linux/netlink.h, linux/sock_diag.h


def _asked_of_kernel(client: bytes, number: int, port: int) -> int | None:
    """By the kernel's socket diagnostics (man sock_diag): one question, however many connections there are."""
    wanted = _REQUEST.pack(
        *(_REQUEST.size, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0),
        *(socket.AF_INET, socket.IPPROTO_TCP, 0, 1 << _ESTABLISHED),
        *(number.to_bytes(2, "big"), port.to_bytes(2, "big"), client, _SERVER, b"", b"\xff" * 8),
    )
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, _SOCK_DIAG) as asking:
            asking.settimeout(1.0)
            asking.send(wanted)
            answer = asking.recv(8192)
    except OSError:  # a sandbox without it
        return None
    if len(answer) < _ANSWER.size:
        return None
    _, kind, _, _, _, _, state, _, _, _, _, _, _, user, inode = _ANSWER.unpack_from(answer)
    return int(user) if (kind, state) == (_SOCK_DIAG_BY_FAMILY, _ESTABLISHED) and inode else None


def _found_in_tables(client: bytes, number: int, port: int) -> int | None:
    """By the list of all connections, which takes the kernel some milliseconds."""
    for table, form in zip(_TABLES, (_words, _mapped), strict=True):
        wanted = [f"{form(client)}:{number:04X}", f"{form(_SERVER)}:{port:04X}", f"{_ESTABLISHED:02X}"]
        for fields in _rows(table):
            if fields[1:4] == wanted and fields[9] != "0":
                return int(fields[7])
    return None


def _rows(table: Path) -> Iterator[list[str]]:
    try:
        lines = table.read_text(encoding="ascii").splitlines()
    except OSError:
        return
    yield from (fields for line in lines[1:] if len(fields := line.split()) > 9)


def _words(packed: bytes) -> str:
    """Returns the kernel's form of an address: words of 32 bits in the machine's order, in hexadecimal digits."""
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed))


def _mapped(packed: bytes) -> str:
    """Returns the same for a socket of IPv6 that is connected to an address of IPv4."""
    return _words(bytes(10) + b"\xff\xff" + packed)


class Guard(grpc.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Keeps callers that are not allowed from every method of a server of threads."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        handler = continuation(details)
        return None if handler is None else _wrapped(handler, self._one, self._many)

    def _one(self, method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def guarded(request: Any, context: Any) -> Any:
            self._check(context)
            return method(request, context)

        return guarded

    def _many(self, method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def guarded(request: Any, context: Any) -> Any:
            self._check(context)
            yield from method(request, context)

        return guarded

    def _check(self, context: Any) -> None:
        if (refusal := self._callers.refusal(context)) is not None:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, refusal)


class AsyncGuard(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Keeps callers that are not allowed from every method of a server of asyncio."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        handler = await continuation(details)
        return None if handler is None else _wrapped(handler, self._one, self._many)

    def _one(self, method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        async def guarded(request: Any, context: Any) -> Any:
            await self._check(context)
            return await method(request, context)

        return guarded

    def _many(self, method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        async def guarded(request: Any, context: Any) -> Any:
            await self._check(context)
            found = method(request, context)
            if inspect.isawaitable(found):  # it writes its answers itself
                await found
                return
            async for each in found:
                yield each

        return guarded

    async def _check(self, context: Any) -> None:
        if (refusal := self._callers.refusal(context)) is not None:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, refusal)


Wrap = Callable[[Callable[[Any, Any], Any]], Callable[[Any, Any], Any]]


def _wrapped(handler: Any, one: Wrap, many: Wrap) -> Any:
    """Returns the handler with its method in a guard: `one` for a single answer, `many` for a stream of them."""
    kinds = {
        (False, False): (grpc.unary_unary_rpc_method_handler, handler.unary_unary, one),
        (False, True): (grpc.unary_stream_rpc_method_handler, handler.unary_stream, many),
        (True, False): (grpc.stream_unary_rpc_method_handler, handler.stream_unary, one),
        (True, True): (grpc.stream_stream_rpc_method_handler, handler.stream_stream, many),
    }
    make, method, guard = kinds[handler.request_streaming, handler.response_streaming]
    return make(guard(method), handler.request_deserializer, handler.response_serializer)
