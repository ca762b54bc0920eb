"""Errors for text whose bytes are not valid in the encoding with which it is read."""

from __future__ import annotations

import codecs
import io

from deployer.errors import InvalidInput
from deployer.tables.ingest.files.model import Source
from deployer.tables.ingest.files.source_files import open_stream

SHOWN = 60  #: characters of a line, around the first byte that is not UTF-8
_ONLY_IN_CP1252 = range(0x80, 0xA0)  #: bytes that are control characters in latin-1, and quotes and € in cp1252


def not_utf8(line: bytes, number: int, name: str) -> InvalidInput:
    """Returns the error for a line that is not UTF-8. `number` counts lines from 1, `name` is the name of the
    source."""
    if b"\0" in line:
        return has_nul(name)
    try:
        line.decode()
        start = 0
    except UnicodeDecodeError as failure:
        start = max(0, failure.start - SHOWN // 2)
    encoding = _guess(line)
    text = line.rstrip(b"\r\n")[start : start + SHOWN].decode(encoding)
    return InvalidInput(
        f"line {number:,} is not UTF-8; in {encoding} it reads {text!r}",
        where=name,
        remedy=f"give --encoding {encoding} if that text is right, otherwise the encoding of the file",
    )


def undecodable(name: str, failure: UnicodeError) -> InvalidInput:
    """Returns the error for text that is not valid in the given encoding."""
    return InvalidInput(f"it cannot be decoded: {failure}", where=name, remedy="give the encoding of the file")


def has_nul(name: str) -> InvalidInput:
    """Returns the error for text with NUL characters, which may be UTF-16 without a byte order mark."""
    return InvalidInput(
        "it has NUL characters", where=name, remedy="if it is UTF-16, give --encoding utf-16-le or utf-16-be"
    )


def not_in_encoding(source: Source, failure: UnicodeError) -> InvalidInput:
    """Returns the error for a source whose text cannot be decoded."""
    if codecs.lookup(source.dialect.encoding).name == "utf-8":
        with open_stream(source.path, compressed=source.compressed) as stream:
            for number, line in enumerate(io.BufferedReader(stream), 1):
                if not _is_utf8(line):
                    return not_utf8(line, number, source.name)
    return undecodable(source.name, failure)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _guess(line: bytes) -> str:
    if any(byte in _ONLY_IN_CP1252 for byte in line):
        try:
            line.decode("cp1252")
        except UnicodeDecodeError:
            return "latin-1"
        return "cp1252"
    return "latin-1"
