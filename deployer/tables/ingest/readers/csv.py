"""Reads CSV. Every value is read as text; `deployer.tables.ingest.rows.check` converts it to the column's type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from deployer.errors import InvalidInput
from deployer.tables.ingest.files.space_separated import single_spaced_stream
from deployer.tables.ingest.files.text_blocks import BLOCK_BYTES, may_have_quotes, open_range
from deployer.tables.ingest.files.undecodable import not_in_encoding
from deployer.tables.ingest.rows.bad_rows import BadRows, Problem
from deployer.tables.ingest.rows.check import SourceRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.tables.ingest.files.model import ReadOptions, Split


def read_csv(split: Split, names: Sequence[str], columns: Sequence[str], options: ReadOptions) -> Iterator[SourceRows]:
    """Yields the rows of a split. `names` are all columns of the file, `columns` the columns to read.

    Rows with another number of values are unreadable. Raises InvalidInput for text that is not CSV or not in its
    encoding.
    """
    invalid: list[tuple[int, int, str]] = []
    dialect = split.source.dialect
    has_header = dialect.header and split.start == 0
    header_rows = 1 if has_header else 0

    def skip(row: Any) -> str:
        invalid.append((row.number - header_rows, row.actual_columns, row.text))
        return "skip"

    parse = pa_csv.ParseOptions(
        delimiter=dialect.delimiter,
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
    reads_names = has_header and dialect.names_header
    read = pa_csv.ReadOptions(
        use_threads=False,
        block_size=BLOCK_BYTES,
        column_names=None if reads_names else list(names),
        skip_rows_after_names=1 if has_header and not reads_names else 0,
    )
    counter = _Numbers(invalid, len(names))
    try:
        stream = open_range(split.source, split.start, split.stop)
        if dialect.runs:
            stream = single_spaced_stream(stream, split.source.name)
        for batch in pa_csv.open_csv(stream, read_options=read, parse_options=parse, convert_options=convert):
            yield SourceRows(batch, *counter.take(batch.num_rows))
    except UnicodeError as failure:
        raise not_in_encoding(split.source, failure) from None
    except pa.ArrowInvalid as failure:
        if "invalid UTF8" in str(failure):
            raise not_in_encoding(split.source, UnicodeError(str(failure))) from None
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
    """The row numbers of a split, which leave out the rows that the parser skipped."""

    def __init__(self, invalid: list[tuple[int, int, str]], width: int) -> None:
        self._invalid, self._width, self._next = invalid, width, 1

    def take(self, count: int) -> tuple[NDArray[np.int64], BadRows]:
        skipped = {number for number, *_ in self._invalid}
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
        found = [each for each in self._invalid if wanted(each[0])]
        for each in found:
            self._invalid.remove(each)
        problems = [Problem(number, "", self._reason(actual), None) for number, actual, _ in found]
        return BadRows.of(problems, kept={number: line for number, _, line in found})

    def _reason(self, actual: int) -> str:
        return f"has {actual} value{'' if actual == 1 else 's'}, and the header names {self._width}"
