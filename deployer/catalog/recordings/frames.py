"""Reads the frames of a recording: a header, messages, and a footer with the byte ranges of all chunks.

The layout is that of `RRF2` as rerun-sdk 0.28 writes it. Sizes and ranges in a file are not trusted: each is compared
with the file's size.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import xxhash

from deployer.catalog.recordings.source import ByteSource
from deployer.errors import InvalidInput

MAGIC = b"RRF2"
HEADER = 12  #: bytes of the header: the magic number, the version, the options
MESSAGE_HEADER = 16  #: bytes before each message: its kind and length

END, CHUNK = 0, 2  #: kinds of messages; the payload of an END message is the footer
_KINDS = range(4)

_MESSAGE = struct.Struct("<QQ")
_STREAM_FOOTER = struct.Struct("<QQI4s4sI")  #: start, length, checksum; magic numbers; number of footers
_SEED = 7850921  #: the seed of the footer's checksum
_TAIL = 65_536  #: bytes that are read at the end of a file; most footers fit in them
_READ = 1 << 20  #: bytes of one read of a scan


@dataclass(frozen=True, slots=True)
class Footer:
    """The bytes of the footer, and the offset at which they begin. All chunks lie before that offset."""

    payload: bytes
    start: int


@dataclass(frozen=True, slots=True)
class Frame:
    """A message. `offset` and `length` are those of its payload, in bytes."""

    kind: int
    offset: int
    length: int


def require_recording(source: ByteSource) -> None:
    """Raises InvalidInput for a file that is not a recording of this format."""
    head = source.read(0, HEADER)
    if not head:
        raise InvalidInput("the file is empty", where=source.url, remedy="give a recording (.rrd)")
    if head[:4] != MAGIC or len(head) < HEADER:
        raise InvalidInput(
            f"the file is not a recording: it begins with {head[:4]!r}, not {MAGIC!r}",
            where=source.url,
            remedy="give a recording (.rrd) that rerun-sdk 0.23 or later wrote",
        )


def read_footer(source: ByteSource) -> Footer | None:
    """Returns the footer at the end of the file; None where the footer is missing or does not match its checksum.

    A recording that was not closed has no footer. A file of several concatenated recordings, which has a footer for
    each, is treated as a file without a footer.
    """
    if source.size < HEADER + _STREAM_FOOTER.size:
        return None
    tail_start = max(HEADER, source.size - _TAIL)
    tail = source.read(tail_start, source.size - tail_start)
    if len(tail) < _STREAM_FOOTER.size:
        return None
    start, length, checksum, magic, foot, count = _STREAM_FOOTER.unpack(tail[-_STREAM_FOOTER.size :])
    if (magic, foot, count) != (MAGIC, b"FOOT", 1):
        return None
    if start < HEADER + MESSAGE_HEADER or start + length != source.size - _STREAM_FOOTER.size:
        return None
    payload = source.read(start, length) if start < tail_start else tail[start - tail_start :][:length]
    if len(payload) != length or xxhash.xxh32_intdigest(payload, _SEED) != checksum:
        return None
    return Footer(payload, start)


def frames(source: ByteSource) -> Iterator[Frame]:
    """Yields the messages from the first to the last, also those of a file of concatenated recordings.

    Raises InvalidInput for a file that ends within a message, and for bytes that are not a message.
    """
    place, buffer, buffer_start = HEADER, b"", 0
    while place < source.size:
        if not buffer_start <= place <= buffer_start + len(buffer) - MESSAGE_HEADER:
            buffer, buffer_start = source.read(place, _READ), place
        head = buffer[place - buffer_start :][:MESSAGE_HEADER]
        if head[:4] == MAGIC:
            place += HEADER
            continue
        if len(head) < MESSAGE_HEADER:
            raise _truncated(source, place)
        kind, length = _MESSAGE.unpack(head)
        offset = place + MESSAGE_HEADER
        if kind not in _KINDS:
            raise InvalidInput(
                f"the file is damaged: there is no message at byte {place:,}",
                where=source.url,
                remedy="record it again",
            )
        if length > source.size - offset:
            raise _truncated(source, place)
        yield Frame(kind, offset, length)
        place = offset + length + (_STREAM_FOOTER.size if kind == END and length else 0)


def _truncated(source: ByteSource, place: int) -> InvalidInput:
    return InvalidInput(
        f"the file is truncated: the message at byte {place:,} is incomplete",
        where=source.url,
        remedy="copy the recording again",
    )
