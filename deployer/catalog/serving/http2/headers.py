"""Headers of HTTP/2, compressed as RFC 7541 says (HPACK)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from deployer.catalog.serving.http2.frames import Code, ConnectionFault
from deployer.catalog.serving.http2.header_tables import END_OF_TEXT, HUFFMAN, STATIC

Header = tuple[bytes, bytes]

LARGEST = 1 << 16  #: bytes of the headers of a request, before and after they are decompressed
_TABLE = 4096  #: bytes of the table of one connection, which is what clients may assume
_OVERHEAD = 32  #: bytes that an entry counts beside its name and value (RFC 7541, 4.1)
_LONGEST_CODE = 30  #: bits
_LONGEST_NUMBER = 5  #: bytes after the first


class HeaderDecoder:
    """The headers that one client sends, in their order: later ones refer to earlier ones."""

    def __init__(self) -> None:
        self._entries = deque[Header]()  # the newest first
        self._size = 0
        self._most = _TABLE

    def decoded(self, block: bytes) -> list[Header]:
        """Returns the headers of a request. Raises ConnectionFault for bytes that are not headers, and for too many."""
        found, size = list[Header](), 0
        reader = _Reader(block)
        while not reader.is_at_end:
            header = self._next(reader)
            if header is None:
                continue
            size += len(header[0]) + len(header[1]) + _OVERHEAD
            if size > LARGEST:
                raise ConnectionFault(Code.ENHANCE_YOUR_CALM, "the headers are too large")
            found.append(header)
        return found

    def _next(self, reader: _Reader) -> Header | None:
        """Returns the next header; None for a change of the table's size."""
        first = reader.peek()
        if first & 0x80:
            return self._entry(reader.number(7))
        if first & 0x40:
            header = self._literal(reader, 6)
            self._add(header)
            return header
        if first & 0x20:
            size = reader.number(5)
            if size > _TABLE:
                raise _damaged()
            self._most = size
            self._shrink()
            return None
        return self._literal(reader, 4)

    def _literal(self, reader: _Reader, bits: int) -> Header:
        index = reader.number(bits)
        name = self._entry(index)[0] if index else reader.text()
        return name, reader.text()

    def _entry(self, index: int) -> Header:
        if 1 <= index <= len(STATIC):
            return STATIC[index - 1]
        if 0 <= (place := index - len(STATIC) - 1) < len(self._entries):
            return self._entries[place]
        raise _damaged()

    def _add(self, header: Header) -> None:
        self._entries.appendleft(header)
        self._size += _size(header)
        self._shrink()

    def _shrink(self) -> None:
        while self._size > self._most:
            self._size -= _size(self._entries.pop())


class _Reader:
    """The bytes of a block, from the first to the last."""

    def __init__(self, block: bytes) -> None:
        self._block, self._place = block, 0

    @property
    def is_at_end(self) -> bool:
        return self._place >= len(self._block)

    def peek(self) -> int:
        if self.is_at_end:
            raise _damaged()
        return self._block[self._place]

    def number(self, bits: int) -> int:
        """Returns a number that begins in the last bits of the next byte (RFC 7541, 5.1)."""
        most = (1 << bits) - 1
        found = self.peek() & most
        self._place += 1
        if found < most:
            return found
        for shift in range(0, 7 * _LONGEST_NUMBER, 7):
            byte = self.peek()
            self._place += 1
            found += (byte & 127) << shift
            if byte < 128:
                return found
        raise _damaged()

    def text(self) -> bytes:
        is_huffman = bool(self.peek() & 0x80)
        length = self.number(7)
        if length > len(self._block) - self._place:
            raise _damaged()
        found = self._block[self._place : self._place + length]
        self._place += length
        return bytes(_plain(found)) if is_huffman else found


def _plain(data: bytes) -> Iterator[int]:
    """Yields the bytes of a text in Huffman's code."""
    code, bits = 1, 0
    for byte in data:
        for shift in range(7, -1, -1):
            code = code << 1 | (byte >> shift & 1)
            bits += 1
            symbol = HUFFMAN.get(code)
            if symbol is not None:
                if symbol == END_OF_TEXT:
                    raise _damaged()
                yield symbol
                code, bits = 1, 0
            elif bits >= _LONGEST_CODE:
                raise _damaged()
    if bits > 7 or code != (1 << bits + 1) - 1:  # the rest of the last byte has to be ones
        raise _damaged()


def encoded(headers: Iterable[tuple[str, str]]) -> bytes:
    """Returns headers in a form that needs no table and no code."""
    found = bytearray()
    for name, value in headers:
        found.append(0)
        for text in (name.encode("ascii"), value.encode("ascii")):
            found += _length(len(text)) + text
    return bytes(found)


def _length(number: int) -> bytes:
    if number < 127:
        return bytes([number])
    found, rest = bytearray([127]), number - 127
    while rest > 127:
        found.append(rest & 127 | 128)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def _size(header: Header) -> int:
    return len(header[0]) + len(header[1]) + _OVERHEAD


def _damaged() -> ConnectionFault:
    return ConnectionFault(Code.COMPRESSION_ERROR, "the headers cannot be decompressed")
