"""Limits of the size of specs: of the files, and of the text that aliases, variables and schemas make of them.

A small file can become a large plan: a thousand columns that share a description of 1 MB, by an alias, a variable or a
schema, are 1 GB of plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from deployer.errors import Position, Problem
from deployer.specs.model import TableSpec
from deployer.specs.rules import Rule
from deployer.specs.types.computed import describe_computed
from deployer.specs.types.types import Column, children

MAX_FILES = 20_000
MAX_TOTAL_BYTES = 256 * 2**20  #: bytes of all files
MAX_TOTAL_VALUES = 5_000_000  #: values in all files
MAX_SUBSTITUTED = 10_000_000  #: characters of all values of variables, counted at each use
MAX_TEXT = 64 * 2**20  #: characters of all tables' descriptions, expressions and tags


@dataclass(slots=True)
class SubstitutedText:
    """The number of characters of the variables' values, counted at each use in all files."""

    characters: int = 0

    def add(self, value: str, at: Position) -> Problem | None:
        """Counts one more use of a value. Returns a problem only where this use exceeds the limit first."""
        before, self.characters = self.characters, self.characters + len(value)
        if before > MAX_SUBSTITUTED or not self.is_over:
            return None
        what = f"values of variables come to more than {MAX_SUBSTITUTED:,} characters"
        return Problem(at, what, "shorten the values that are used often", Rule.SPECS_LIMIT)

    @property
    def is_over(self) -> bool:
        """Returns whether the limit is exceeded, so that no more values may be substituted."""
        return self.characters > MAX_SUBSTITUTED


def check_files(count: int, size: int, values: int, file: str) -> Problem | None:
    """Returns the problem where the files exceed a limit with `file`, which is the last of them.

    `count`, `size` (in bytes) and `values` are totals of all files.
    """
    if count > MAX_FILES:
        what, remedy = f"there are more than {MAX_FILES:,} spec files", "put several documents into one file"
    elif size > MAX_TOTAL_BYTES:
        what, remedy = f"the spec files have more than {MAX_TOTAL_BYTES:,} bytes", "split the lake into several"
    elif values > MAX_TOTAL_VALUES:
        what, remedy = f"the spec files have more than {MAX_TOTAL_VALUES:,} values", "split the lake into several"
    else:
        return None
    return Problem(Position(file), what, remedy, Rule.SPECS_LIMIT)


def check_text(tables: Iterable[TableSpec]) -> Problem | None:
    """Returns the problem where the texts of all tables have more than MAX_TEXT characters, at the table that exceeds
    the limit."""
    total = 0
    for table in tables:
        total += len(table.description) + sum(len(key) + len(value) for key, value in table.tags.items())
        total += sum(map(_text_of, table.columns))
        if total > MAX_TEXT:
            what = f"the texts of all tables have more than {MAX_TEXT:,} characters"
            return Problem(table.sources[""], what, "shorten what aliases or schemas repeat", Rule.SPECS_LIMIT)
    return None


def _text_of(column: Column) -> int:
    own = len(column.description) + len(column.default) + len(column.using or "") + len(column.source or "")
    own += len(describe_computed(column.computed)) if column.computed else 0
    nested = children(column.type)
    return own + sum(map(_text_of, nested)) if nested else own
