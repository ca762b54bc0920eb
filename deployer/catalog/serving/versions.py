"""The supported releases of Rerun's client, and the check of the header in which a client states its release."""

from __future__ import annotations

import re
from collections.abc import Mapping

from deployer.errors import DeployerError

CLIENT_VERSION = "x-rerun-client-version"  #: the header, such as `rerun-py/0.28.2`
FIRST, LAST = 28, 31  #: the supported minor versions of rerun-sdk 0.x; the whole interface of 28 is supported

_VERSION = re.compile(r"[^/]*/v?(\d{1,9})\.(\d{1,9})(?:\D.*)?")


class UnsupportedClient(DeployerError):
    """The error for a client of an unsupported release."""

    kind = "UnsupportedClient"


def require_served(headers: Mapping[str, str]) -> None:
    """Raises UnsupportedClient for a client of an unsupported release. A client without the header is accepted."""
    client = headers.get(CLIENT_VERSION)
    if client is None:
        return
    found = _VERSION.fullmatch(client)
    if found is None or int(found[1]) != 0 or not FIRST <= int(found[2]) <= LAST:
        raise UnsupportedClient(
            f"this server answers clients of rerun-sdk 0.{FIRST} to 0.{LAST}, and the caller is {client[:80]!r}",
            remedy=f"install rerun-sdk 0.{FIRST}.*",
        )
