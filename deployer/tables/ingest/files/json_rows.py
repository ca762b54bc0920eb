"""The rows of a JSON file, each as one line: the lines of JSON lines, or the elements of a file that is one array."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from deployer.errors import InvalidInput
from deployer.platform.files.reading import in_mib
from deployer.tables.ingest.files.text_blocks import BLOCK_BYTES, LONGEST_LINE, begins_array, line_blocks, open_range
from deployer.tables.ingest.files.undecodable import not_in_encoding

if TYPE_CHECKING:
    from deployer.tables.ingest.files.model import Source

_SPACE = " \t\r\n"
_LINE_ENDS = str.maketrans("\r\n", "  ")  # line ends are only between values, because strings in JSON have none


def row_blocks(source: Source, start: int, stop: int) -> Iterator[list[bytes]]:
    """Yields rows of a range of a file, in blocks.

    Raises InvalidInput for an array that cannot be read to its end, and for text that is not in its encoding.
    """
    try:
        yield from _row_blocks(source, start, stop)
    except UnicodeError as failure:
        raise not_in_encoding(source, failure) from None


def _row_blocks(source: Source, start: int, stop: int) -> Iterator[list[bytes]]:
    if start == 0 and begins_array(open_range(source, start, stop).read(BLOCK_BYTES)):
        yield from _elements(open_range(source, start, stop), source.name)
        return
    for block in line_blocks(open_range(source, start, stop), source.name):
        yield [line for line in block.splitlines() if line.strip()]


def _elements(stream: Any, name: str) -> Iterator[list[bytes]]:
    text = _Text(stream, name)
    text.expect("[")
    ended = text.next_character() == "]"
    while not ended:
        elements, blocks = [text.element()], text.blocks
        while not (ended := text.next_character() == "]"):
            text.expect(",")
            if text.blocks != blocks:
                break
            elements.append(text.element())
        yield elements
    text.expect("]")
    if text.next_character():
        raise text.error("there is more after the array")


class _Text:
    """The text of a stream. At most about one element and one block are in memory."""

    def __init__(self, stream: Any, name: str) -> None:
        self._stream, self._name = stream, name
        self._text, self._at, self._rows, self._ended = "", 0, 0, False
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._json = json.JSONDecoder()
        self.blocks = 0  #: the number of blocks that were read

    def error(self, what: str) -> InvalidInput:
        place = f"after row {self._rows:,} of the array" if self._rows else "before the first row of the array"
        return InvalidInput(f"it cannot be read as JSON: {place}, {what}", where=self._name, remedy="check the file")

    def next_character(self) -> str:
        """Returns the first character that is not a space; empty at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._read()

    def expect(self, character: str) -> None:
        """Skips one character. Raises InvalidInput where another character is next."""
        found = self.next_character()
        if found != character:
            raise self.error(f"there is {found!r} instead of {character!r}" if found else "the file ends")
        self._at += 1

    def element(self) -> bytes:
        """Skips a value and returns it as one line."""
        self.next_character()
        while True:
            try:
                _, end = self._json.raw_decode(self._text, self._at)
            except RecursionError:
                raise self.error("values are nested too deep") from None
            except ValueError as failure:
                if self._ended:
                    raise self.error(str(failure)) from None
                end = len(self._text)
            if end < len(self._text) or self._ended:  # otherwise the value may continue in the next block
                found = self._text[self._at : end].translate(_LINE_ENDS).encode()
                self._at, self._rows = end, self._rows + 1
                return found
            if end - self._at > LONGEST_LINE:
                raise self.error(f"there is a row of more than {in_mib(LONGEST_LINE)}, or one that is not JSON")
            self._read()

    def _read(self) -> None:
        block = self._stream.read(BLOCK_BYTES)
        try:
            more = self._decoder.decode(block, final=not block)
        except UnicodeDecodeError:
            raise self.error("there is text that is not UTF-8") from None
        self._text, self._at = self._text[self._at :] + more, 0
        self._ended = not block
        self.blocks += 1
