"""Downloads over HTTPS by Python's own client, which takes proxies (HTTPS_PROXY, NO_PROXY) and certificates
(SSL_CERT_FILE, SSL_CERT_DIR) from the environment.

Each address is checked before anything is sent to it, including addresses of redirects. Without encryption only servers
of this machine are used, unless the user gave the digest of the download.
"""

from __future__ import annotations

import http.client
import ipaddress
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

from deployer import __version__
from deployer.errors import Corrupt, DeployerError, NotFound, Refused
from deployer.platform.files.reading import in_mib
from deployer.platform.system.retry import Backoff

ARCHIVE_BYTES = 2 * 2**30  #: limit of an archive; Pulumi's archive for AWS has 200 MiB
_SMALL_BYTES = 2**20  #: limit of a file of checksums
_ATTEMPTS = 4
_BACKOFF = Backoff(first=0.2, longest=0.8)
_SILENCE = 30.0  #: seconds without any byte
_REDIRECTS = 5
_PART = 2**18
T = TypeVar("T")
_TEMPORARY = (408, 429, 500, 502, 503, 504)

#: downloaded bytes and all bytes (None: unknown)
OnBytes = Callable[[int, int | None], None]


class Unreachable(DeployerError):
    """A server did not answer, or its answer was interrupted, in every attempt."""

    kind = "Unreachable"


def read_text(url: str, *, plain: bool) -> str:
    """Returns a small text. `plain`: http may be used. Raises NotFound, Unreachable, Refused."""

    def read() -> str:
        with _opened(url, {}, plain) as answer:
            data: bytes = answer.read(_SMALL_BYTES + 1)
        if len(data) > _SMALL_BYTES:
            raise Corrupt(f"it has more than {in_mib(_SMALL_BYTES)}", where=url, remedy="check the address")
        return data.decode(errors="replace")

    return _attempted(url, read)


def download(url: str, file: Path, on_bytes: OnBytes, *, plain: bool) -> None:
    """Downloads `url` to `file`, and resumes an earlier interrupted download. Raises as `read_text`."""
    _attempted(url, lambda: _resume(url, file, on_bytes, plain))


def _resume(url: str, file: Path, on_bytes: OnBytes, plain: bool) -> None:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+b") as target:
        begun = target.seek(0, os.SEEK_END)
        headers = {"Range": f"bytes={begun}-"} if begun else {}
        try:
            with _opened(url, headers, plain) as answer:
                if begun and not _continues(answer, begun):
                    begun = target.seek(0)
                    target.truncate()
                _copy(url, answer, target, begun, on_bytes)
        except urllib.error.HTTPError as error:
            if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or not begun:
                raise
            target.truncate(0)  # the partial file is not a part of the server's file
            raise urllib.error.URLError("the server has less than was downloaded before") from None
        target.flush()
        os.fsync(target.fileno())


def _continues(answer: Any, begun: int) -> bool:
    content_range = str(answer.headers.get("Content-Range", ""))
    return answer.status == http.HTTPStatus.PARTIAL_CONTENT and content_range.startswith(f"bytes {begun}-")


def _copy(url: str, answer: Any, target: Any, begun: int, on_bytes: OnBytes) -> None:
    length = answer.headers.get("Content-Length")
    total = begun + int(length) if length and length.isdigit() else None
    _refuse_size(url, total or 0)
    done = begun
    on_bytes(done, total)
    while part := answer.read(_PART):
        done += len(part)
        _refuse_size(url, done)
        target.write(part)
        on_bytes(done, total)
    if total is not None and done < total:
        raise http.client.IncompleteRead(b"", total - done)


def _refuse_size(url: str, size: int) -> None:
    if size > ARCHIVE_BYTES:
        raise Refused(
            f"the archive has more than {in_mib(ARCHIVE_BYTES)}", where=url, remedy="check what the server has there"
        )


def _attempted(url: str, attempt: Callable[[], T]) -> T:
    """Calls `attempt` several times until it succeeds, and returns its result."""
    for _ in _BACKOFF.attempts(_ATTEMPTS):
        try:
            return attempt()
        except urllib.error.HTTPError as error:
            why = f"the server answered {error.code} {error.reason}"
            if error.code in (http.HTTPStatus.NOT_FOUND, http.HTTPStatus.GONE):
                raise NotFound(why, where=url) from None
            if error.code not in _TEMPORARY:
                break
        except urllib.error.URLError as error:
            why = _describe_reason(error.reason)
            if isinstance(error.reason, ssl.SSLCertVerificationError):
                break
        except (OSError, http.client.HTTPException) as error:
            why = _describe_reason(error)
    raise Unreachable(why, where=url)


def _describe_reason(reason: object) -> str:
    match reason:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {reason.verify_message}"
        case http.client.IncompleteRead():
            return f"the answer broke off before its end ({reason.expected:,} bytes are missing)"
        case TimeoutError():
            return f"no answer within {_SILENCE:g} s"
        case OSError():
            return reason.strerror or str(reason)
        case _:
            return str(reason) or type(reason).__name__


@contextmanager
def _opened(url: str, headers: dict[str, str], plain: bool) -> Iterator[Any]:
    """Yields the answer to a request, redirects followed. Raises HTTPError, OSError and others of the client, and
    Refused."""
    at = url
    for _ in range(_REDIRECTS + 1):
        check_address(at, plain=plain, after=url)
        request = urllib.request.Request(at, headers={"User-Agent": f"deployer/{__version__}", **headers})  # noqa: S310 -- checked
        try:
            answer = _client(at).open(request, timeout=_SILENCE)
        except urllib.error.HTTPError as error:
            with error:
                to = error.headers.get("Location")
                if error.code not in (301, 302, 303, 307, 308) or not to:
                    raise
                at = urljoin(at, to)
                continue
        with answer:
            yield answer
        return
    raise Refused(f"more than {_REDIRECTS} redirects", where=url, remedy="give the address that they lead to")


def check_address(url: str, *, plain: bool, after: str = "") -> None:
    """Raises Refused for an address that is not allowed. `after` is the address that redirected to it."""
    parts = urlsplit(url)
    where = after or url
    if parts.username is not None:
        raise Refused("the address has a user name in it", remedy="leave it out: no credential is sent to the server")
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and urlsplit(where).scheme == "http" and (plain or _is_loopback(parts.hostname)):
        return
    what = f"it leads to {parts.scheme}://{parts.netloc}" if url != where else "its address is not encrypted"
    raise Refused(
        f"{what}; nothing is downloaded from there",
        where=where,
        remedy="use https, or give the digest of the archive by --sha256",
    )


def _is_loopback(host: str | None) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def _client(url: str) -> urllib.request.OpenerDirector:
    """Returns a client for http and https only, without redirects. Servers of this machine are reached without a
    proxy."""
    parts = urlsplit(url)
    client = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler({} if _is_loopback(parts.hostname) else None),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        client.add_handler(handler)
    if parts.scheme == "https":  # the certificates take a while to load
        client.add_handler(urllib.request.HTTPSHandler(context=ssl.create_default_context()))
    return client
