"""A client of HTTP/2 that sends frames as a test wants them, and reads those of the server."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from types import TracebackType

from deployer.catalog.protocol.messages import SERVICE
from deployer.catalog.serving.http2.frames import (
    ACK,
    END_HEADERS,
    END_STREAM,
    HEAD,
    PREFACE,
    Frame,
    Kind,
    frame,
    number,
    settings,
)
from deployer.catalog.serving.http2.headers import HeaderDecoder, encoded

EMPTY = bytes(5)  #: a message of gRPC without fields


def request(method: str, *more: tuple[str, str]) -> bytes:
    """The headers of a call."""
    found = [(":method", "POST"), (":scheme", "http"), (":path", f"/{SERVICE}/{method}"), (":authority", "here")]
    return encoded([*found, ("content-type", "application/grpc"), ("te", "trailers"), *more])


class FrameClient:
    """A connection to the server at `host:port`, after the settings of both sides."""

    def __init__(self, address: str, values: dict[int, int] | None = None) -> None:
        host, port = address.split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=60)
        self._decoder = HeaderDecoder()
        self._bytes = b""
        self.send(PREFACE + settings(values or {}))

    def __enter__(self) -> FrameClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def call(self, stream: int, method: str, message: bytes = EMPTY, *more: tuple[str, str]) -> None:
        """Sends a whole call with one message."""
        self.send(
            frame(Kind.HEADERS, END_HEADERS, stream, request(method, *more))
            + frame(Kind.DATA, END_STREAM, stream, message)
        )

    def next(self) -> Frame | None:
        """The next frame; None at the end of the connection."""
        while len(self._bytes) < HEAD or len(self._bytes) < HEAD + int.from_bytes(self._bytes[:3], "big"):
            try:
                read = self._socket.recv(1 << 16)
            except ConnectionError:
                read = b""
            if not read:
                return None
            self._bytes += read
        end = HEAD + int.from_bytes(self._bytes[:3], "big")
        head, payload = self._bytes[:HEAD], self._bytes[HEAD:end]
        self._bytes = self._bytes[end:]
        return Frame(head[3], head[4], int.from_bytes(head[5:], "big"), payload)

    def until(self, kind: Kind, flags: int = 0) -> Frame:
        """The next frame of a kind that has these flags; those before it are dropped."""
        while True:
            found = self.next()
            assert found is not None, "the connection ended"
            if found.kind == kind and found.flags & flags == flags:
                return found

    def answer(self, stream: int, grow: int = 0) -> tuple[Sequence[bytes], dict[str, str]]:
        """The pieces of DATA of a call, and its headers with the trailers. With `grow`, both windows grow by that many
        bytes after each piece."""
        pieces, headers = list[bytes](), dict[str, str]()
        while True:
            found = self.next()
            assert found is not None, "the connection ended"
            if found.stream != stream:
                continue
            if found.kind == Kind.DATA:
                pieces.append(found.payload)
                if grow:
                    self.send(number(Kind.WINDOW_UPDATE, 0, grow) + number(Kind.WINDOW_UPDATE, stream, grow))
            elif found.kind == Kind.HEADERS:
                headers |= {name.decode(): value.decode() for name, value in self._decoder.decoded(found.payload)}
                if found.flags & END_STREAM:
                    return pieces, headers

    def goodbye(self) -> int | None:
        """The code with which the server ends the connection; None where it ends without one."""
        while (found := self.next()) is not None:
            if found.kind == Kind.GOAWAY:
                return int.from_bytes(found.payload[4:8], "big")
        return None

    def ping(self, data: bytes = b"12345678") -> None:
        """Waits until the server has read all that was sent."""
        self.send(frame(Kind.PING, payload=data))
        assert self.until(Kind.PING, ACK).payload == data
