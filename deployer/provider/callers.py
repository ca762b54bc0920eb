"""The callers that may use a gRPC server on a loopback port: only processes of the same user.

Pulumi's protocol has no passwords: engines and plugins exchange a port, to which every user of the machine can connect.
On Linux the kernel reports the user of each end of a connection. Where both ends are deployer's, the caller also sends
a secret, which the plugin got in its environment. Other systems do not report the user of a connection; there only the
secret protects a server.
"""

from __future__ import annotations

import hmac
import inspect
import os
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from deployer.platform.system.connections import IS_USER_KNOWN, connection_user

TOKEN_VARIABLE = "DEPLOYER_PROVIDER_TOKEN"  # noqa: S105 -- a name
TOKEN_KEY = "deployer-token"  # noqa: S105 -- a name; of the metadata of a call


class Callers:
    """Decides about calls to the server at `port`, which is set when the server has one. `token` is the secret that
    callers send."""

    def __init__(self, token: str = "") -> None:
        self.port = 0
        self._token = token

    def refusal(self, context: Any) -> str | None:
        """Returns why the caller is not allowed; None when it is allowed."""
        if self._token:
            sent = next((value for key, value in context.invocation_metadata() or () if key == TOKEN_KEY), "")
            if not hmac.compare_digest(str(sent).encode(), self._token.encode()):
                return "the call has no secret, or a wrong one: only the engine that started this plugin may call it"
        if not IS_USER_KNOWN:
            return None
        user = user_of(context.peer(), self.port)
        if user == os.geteuid():
            return None
        whose = "an unknown user" if user is None else f"the user with the number {user}"
        return f"the connection belongs to {whose}, and only the user who started this server may call it"


def user_of(peer: str, port: int) -> int | None:
    """Returns the user whose process has the other end of an open connection to `port` here; None when the user is
    unknown.

    `peer` is gRPC's form, such as `ipv4:127.0.0.1:40000`.
    """
    kind, _, rest = peer.partition(":")
    address, _, number = rest.rpartition(":")
    if kind != "ipv4" or not number.isdecimal():
        return None
    return connection_user(address, int(number), port)


class Guard(grpc.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Refuses calls of other users for every method of a server with threads."""

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
    """Refuses calls of other users for every method of a server with asyncio."""

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
            if inspect.isawaitable(found):  # the method writes its answers itself
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
