"""The conversion of text with runs of spaces and tabs between values to lines with one space between values."""

from __future__ import annotations

import codecs
import io
import re
from typing import Any

from deployer.errors import InvalidInput
from deployer.platform.files.reading import in_mib
from deployer.tables.ingest.files.text_blocks import BLOCK_BYTES, LONGEST_LINE

WHITESPACE = "whitespace"  #: the name of this delimiter in `--delimiter`
# A value in quotes is at the beginning of a field; it may contain spaces and line ends.
_RUNS = re.compile(rb'(?<!\S)("(?:[^"]|"")*")|^[ \t]+|[ \t]+(?=\r?$)|([ \t]+)', re.MULTILINE)


def single_spaced(block: bytes) -> bytes:
    """Returns whole lines with one space between values, and no spaces at the ends of lines."""
    if b'"' not in block:
        return b"\n".join(b" ".join(line.split()) for line in block.split(b"\n"))
    return _RUNS.sub(lambda found: found[1] or (b" " if found[2] else b""), block)


def single_spaced_stream(stream: Any, name: str) -> io.BufferedReader:
    """Returns a stream of lines, in UTF-8, with one space between values. `name` is that of the source, for errors."""
    return io.BufferedReader(_SingleSpaced(stream, name), BLOCK_BYTES)


class _SingleSpaced(io.RawIOBase):
    def __init__(self, stream: Any, name: str) -> None:
        self._stream, self._name = stream, name
        self._begun, self._ready, self._at, self._ended, self._is_first = b"", b"", 0, False, True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while self._at == len(self._ready) and not self._ended:
            self._ready, self._at = self._next(), 0
        part = self._ready[self._at : self._at + len(buffer)]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)

    def _next(self) -> bytes:
        """Returns the next whole lines. The last line does not end within a value in quotes."""
        read: bytes = self._stream.read(BLOCK_BYTES)
        self._ended = not read
        block = self._begun + read
        cut = len(block) if self._ended else block.rfind(b"\n") + 1
        if not self._ended and block.count(b'"', 0, cut) % 2:
            cut = 0
        self._begun = block[cut:]
        if len(self._begun) > LONGEST_LINE:
            raise InvalidInput(
                f"a line is longer than {in_mib(LONGEST_LINE)}, or a quote is not closed",
                where=self._name,
                remedy="check the file",
            )
        lines = block[:cut]
        if lines and self._is_first:
            lines, self._is_first = lines.removeprefix(codecs.BOM_UTF8), False
        return single_spaced(lines)
