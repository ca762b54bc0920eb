"""Calls of gRPC on streams of HTTP/2: finds the call by its path, reads and sends messages, and ends with a status."""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import IntEnum
from threading import Lock
from typing import Any
from urllib.parse import quote

from google.protobuf.message import DecodeError

from deployer.catalog.protocol.messages import SERVICE, Method
from deployer.catalog.serving.http2.headers import encoded
from deployer.catalog.serving.http2.streams import (
    AnswerTimedOut,
    CallEnded,
    CompressedMessage,
    Part,
    RequestTimedOut,
    Stream,
)
from deployer.errors import DeployerError, InvalidInput

_LOG = logging.getLogger("deployer.catalog")
_BINARY = "-bin"  #: ends the names of headers whose values are bytes
_CONTENT = "application/grpc"
_LONGEST = 8000  #: most bytes of the text of a status; many clients refuse more than 16 KiB of headers
_PLAIN = "".join(
    chr(each) for each in range(0x20, 0x7F) if chr(each) != "%"
)  #: characters that need no percent-encoding in the text of a status
_BEGIN = encoded([(":status", "200"), ("content-type", _CONTENT)])
_UNKNOWN_CONTENT = encoded([(":status", "415")])


class Status(IntEnum):
    """The status codes of gRPC. Clients choose the class of an error by its code."""

    OK = 0
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    UNIMPLEMENTED = 12
    INTERNAL = 13


class IdleStream(DeployerError):
    """A caller sent neither a further request of its stream nor the end of the stream for too long."""

    kind = "IdleStream"


#: A call takes the request or the stream of requests, and the headers of the caller. It returns an answer or several.
Call = Callable[[Any, Mapping[str, str]], Any]


class Calls:
    """Answers calls in threads of a pool.

    `status` returns the status and the text for a failure. A call ends where its caller neither sends nor reads for
    `patience` seconds. At most `most` calls run or wait for a thread at a time; more calls are refused.
    """

    def __init__(
        self,
        calls: Mapping[Method, Call],
        status: Callable[[BaseException], tuple[Status, str]],
        pool: ThreadPoolExecutor,
        most: int,
        patience: float,
    ) -> None:
        self._calls = {f"/{SERVICE}/{method.name}".encode(): (method, call) for method, call in calls.items()}
        self._status, self._pool, self._most, self._patience = status, pool, most, patience
        self._count, self._lock = 0, Lock()

    def start(self, stream: Stream) -> None:
        """Begins to answer a call, and returns at once."""
        with self._lock:
            is_free = self._count < self._most
            self._count += is_free
        if not is_free:
            text = "the server answers as many calls as it can; try again later"
            return self._end(stream, False, Status.RESOURCE_EXHAUSTED, text)
        try:
            self._pool.submit(self._answer, stream)
        except RuntimeError:  # the server is stopping, or there are too many threads
            self._count_down()
            stream.cancel()

    def _count_down(self) -> None:
        with self._lock:
            self._count -= 1

    def _answer(self, stream: Stream) -> None:
        try:
            if not stream.is_gone:
                self._answered(stream)
        except AnswerTimedOut:
            _LOG.warning("a call was ended: its caller took no answer for %g s", self._patience)
            stream.cancel()
        except CallEnded:
            pass
        except BaseException:
            _LOG.exception("a call could not be answered")
            stream.cancel()
        finally:
            self._count_down()

    def _answered(self, stream: Stream) -> None:
        has_begun = False
        headers = dict(stream.headers)
        if not headers.get(b"content-type", b"").startswith(_CONTENT.encode()):
            return stream.put_headers(_UNKNOWN_CONTENT, True, self._patience)
        method, call = self._calls.get(headers.get(b":path", b""), (None, None))
        if method is None or call is None:
            name = headers.get(b":path", b"").decode("ascii", "replace")[:100]
            return self._end(stream, False, Status.UNIMPLEMENTED, f"this server does not know {name}")
        try:
            for parts in self._parts(method, call, stream):
                if not has_begun:
                    stream.put_headers(_BEGIN, False, self._patience)
                    has_begun = True
                stream.put_message(parts, self._patience)
        except (CallEnded, AnswerTimedOut):
            raise
        except (
            BaseException
        ) as failure:  # a panic in Lance is not an Exception; without an answer, the caller would wait
            if not stream.is_gone:
                self._end(stream, has_begun, *self._status(failure))
        else:
            self._end(stream, has_begun, Status.OK, "")

    def _end(self, stream: Stream, has_begun: bool, status: Status, text: str) -> None:
        found = [] if has_begun else [(":status", "200"), ("content-type", _CONTENT)]
        found.append(("grpc-status", str(int(status))))
        if text:
            found.append(("grpc-message", _percent_encoded(text)))
        with suppress(CallEnded):
            stream.put_headers(encoded(found), True, self._patience)

    def _parts(self, method: Method, call: Call, stream: Stream) -> Iterator[Sequence[Part]]:
        """Yields the parts of each message of the answer."""
        requests = self._requests(method, stream)
        given = requests if method.takes_stream else next(requests, None)
        if given is None:
            raise InvalidInput("the call has no request", remedy="send one")
        answer = call(given, _headers(stream))
        if not method.gives_stream:
            yield _parts_of(answer)
            return
        try:
            for each in answer:
                yield _parts_of(each)
        finally:
            if (close := getattr(answer, "close", None)) is not None:
                close()

    def _requests(self, method: Method, stream: Stream) -> Iterator[Any]:
        """Yields the requests as they arrive.

        Raises InvalidInput for malformed requests and where the caller ends the call before its requests, and
        IdleStream where the caller sends nothing for too long.
        """
        while True:
            try:
                data = stream.take(self._patience)
            except RequestTimedOut:
                raise IdleStream(
                    f"the stream of requests was idle for {self._patience:g} s, and nothing was written",
                    remedy="send all of it again, without such a pause",
                ) from None
            except CallEnded:
                raise InvalidInput("the stream of requests was interrupted", remedy="send all of it again") from None
            except CompressedMessage:
                raise InvalidInput("the request is compressed", remedy="send it without grpc-encoding") from None
            if data is None:
                return
            try:
                yield method.request.FromString(data)
            except DecodeError as failure:
                raise InvalidInput(
                    f"the request is not a {method.name} message: {failure}", remedy="send one"
                ) from None


def _parts_of(message: Any) -> Sequence[Part]:
    """Returns the bytes of an answer: a message, its bytes, or a list of parts."""
    if isinstance(message, list):
        return message
    return [message if isinstance(message, bytes) else bytes(message.SerializeToString())]


def _headers(stream: Stream) -> dict[str, str]:
    """Returns the headers of the caller. A header whose name ends in `-bin` has the base64 of a text."""
    found = dict[str, str]()
    for raw, value in stream.headers:
        name = raw.decode("ascii", "replace")
        if name.endswith(_BINARY):
            try:
                value = base64.b64decode(value + b"=" * (-len(value) % 4), validate=True)
            except binascii.Error:
                raise InvalidInput(f"the header {name} is not base64", remedy="encode its bytes so") from None
        found[name] = value.decode(errors="replace")
    return found


def _percent_encoded(text: str) -> str:
    encoded_text = quote(text, safe=_PLAIN)
    if len(encoded_text) <= _LONGEST:
        return encoded_text
    return quote(text[: _LONGEST // 12], safe=_PLAIN) + "..."
