"""The first rows of a table that match a condition or contain words; values are shortened for a page."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from deployer.datasets.errors import lance_errors
from deployer.errors import InvalidInput, Refused
from deployer.platform.isolation.trusted_functions import TrustedFunctions
from deployer.platform.sql.one_expression import names_in
from deployer.search import SearchTarget, search
from deployer.specs.types.arrow import columns_of
from deployer.specs.types.column_names import alike
from deployer.specs.types.types import ColumnType
from deployer.tables.inspect.sensitive import hidden_columns, partly_hidden, without_sensitive
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
    """The columns and first rows; `more`: there may be further rows.

    `left_out` columns are too many to show. The values of `sensitive` ones are hidden, wholly or in part.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    more: bool
    left_out: int
    sensitive: tuple[str, ...]


def preview_rows(opened: ReadTable, where: str, words: str, limit: int = ROWS) -> RowPreview:
    """Reads at most `limit` rows: those that hold the SQL condition `where`, or have `words` by a full-text index.

    Both may be empty. Raises InvalidInput for a condition or for words that do not fit the table, and Refused for a
    condition on sensitive values. Sensitive columns are not read, and not searched for words.
    """
    if where and words:
        raise InvalidInput("words and a condition are given", where=opened.address, remedy="give one of them")
    hidden = hidden_columns(opened.store, opened.state)
    protected = hidden | partly_hidden(columns_of(opened.schema))
    visible = [name for name in opened.visible_columns if name not in hidden]
    names = visible[:COLUMNS]
    columns = {column.name: column for column in columns_of(opened.schema)}
    _refuse_protected(where, protected, opened)
    batches: Iterable[pa.RecordBatch] = ()
    with lance_errors(opened.location):
        if not names:
            pass
        elif words:
            target = SearchTarget.of(opened, TrustedFunctions.allowed(()))
            searched = [each for each in target.text_columns(None) if each.partition(".")[0] not in protected]
            if not searched:
                raise InvalidInput(
                    "every column with a full-text index is sensitive",
                    where=opened.address,
                    remedy="search with `deployer search`",
                )
            found = search(target, words, None, "fts", fts_columns=searched).select(names).limit(limit + 1)
            batches = found.to_arrow().select(names).to_batches()
        else:
            batches = Table(opened).scan(where or None, names, limit=limit + 1).batches
        rows = [
            row
            for batch in batches
            for row in zip(
                *(_cells(values, columns[name].type) for name, values in zip(names, batch.columns, strict=True)),
                strict=True,
            )
        ]
    sensitive = tuple(name for name in opened.visible_columns if name in protected)
    return RowPreview(tuple(names), tuple(rows[:limit]), len(rows) > limit, len(visible) - len(names), sensitive)


def _refuse_protected(where: str, protected: Collection[str], opened: ReadTable) -> None:
    """Raises Refused for a condition that names a column with hidden values, because its result would reveal them."""
    named = {alike(name) for name in names_in(where)}
    if found := next((name for name in sorted(protected) if alike(name) in named), None):
        raise Refused(
            f"the condition names column {found!r}, which has sensitive values",
            where=opened.address,
            remedy="use other columns, or `deployer query`, which shows all values",
        )


def _cells(column: Any, declared: ColumnType) -> list[Cell]:
    kind = column.type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return [_cell(without_sensitive(value, declared), is_number) for value in column.to_pylist()]


def _cell(value: Any, is_number: bool) -> Cell:
    match value:
        case None:
            return Cell("null", is_null=True)
        case bytes():
            return Cell(f"{len(value):,} bytes")
        case _:
            text = str(value) if not isinstance(value, str) else value[: WIDEST + 1]
            return Cell(text if len(text) <= WIDEST else text[: WIDEST - 1] + "…", is_number=is_number)
