"""Rows that cannot be loaded, with the reasons and the error messages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from deployer.errors import InvalidInput, Refused

LISTED = 10  #: the number of bad rows that an error message lists
USUAL_NULLS = frozenset({"NA", "N/A", "n/a", "NULL", "null", "Null", "None", "NaN", "nan", "nil", "-", "?", "\\N"})
SHOWN = 60  #: characters of a value in a message

KeptRow = dict[str, Any] | str  #: a row's fields as JSON values, or the text of a line that has no fields


@dataclass(frozen=True, slots=True)
class Problem:
    """One value that prevents its row from being loaded.

    `row` is the number of the data row, from 1. `value` is the value as text (None: null). `source` is the name of the
    column in the file, if it differs.
    """

    row: int
    column: str
    reason: str
    value: str | None
    source: str | None = None

    def __str__(self) -> str:
        shown = "" if self.value is None else f" {_short(self.value)!r}"
        return f"row {self.row}: {self.place}{shown} {self.reason}"

    @property
    def place(self) -> str:
        """The column for messages; the row where no single column is the cause."""
        named = "" if self.source is None else f" (source {self.source!r})"
        return f"column {self.column!r}{named}" if self.column else "the row"


@dataclass(frozen=True, slots=True)
class BadRows:
    """The problems of bad rows, and the number of bad rows.

    `kept` has the rows to set aside, in the form of their source, by row number.
    """

    problems: tuple[Problem, ...] = ()
    rows: int = 0
    kept: Mapping[int, KeptRow] = field(default_factory=dict)

    @staticmethod
    def of(problems: Sequence[Problem], rows: int | None = None, kept: Mapping[int, KeptRow] | None = None) -> BadRows:
        """Returns the problems in the order of their rows. `rows` is the number of bad rows where not all of them are
        listed; None counts the listed ones."""
        ordered = tuple(sorted(problems, key=lambda problem: problem.row))
        return BadRows(ordered, len({problem.row for problem in ordered}) if rows is None else rows, kept or {})

    def joined(self, other: BadRows) -> BadRows:
        """Returns both together. `other` must not have the same rows."""
        if not other.rows:
            return self
        return BadRows.of(self.problems + other.problems, self.rows + other.rows, {**self.kept, **other.kept})

    def first(self, rows: int) -> BadRows:
        """Returns the problems of the first `rows` bad rows only. The result still counts all bad rows."""
        kept: list[Problem] = []
        for count, (_, problems) in enumerate(groupby(self.problems, key=lambda problem: problem.row)):
            if count >= rows:
                break
            kept += problems
        numbers = {problem.row for problem in kept}
        return BadRows(tuple(kept), self.rows, {n: row for n, row in self.kept.items() if n in numbers})

    def moved(self, by: int) -> BadRows:
        """Returns the problems with row numbers increased by `by`."""
        problems = tuple(replace(problem, row=problem.row + by) for problem in self.problems)
        return BadRows(problems, self.rows, {number + by: row for number, row in self.kept.items()})

    def named(self, fields: Mapping[str, str]) -> BadRows:
        """Returns the problems, with the names in the file of the columns in `fields`."""
        if not fields or not self.problems:
            return self
        problems = (
            replace(each, source=fields[each.column]) if each.column in fields and each.source is None else each
            for each in self.problems
        )
        return replace(self, problems=tuple(problems))


@dataclass(frozen=True, slots=True)
class BadRowLimit:
    """A limit on the bad rows that a load may set aside: a number of rows, or a share of all rows in percent."""

    amount: float
    is_share: bool = False

    @staticmethod
    def parse(text: str) -> BadRowLimit:
        """Returns the limit of a text such as `100` or `5%`. Raises InvalidInput for other texts."""
        number = text.strip().removesuffix("%")
        is_share = number != text.strip()
        if re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,6})?" if is_share else r"[0-9]{1,15}", number):
            limit = BadRowLimit(float(number), is_share)
            if not is_share or limit.amount <= 100:
                return limit
        raise InvalidInput(
            f"--max-bad-rows {text!r} is not a number of rows or a share of them", remedy="write 100, or 5%"
        )

    def allows(self, bad: int, rows: int) -> bool:
        return bad <= (self.amount * rows / 100 if self.is_share else self.amount)

    def __str__(self) -> str:
        return f"{self.amount:.15g}%" if self.is_share else f"{self.amount:.0f}"


def as_text(value: Any) -> str | None:
    """Returns a value of a source as the text for messages and for rows that are set aside."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return json.dumps(value, default=str, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def refusal(bad: Mapping[str, BadRows], address: str, verb: str = "loaded") -> Refused:
    """Returns the error for bad rows, by file. It lists the first bad rows and counts all of them. `verb` says what
    cannot be done with the rows; for "loaded", the remedy includes setting them aside."""
    total = sum(each.rows for each in bad.values())
    aside = ", or set bad rows aside with --bad-rows FILE:" if verb == "loaded" else ":"
    fixing = f"{_null_hint(bad)}fix {'them' if total != 1 else 'it'}{aside}"
    return Refused(
        f"{total:,} row{'s' if total != 1 else ''} cannot be {verb}, so nothing was",
        where=address,
        remedy="\n".join([fixing, *_listed(bad)]),
    )


def too_many(
    bad: Mapping[str, BadRows], rows: int, limit: BadRowLimit | None, file: object, address: str
) -> InvalidInput:
    """Returns the error for a load of `rows` rows where all of them, or more than the limit, are bad. `file` is the
    file of the bad rows."""
    total = sum(each.rows for each in bad.values())
    what = (
        ("the only row is bad" if rows == 1 else f"all {rows:,} rows are bad")
        if total == rows
        else f"{total:,} of {rows:,} rows are bad, which is more than --max-bad-rows {limit}"
    )
    return InvalidInput(
        f"{what}, so nothing was loaded",
        where=address,
        remedy="\n".join([f"{_null_hint(bad)}fix the rows, which are in {file}:", *_listed(bad)]),
    )


def _listed(bad: Mapping[str, BadRows]) -> list[str]:
    """Returns a line for each of the first bad rows, and a last line with the number of further bad rows."""
    lines: list[str] = []
    for file, each in bad.items():
        by_row = groupby(each.first(LISTED - len(lines)).problems, key=lambda problem: problem.row)
        lines += [f"  {file}: {_of_row(list(problems))}" for _, problems in by_row]
    more = sum(each.rows for each in bad.values()) - len(lines)
    return [*lines, f"  and {more:,} more"] if more else lines


def _of_row(problems: Sequence[Problem]) -> str:
    others = [repr(problem.column) for problem in problems[1:]]
    return str(problems[0]) + (f" (nor does {', '.join(others)} fit)" if others else "")


def _null_hint(bad: Mapping[str, BadRows]) -> str:
    """Returns a remedy where a bad value is a text that often means null; empty otherwise."""
    values = {problem.value for each in bad.values() for problem in each.problems}
    usual = sorted(value for value in values if value is not None and value in USUAL_NULLS)
    options = " ".join(f"--null-value {value!r}" if not value.isalnum() else f"--null-value {value}" for value in usual)
    return f"if {' and '.join(map(repr, usual))} means null, give {options}; or " if usual else ""
