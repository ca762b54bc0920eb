"""The columns of rows that could be their row keys: unique together, never null, and of the kind that identifies
rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from deployer.specs.types.names import FLOATS
from deployer.specs.types.types import Column, Scalar
from deployer.specs.values.keys import is_key_type

MOST_COLUMNS = 4  #: of a key
_TRIED_COLUMNS = 8  #: how many columns at most are tried together
_TRIED_ROWS = 10_000  #: rows on which a key is tried before all are
_DENSE = 0.1  #: share of the combinations of values that the rows have, from which on the columns span the rows

_ID_WORDS = {
    *("id", "ids", "key", "code", "uuid", "guid", "urn", "uri", "url", "no", "nr", "number", "symbol", "ticker"),
    *("sku", "isbn", "ean", "iata", "icao", "iso", "slug", "email"),
}
_TIME_WORDS = {"date", "day", "month", "year", "hour", "week", "quarter", "timestamp", "datetime"}
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_CODE = r"^[A-Z0-9][A-Z0-9_.:-]*$"


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A column that may be a part of a key; `identifies`: by its name, type or values, it is made for that."""

    name: str
    identifies: bool
    distinct: int


def key_candidate(rows: pa.Table, columns: Sequence[Column]) -> tuple[str, ...]:
    """Returns the columns that are the best row keys for the rows; empty without any.

    A key has up to four columns: identifiers (by name, by type such as dates, or because they count rows), or
    categories and times that span the rows. It never has measures, and never text with few repeats such as names.
    """
    if rows.num_rows < 2:
        return ()
    found = [each for column in columns if (each := _candidate(rows, column)) is not None]
    found.sort(key=lambda each: not each.identifies)
    places = {name: place for place, name in enumerate(rows.schema.names)}
    for parts in _combinations(found[:_TRIED_COLUMNS], rows.num_rows):
        names = sorted((part.name for part in parts), key=lambda name: places[name])
        if _is_unique(rows.slice(0, _TRIED_ROWS), names) and _is_unique(rows, names):
            return tuple(names)
    return ()


def _combinations(found: Sequence[_Candidate], rows: int) -> Iterator[tuple[_Candidate, ...]]:
    """Yields keys to try, the smallest first, that have enough values and are likely to identify rows."""
    for size in range(1, MOST_COLUMNS + 1):
        for parts in combinations(found, size):
            values = prod(part.distinct for part in parts)
            identify = all(part.identifies for part in parts)
            if values >= rows and (identify or (size > 1 and rows >= values * _DENSE)):
                yield parts


def _candidate(rows: pa.Table, column: Column) -> _Candidate | None:
    kind = column.type
    is_measure = isinstance(kind, Scalar) and kind.name in (*FLOATS, "bool")
    if column.nullable or is_measure or not is_key_type(kind):
        return None
    values = rows.column(column.name)
    distinct = pc.count_distinct(values).as_py()
    if _identifies(column.name, values, distinct):
        return _Candidate(column.name, True, distinct)
    is_category = _is_text(values.type) and 1 < distinct <= len(values) / 2
    return _Candidate(column.name, False, distinct) if is_category else None


def _identifies(name: str, values: Any, distinct: int) -> bool:
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        return True
    parts = [part.lower() for part in _WORDS.findall(name)]
    if parts and (parts[-1] in _ID_WORDS or parts[-1] in _TIME_WORDS):
        return True
    if distinct < len(values):
        return False
    if pa.types.is_integer(values.type):  # numbers of rows
        least, most = pc.min_max(values).as_py().values()
        return least in (0, 1) and bool(most - least + 1 == len(values))
    return _is_text(values.type) and bool(pc.all(pc.match_substring_regex(values, _CODE)).as_py())


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_unique(rows: pa.Table, names: list[str]) -> bool:
    return bool(rows.select(names).group_by(names).aggregate([]).num_rows == rows.num_rows)
