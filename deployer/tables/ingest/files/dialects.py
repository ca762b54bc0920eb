"""The dialects of text files: their encoding, the delimiter of CSV, and the names in its header line."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from deployer.errors import InvalidInput
from deployer.tables.ingest.files.model import Dialect, Format, ReadOptions, Source
from deployer.tables.ingest.files.source_files import open_file, open_text, without_codec
from deployer.tables.ingest.files.space_separated import WHITESPACE, single_spaced
from deployer.tables.ingest.files.undecodable import has_nul, not_in_encoding

if TYPE_CHECKING:
    from deployer.tables.ingest.files.model import Source

LONGEST_HEADER = 1_000_000  #: the largest number of characters of a header line
DELIMITERS = (",", ";", "\t", "|")
_NUMBER = re.compile(r"[-+]?\.?[0-9][0-9.]*([eE][-+]?[0-9]+)?")
SAMPLE_LINES = 100  #: lines after the header that a detected delimiter must fit


def with_dialects(sources: Iterable[Source], options: ReadOptions) -> list[Source]:
    """Returns the sources, with the dialects of text files.

    Raises InvalidInput for a file that is not data, and for one whose header cannot be read.
    """
    options = replace(options, encoding=_known_encoding(options.encoding))
    return [_with_dialect(source, options) for source in sources]


def notes_on(sources: Iterable[Source]) -> list[str]:
    """Returns the notes on detected properties of the sources, without repetitions."""
    return list(dict.fromkeys(note for source in sources for note in _notes(source)))


def _notes(source: Source) -> Iterator[str]:
    dialect = source.dialect
    if dialect.detected:
        shown = WHITESPACE if dialect.runs else repr(dialect.delimiter)
        yield f"delimiter {shown} detected in {source.name}"
    if dialect.row_names:
        yield f"the header line of {source.name} has no name for the first values, as R writes row names: it is ''"
    if dialect.repeated:
        names = [
            name for name in dialect.names if re.search(r"\.[0-9]+$", name) and name.rpartition(".")[0] in dialect.names
        ]
        yield f"fields of {source.name} whose name is there before are called {', '.join(map(repr, names))}"


def _known_encoding(name: str) -> str:
    """Returns Python's own name of a text encoding. Raises InvalidInput for an unknown name."""
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
    runs = options.delimiter == WHITESPACE
    delimiter, detected = " " if runs else options.delimiter or usual, False
    seen: list[str] = []
    lines = _kept(_lines(text), seen)
    names = next(csv.reader(_single_spaced(lines) if runs else lines, delimiter=delimiter), None)
    if not names:
        raise InvalidInput("there is no header line", where=source.name, remedy="name the columns in the first line")
    if "\0" in "".join(names):
        raise has_nul(source.name)
    seen += _sample(text)
    if options.delimiter is None and len(names) == 1:
        others = [each for each in DELIMITERS if each != usual and _separates(seen, each)]
        if len(others) == 1:
            delimiter, detected = others[0], True
        elif not others and _is_space_separated(seen):
            delimiter, detected = " ", True
            runs = [line.rstrip("\r\n") for line in seen] != [line.rstrip("\r\n") for line in _single_spaced(seen)]
    rows = _rows(seen, delimiter, runs=runs)
    names = rows[0]
    if not options.header:
        numbered = tuple(f"column_{number}" for number in range(1, len(names) + 1))
        return Dialect(source.dialect.encoding, delimiter, False, numbered, detected, runs)
    row_names = _lacks_first_name(rows, delimiter)
    fields = ["", *names] if row_names else names
    distinct = tuple(_distinct(fields))
    return Dialect(
        source.dialect.encoding, delimiter, True, distinct, detected, runs, distinct != tuple(fields), row_names
    )


def _lacks_first_name(rows: Sequence[Sequence[str]], delimiter: str) -> bool:
    """Returns whether each row has one value more than the header line. Empty values at the ends of all rows do not
    count.

    Returns False for a single name with a comma or a semicolon, because 1,5 may be a number.
    """
    names, values = rows[0], rows[1:]
    if not values or (len(names) == 1 and delimiter in ",;"):
        return False
    return all(len(row) == len(names) + 1 for row in values) and any(row[-1] for row in values)


def _distinct(names: Sequence[str]) -> list[str]:
    """Returns the names, with a number appended to repeated ones: x, x.1, x.2, as in pandas."""
    found: dict[str, None] = {}
    taken = set(names)
    for name in names:
        distinct, number = name, 0
        while distinct in found or (number and distinct in taken):
            number += 1
            distinct = f"{name}.{number}"
        found[distinct] = None
    return [*found]


def _usual_delimiter(source: Source) -> str:
    """Returns a tab for .tsv files, otherwise a comma."""
    return "\t" if Path(without_codec(source.path.lower())).suffix == ".tsv" else ","


def _lines(text: io.TextIOBase) -> Iterator[str]:
    """Yields the lines of a text; raises csv.Error for one that is too long to be a header."""
    while line := text.readline(LONGEST_HEADER + 1):
        if len(line) > LONGEST_HEADER:
            raise csv.Error(f"the header is longer than {LONGEST_HEADER:,} characters")
        yield line


def _sample(text: io.TextIOBase) -> Iterator[str]:
    """Yields up to `SAMPLE_LINES` further lines, and stops before one that is longer than `LONGEST_HEADER`."""
    for line in islice(iter(lambda: text.readline(LONGEST_HEADER + 1), ""), SAMPLE_LINES):
        if len(line) > LONGEST_HEADER:
            return
        yield line


def _kept(lines: Iterable[str], seen: list[str]) -> Iterator[str]:
    """Yields the lines, each of which is also appended to `seen`."""
    for line in lines:
        seen.append(line)
        yield line


def _single_spaced(lines: Iterable[str]) -> Iterator[str]:
    return (single_spaced(line.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass") for line in lines)


def _rows(lines: Sequence[str], delimiter: str, *, runs: bool = False) -> list[list[str]]:
    """Returns the rows of the first lines, without empty rows, and without the last row if it may be cut off."""
    found = csv.reader(_single_spaced(lines) if runs else lines, delimiter=delimiter)
    rows: list[list[str]] = []
    try:
        rows += (row for row in found if row)
    except csv.Error:
        if not rows:
            raise
    return rows[:-1] if len(lines) > SAMPLE_LINES and len(rows) > 1 else rows


def _separates(lines: Sequence[str], delimiter: str, *, runs: bool = False) -> bool:
    """Returns whether the rows have the same number of values, and more than one, with this delimiter. The header line
    may have one name fewer."""
    try:
        rows = _rows(lines, delimiter, runs=runs)
    except csv.Error:
        return False
    width = len(rows[-1])
    same = all(len(row) == width for row in rows[1:])
    has_row_names = len(rows) > 1 and len(rows[0]) == width - 1 and (runs or width > 2)
    return width > 1 and same and (len(rows[0]) == width or has_row_names)


def _is_space_separated(lines: Sequence[str]) -> bool:
    """Returns whether the lines have values separated by spaces. One column must have a number in every row, which
    words of a text do not have."""
    if not _separates(lines, " ", runs=True):
        return False
    values = _rows(lines, " ", runs=True)[1:]
    return bool(values) and any(
        all(_NUMBER.fullmatch(value) for value in column) for column in zip(*values, strict=True)
    )


#: The first bytes of files that macOS writes: AppleSingle and AppleDouble (RFC 1740), and .DS_Store.
_MACOS = (b"\x00\x05\x16\x00", b"\x00\x05\x16\x07", b"\x00\x00\x00\x01Bud1")


def check_is_data(source: Source) -> None:
    """Raises InvalidInput for a file that is empty or that macOS wrote. Reading finds all other problems."""
    if source.format == "lance":
        return
    try:
        with open_file(source.path) as file:
            start = file.read(8)
    except OSError:
        return
    if not start:
        raise InvalidInput("the file is empty", where=source.name, remedy="remove it, or write it again")
    if start.startswith(_MACOS):
        raise InvalidInput(
            "it holds attributes that macOS stores beside a file, and no data",
            where=source.name,
            remedy="leave it out, or remove all such files of the folder, whose names begin with ._",
        )
