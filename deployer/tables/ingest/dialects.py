"""How text files are written: their encoding, the delimiter of CSV, and the names in its header line."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from deployer.errors import InvalidInput
from deployer.tables.ingest.not_data import check_is_data
from deployer.tables.ingest.source_files import open_text, without_codec
from deployer.tables.ingest.sources import Dialect, Format, ReadOptions, Source
from deployer.tables.ingest.undecodable import has_nul, not_in_encoding

LONGEST_HEADER = 1_000_000  #: characters
DELIMITERS = (",", ";", "\t", "|")
SAMPLE_LINES = 100  #: lines after the header that a detected delimiter must fit


def with_dialects(sources: Iterable[Source], options: ReadOptions) -> list[Source]:
    """The sources, with the dialects of text files.

    Raises InvalidInput for a file that is not data, and for one whose header cannot be read.
    """
    options = replace(options, encoding=_known_encoding(options.encoding))
    return [_with_dialect(source, options) for source in sources]


def notes_on(sources: Iterable[Source]) -> list[str]:
    """What was detected and is worth knowing, each once."""
    found = (
        f"delimiter {source.dialect.delimiter!r} detected in {source.name}"
        for source in sources
        if source.dialect.detected
    )
    return list(dict.fromkeys(found))


def _known_encoding(name: str) -> str:
    """Python's own name of a text encoding. Raises InvalidInput for anything else."""
    try:
        "".encode(name)
    except (LookupError, UnicodeError, ValueError):
        raise InvalidInput(
            f"unknown --encoding {name!r}", remedy="give one such as latin-1, cp1252, utf-16 or shift-jis"
        ) from None
    found = codecs.lookup(name).name
    return "utf-8" if found == "utf-8-sig" else found


def _with_dialect(source: Source, options: ReadOptions) -> Source:
    check_is_data(source)
    if not source.format.is_text:
        return source
    source = replace(source, dialect=Dialect(encoding=options.encoding))
    try:
        with open_text(source.path, options.encoding, compressed=source.compressed) as (text, encoding):
            source = replace(source, dialect=Dialect(encoding=encoding))
            if source.format is Format.CSV:
                return replace(source, dialect=_of_csv(text, source, options))
            return source
    except UnicodeError as failure:
        raise not_in_encoding(source, failure) from None
    except (OSError, csv.Error) as failure:
        raise InvalidInput(f"it cannot be read as CSV: {failure}", where=source.name, remedy="check the file") from None


def _of_csv(text: io.TextIOBase, source: Source, options: ReadOptions) -> Dialect:
    usual = _usual_delimiter(source)
    delimiter, detected = options.delimiter or usual, False
    seen: list[str] = []
    names = next(csv.reader(_kept(_lines(text), seen), delimiter=delimiter), None)
    if not names:
        raise InvalidInput("there is no header line", where=source.name, remedy="name the columns in the first line")
    if "\0" in "".join(names):
        raise has_nul(source.name)
    if options.delimiter is None and len(names) == 1:
        seen += islice(_lines(text), SAMPLE_LINES)
        others = [each for each in DELIMITERS if each != usual and _separates(seen, each)]
        if len(others) == 1:
            delimiter, detected = others[0], True
            names = next(csv.reader(seen, delimiter=delimiter))
    if not options.header:
        names = [f"column_{number}" for number in range(1, len(names) + 1)]
    return Dialect(source.dialect.encoding, delimiter, options.header, tuple(names), detected)


def _usual_delimiter(source: Source) -> str:
    """A tab in .tsv files, otherwise a comma."""
    return "\t" if Path(without_codec(source.path.lower())).suffix == ".tsv" else ","


def _lines(text: io.TextIOBase) -> Iterator[str]:
    """The lines of a text; raises csv.Error for one that is too long to be a header."""
    while line := text.readline(LONGEST_HEADER + 1):
        if len(line) > LONGEST_HEADER:
            raise csv.Error(f"the header is longer than {LONGEST_HEADER:,} characters")
        yield line


def _kept(lines: Iterable[str], seen: list[str]) -> Iterator[str]:
    """The lines, each of which is also appended to `seen`."""
    for line in lines:
        seen.append(line)
        yield line


def _separates(lines: Sequence[str], delimiter: str) -> bool:
    """Whether the lines have the same number of values, and more than one, with this delimiter."""
    try:
        rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:
        return False
    if len(lines) > SAMPLE_LINES:
        rows = rows[:-1]  # a quoted value of the last row may be cut off
    return len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows)
