"""The first rows of a table that hold a condition or have words, each value cut to what a page can show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from deployer.datasets.errors import lance_errors
from deployer.errors import InvalidInput
from deployer.platform.isolation.trusted_functions import TrustedFunctions
from deployer.search import SearchTarget, search
from deployer.tables.open_table import ReadTable
from deployer.tables.read.table import Table

ROWS = 20  #: that a preview shows
COLUMNS = 50  #: that a preview shows
WIDEST = 120  #: characters of a value


@dataclass(frozen=True, slots=True)
class Cell:
    """A value as a page shows it."""

    text: str
    is_null: bool = False
    is_number: bool = False


@dataclass(frozen=True, slots=True)
class RowPreview:
    """The columns and first rows; `more`: there may be further rows. `hidden` columns are not shown."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    more: bool
    hidden: int


def preview_rows(opened: ReadTable, where: str, words: str) -> RowPreview:
    """Reads at most `ROWS` rows: those that hold the SQL condition `where`, or have `words` by a full-text index.

    Both may be empty. Raises InvalidInput for a condition or for words that do not fit the table.
    """
    if where and words:
        raise InvalidInput("words and a condition are given", where=opened.address, remedy="give one of them")
    visible = opened.visible_columns
    names = visible[:COLUMNS]
    with lance_errors(opened.location):
        if words:
            target = SearchTarget.of(opened, TrustedFunctions.allowed(()))
            found = search(target, words, None, "fts").select(names).limit(ROWS + 1).to_arrow().select(names)
            batches: Iterable[pa.RecordBatch] = found.to_batches()
        else:
            batches = Table(opened).scan(where or None, names, limit=ROWS + 1).batches
        rows = [row for batch in batches for row in zip(*(_cells(column) for column in batch.columns), strict=True)]
    return RowPreview(tuple(names), tuple(rows[:ROWS]), len(rows) > ROWS, len(visible) - len(names))


def _cells(column: Any) -> list[Cell]:
    kind = column.type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return [_cell(value, is_number) for value in column.to_pylist()]


def _cell(value: Any, is_number: bool) -> Cell:
    match value:
        case None:
            return Cell("null", is_null=True)
        case bytes():
            return Cell(f"{len(value):,} bytes")
        case _:
            text = str(value) if not isinstance(value, str) else value[: WIDEST + 1]
            return Cell(text if len(text) <= WIDEST else text[: WIDEST - 1] + "…", is_number=is_number)
