"""The checks that each request passes before a page is made, and the headers that each answer has.

On Linux, only processes of the server's own user get an answer. The Host header must be the server's own, so that no
web page reads the answers through its own name for this machine (DNS rebinding). Requests that other sites cause are
refused. A POST needs the token of the server's own pages. No header gives other sites access.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deployer.errors import Refused
from deployer.platform.system.connections import IS_USER_KNOWN, connection_user

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with `no-referrer`, browsers send forms with the origin `null`
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
LONGEST_FORM = 16 * 1024  #: bytes
TOKEN = "token"  # noqa: S105 -- the name of the field


def own_hosts(port: int) -> frozenset[str]:
    """Returns the values of Host that name a server on loopback at this port."""
    names = ("127.0.0.1", "localhost", "[::1]")
    return frozenset(f"{name}:{port}" for name in names) | (frozenset(names) if port == 80 else frozenset())


class Protection:
    """Refuses requests of other users, with another Host header, and those that other sites cause; sets `HEADERS` on
    every answer."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app, self._port, self._hosts = app, port, own_hosts(port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        headers = Headers(scope=scope)
        if not self._is_of_this_user(scope):
            refusal = PlainTextResponse("This server answers only the user who started it.\n", 403)
        elif (hosts := headers.getlist("host")) and (len(hosts) > 1 or hosts[0].lower() not in self._hosts):
            refusal = PlainTextResponse("The Host header names another server; open the printed URL.\n", 421)
        elif not hosts:
            refusal = PlainTextResponse("The request has no Host header.\n", 400)
        elif headers.get("sec-fetch-site", "none") not in ("same-origin", "none") or not self._is_own(headers):
            refusal = PlainTextResponse(
                "Another site caused this request. Open the address from the address bar of the browser.\n", 403
            )
        else:
            await self._app(scope, receive, with_headers)
            return
        await refusal(scope, receive, with_headers)

    def _is_of_this_user(self, scope: Scope) -> bool:
        if not IS_USER_KNOWN:
            return True
        address, number = scope["client"]
        return connection_user(address, number, self._port) == os.geteuid()

    def _is_own(self, headers: Headers) -> bool:
        """Returns whether the request has no Origin, or one of this server."""
        origin = headers.get("origin")
        return origin is None or origin.lower().removeprefix("http://") in self._hosts


class FormTokens:
    """The token of the forms of one server. It is in every form, and is not a cookie: other sites cannot send it."""

    def __init__(self) -> None:
        self.value = secrets.token_urlsafe(32)

    async def form(self, request: Request) -> Mapping[str, str]:
        """Returns the fields of a form that was sent. Raises Refused unless it has the token."""
        body = (await request.body()).decode("latin-1")
        kind = request.headers.get("content-type", "").partition(";")[0].strip()
        is_form = kind == "application/x-www-form-urlencoded"
        fields = dict(parse_qsl(body, keep_blank_values=True)) if is_form else {}
        if not hmac.compare_digest(fields.get(TOKEN, "").encode(), self.value.encode()):
            raise Refused("the form has no valid token; nothing was done", remedy="reload the page and send it again")
        return fields
