"""Reads CSV with a header line. Every value is read as text; `deployer.tables.ingest.check` makes types of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from deployer.errors import InvalidInput
from deployer.tables.ingest.bad_rows import BadRows, Problem
from deployer.tables.ingest.check import SourceRows
from deployer.tables.ingest.source_files import open_text
from deployer.tables.ingest.text_blocks import BLOCK_BYTES, may_have_quotes, open_range

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.tables.ingest.sources import ReadOptions, Source, Split

LONGEST_HEADER = 1_000_000  #: characters


def header(source: Source, options: ReadOptions) -> list[str]:
    """The names in the header line. Raises InvalidInput when there is none."""
    try:
        with open_text(source.path, compressed=source.compressed) as file:
            names = next(csv.reader(_lines(file), delimiter=delimiter(source, options)), None)
    except (OSError, UnicodeDecodeError, csv.Error) as failure:
        raise InvalidInput(f"it cannot be read as CSV: {failure}", where=source.name, remedy="check the file") from None
    if not names:
        raise InvalidInput("there is no header line", where=source.name, remedy="name the columns in the first line")
    return names


def _lines(file: io.TextIOBase) -> Iterator[str]:
    """Lines of a header; raises csv.Error for one that is too long to be one."""
    while line := file.readline(LONGEST_HEADER + 1):
        if len(line) > LONGEST_HEADER:
            raise csv.Error(f"the header is longer than {LONGEST_HEADER:,} characters")
        yield line


def delimiter(source: Source, options: ReadOptions) -> str:
    """What parts the values: as given, else a tab in .tsv files, else a comma."""
    tabs = Path(source.path.lower().removesuffix(".gz")).suffix == ".tsv"
    return options.delimiter or ("\t" if tabs else ",")


def read_csv(split: Split, names: Sequence[str], columns: Sequence[str], options: ReadOptions) -> Iterator[SourceRows]:
    """The rows of a split; `names` are the header's, `columns` those to read. Rows of another width are unreadable."""
    invalid: list[tuple[int, int]] = []
    first = split.start == 0
    header_rows = 1 if first else 0

    def skip(row: Any) -> str:
        invalid.append((row.number - header_rows, row.actual_columns))
        return "skip"

    parse = pa_csv.ParseOptions(
        delimiter=delimiter(split.source, options),
        newlines_in_values=may_have_quotes(split),
        invalid_row_handler=skip,
    )
    convert = pa_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        include_columns=list(columns),
        null_values=list(options.null_values),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    read = pa_csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES, column_names=None if first else list(names))
    counter = _Numbers(invalid, len(names))
    try:
        stream = open_range(split.source, split.start, split.stop)
        for batch in pa_csv.open_csv(stream, read_options=read, parse_options=parse, convert_options=convert):
            yield SourceRows(batch, *counter.take(batch.num_rows))
    except pa.ArrowInvalid as failure:
        raise InvalidInput(
            f"it cannot be read as CSV: {str(failure).splitlines()[0]}",
            where=split.source.name,
            remedy="check the file",
        ) from None
    numbers, unreadable = counter.rest()
    if unreadable.rows:
        nothing = pa.RecordBatch.from_pydict({name: pa.array([], pa.string()) for name in columns})
        yield SourceRows(nothing, numbers, unreadable)


class _Numbers:
    """Gives rows their numbers, leaving out those that the parser skipped."""

    def __init__(self, invalid: list[tuple[int, int]], width: int) -> None:
        self._invalid, self._width, self._next = invalid, width, 1

    def take(self, count: int) -> tuple[NDArray[np.int64], BadRows]:
        skipped = {number for number, _ in self._invalid}
        if not skipped:
            numbers = np.arange(self._next, self._next + count, dtype=np.int64)
        else:
            candidates = np.arange(self._next, self._next + count + len(skipped), dtype=np.int64)
            numbers = candidates[~np.isin(candidates, list(skipped))][:count]
        if count:
            self._next = int(numbers[-1]) + 1
        return numbers, self._bad(lambda number: number < self._next)

    def rest(self) -> tuple[NDArray[np.int64], BadRows]:
        return np.zeros(0, np.int64), self._bad(lambda _: True)

    def _bad(self, wanted: Any) -> BadRows:
        found = [(number, actual) for number, actual in self._invalid if wanted(number)]
        for each in found:
            self._invalid.remove(each)
        return BadRows.of([Problem(number, "", self._reason(actual), None) for number, actual in found])

    def _reason(self, actual: int) -> str:
        return f"has {actual} value{'' if actual == 1 else 's'}, and the header names {self._width}"
