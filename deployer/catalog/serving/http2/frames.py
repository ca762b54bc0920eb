"""The frames of HTTP/2 (RFC 9113, 4 and 6): reads and checks those of a client, and makes those of a server."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD = 9  #: bytes before the payload of a frame
LARGEST = 1 << 18  #: most bytes of the payload of a client's frame

END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20  #: flags

HEADER_TABLE_SIZE, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = 1, 3, 4, 5, 6
DEFAULT_WINDOW = 65_535
LARGEST_WINDOW = (1 << 31) - 1
SMALLEST_FRAME = 16_384  #: the least value of MAX_FRAME_SIZE
_LARGEST_FRAME = (1 << 24) - 1
_SETTING = struct.Struct(">HI")
_NUMBER = struct.Struct(">I")


class Kind(IntEnum):
    """The kinds of frames."""

    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


class Code(IntEnum):
    """The reasons for which a stream or a connection ends."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    FLOW_CONTROL_ERROR = 3
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    ENHANCE_YOUR_CALM = 11


class ConnectionFault(Exception):
    """A client violates the protocol. Its connection ends."""

    def __init__(self, code: Code, what: str) -> None:
        super().__init__(what)
        self.code = code


class Frame(NamedTuple):
    """A frame of a client. `stream` is 0 for a frame of the connection itself."""

    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def content(self) -> bytes:
        """The payload without padding and priority."""
        start, end = 0, len(self.payload)
        if self.flags & PADDED:
            if not self.payload:
                raise ConnectionFault(Code.FRAME_SIZE_ERROR, "a frame is too short for its padding")
            start, end = 1, end - self.payload[0]
        if self.kind == Kind.HEADERS and self.flags & PRIORITY:
            start += 5
        if start > end:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "a frame has more padding than bytes")
        return self.payload[start:end]

    @property
    def number(self) -> int:
        """The payload as a number of 31 bits. Raises ConnectionFault for a payload of another size."""
        if len(self.payload) != _NUMBER.size:
            raise ConnectionFault(Code.FRAME_SIZE_ERROR, "a frame does not have the size of its kind")
        return int(_NUMBER.unpack(self.payload)[0]) & LARGEST_WINDOW

    @property
    def settings(self) -> Iterator[tuple[int, int]]:
        """The settings. Raises ConnectionFault for forbidden values of settings that a server uses."""
        if self.stream or len(self.payload) % _SETTING.size:
            raise ConnectionFault(Code.FRAME_SIZE_ERROR, "a settings frame has a wrong size, or belongs to a stream")
        for setting, value in _SETTING.iter_unpack(self.payload):
            if setting == INITIAL_WINDOW_SIZE and value > LARGEST_WINDOW:
                raise ConnectionFault(Code.FLOW_CONTROL_ERROR, "the initial window is too large")
            if setting == MAX_FRAME_SIZE and not SMALLEST_FRAME <= value <= _LARGEST_FRAME:
                raise ConnectionFault(Code.PROTOCOL_ERROR, "the largest frame size is outside of its limits")
            yield setting, value


class FrameReader:
    """Splits the bytes that a client sends into frames."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._has_begun = False

    def frames(self, data: bytes | memoryview) -> Iterator[Frame]:
        """Yields the frames that these bytes complete. Raises ConnectionFault where the first bytes are not those of an
        HTTP/2 connection, and for frames that are too large."""
        found = self._bytes
        found += data
        place = 0
        if not self._has_begun:
            if found[: len(PREFACE)] != PREFACE[: len(found)]:
                raise ConnectionFault(Code.PROTOCOL_ERROR, "the connection does not begin with the preface of HTTP/2")
            if len(found) < len(PREFACE):
                return
            self._has_begun, place = True, len(PREFACE)
        while len(found) - place >= HEAD:
            length = int.from_bytes(found[place : place + 3], "big")
            if length > LARGEST:
                raise ConnectionFault(Code.FRAME_SIZE_ERROR, "a frame is too large")
            end = place + HEAD + length
            if len(found) < end:
                break
            stream = int.from_bytes(found[place + 5 : place + HEAD], "big") & LARGEST_WINDOW
            yield Frame(found[place + 3], found[place + 4], stream, bytes(found[place + HEAD : end]))
            place = end
        del found[:place]


def head(kind: Kind, flags: int, stream: int, length: int) -> bytes:
    """Returns the bytes of a frame before its payload."""
    return length.to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big")


def frame(kind: Kind, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    return head(kind, flags, stream, len(payload)) + payload


def settings(values: Mapping[int, int]) -> bytes:
    return frame(Kind.SETTINGS, payload=b"".join(_SETTING.pack(*each) for each in values.items()))


def number(kind: Kind, stream: int, value: int) -> bytes:
    """Returns a frame whose payload is a number: RST_STREAM or WINDOW_UPDATE."""
    return frame(kind, stream=stream, payload=_NUMBER.pack(value))


def goodbye(last_stream: int, code: Code) -> bytes:
    return frame(Kind.GOAWAY, payload=_NUMBER.pack(last_stream) + _NUMBER.pack(code))


def within_window(window: int) -> int:
    """Returns the size of a window. Raises ConnectionFault for one that is too large."""
    if window > LARGEST_WINDOW:
        raise ConnectionFault(Code.FLOW_CONTROL_ERROR, "a window is too large")
    return window
