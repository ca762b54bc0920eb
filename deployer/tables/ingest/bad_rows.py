"""Rows that cannot be loaded: which they are, why, and what to say about them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from deployer.errors import InvalidInput, Refused
from deployer.files.private import make_folder, replacing
from deployer.tables.ingest.source_files import is_on_s3

LISTED = 10  #: how many bad rows a refusal shows
USUAL_NULLS = frozenset({"NA", "N/A", "n/a", "NULL", "null", "Null", "None", "NaN", "nan", "nil", "-", "?", "\\N"})
SHOWN = 60  #: characters of a value in a message


@dataclass(frozen=True, slots=True)
class Problem:
    """One value that keeps its row out: the 1-based data row, the column, why, and the value as text (None: null)."""

    row: int
    column: str
    reason: str
    value: str | None

    def __str__(self) -> str:
        shown = "" if self.value is None else f" {_short(self.value)!r}"
        return f"row {self.row}: {f'column {self.column!r}' if self.column else 'the row'}{shown} {self.reason}"


@dataclass(frozen=True, slots=True)
class BadRows:
    """Problems of some rows, by row then column, and how many rows they are."""

    problems: tuple[Problem, ...] = ()
    rows: int = 0

    @staticmethod
    def of(problems: Sequence[Problem], rows: int | None = None) -> BadRows:
        """Problems in the order of their rows; `rows` counts the bad rows when not all of them have problems told."""
        ordered = tuple(sorted(problems, key=lambda problem: problem.row))
        return BadRows(ordered, len({problem.row for problem in ordered}) if rows is None else rows)

    def joined(self, other: BadRows) -> BadRows:
        """Both, where `other` has other rows than these."""
        return BadRows.of(self.problems + other.problems, self.rows + other.rows) if other.rows else self

    def first(self, rows: int) -> BadRows:
        """The problems of the first rows only; `rows` still counts all of them."""
        kept: list[Problem] = []
        for count, (_, problems) in enumerate(groupby(self.problems, key=lambda problem: problem.row)):
            if count >= rows:
                break
            kept += problems
        return BadRows(tuple(kept), self.rows)

    def moved(self, by: int) -> BadRows:
        """The same with row numbers `by` higher."""
        return BadRows(tuple(Problem(p.row + by, p.column, p.reason, p.value) for p in self.problems), self.rows)


def as_text(value: Any) -> str | None:
    """A source's value as it is shown and set aside."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return json.dumps(value, default=str, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def refusal(bad: Mapping[str, BadRows], address: str) -> Refused:
    """The error for bad rows by file: the first ones listed, all counted."""
    total = sum(each.rows for each in bad.values())
    lines: list[str] = []
    for file, each in bad.items():
        by_row = groupby(each.first(LISTED - len(lines)).problems, key=lambda problem: problem.row)
        lines += [f"  {file}: {_of_row(list(problems))}" for _, problems in by_row]
    more = [f"  and {total - len(lines):,} more"] if total > len(lines) else []
    mending = f"{_null_hint(bad)}mend {'them' if total != 1 else 'it'}, or set bad rows aside with --bad-rows FILE:"
    return Refused(
        f"{total:,} row{'s' if total != 1 else ''} cannot be loaded, so nothing was",
        where=address,
        remedy="\n".join([mending, *lines, *more]),
    )


def _of_row(problems: Sequence[Problem]) -> str:
    others = [repr(problem.column) for problem in problems[1:]]
    return str(problems[0]) + (f" (nor does {', '.join(others)} fit)" if others else "")


def _null_hint(bad: Mapping[str, BadRows]) -> str:
    """What to do when a bad value is one that often stands for null."""
    values = {problem.value for each in bad.values() for problem in each.problems}
    usual = sorted(value for value in values if value is not None and value in USUAL_NULLS)
    options = " ".join(f"--null-value {value!r}" if not value.isalnum() else f"--null-value {value}" for value in usual)
    return f"if {' and '.join(map(repr, usual))} means null, give {options}; or " if usual else ""


def write_bad_rows(path: str | Path, bad: Mapping[str, BadRows]) -> None:
    """Sets the problems aside at `path`, which may be an s3:// address: Parquet when it is called so, else JSON lines.

    Replaces the file whole.
    """
    rows = [
        {"file": file, "row": p.row, "column": p.column, "reason": p.reason, "value": p.value}
        for file, each in bad.items()
        for p in each.problems
    ]
    if not is_on_s3(str(path)):
        _write(Path(path), rows)
        return
    from deployer.state.objects_s3 import S3Objects

    folder, _, name = str(path).rpartition("/")
    with TemporaryDirectory(prefix="deployer-bad-rows-") as temporary:
        file = Path(temporary) / name
        _write(file, rows)
        S3Objects(folder).put(name, file.read_bytes())


def _write(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    try:
        make_folder(path.parent)
        with replacing(path) as file:
            if path.suffix.lower() == ".parquet":
                import pyarrow.parquet as pq

                pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), file)
            else:
                lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
                file.writelines(line.encode("utf-8", "replace") for line in lines)
    except OSError as failure:
        raise InvalidInput(
            f"bad rows cannot be written: {failure}", where=path, remedy="give another --bad-rows"
        ) from None


_SCHEMA = pa.schema(
    [
        pa.field("file", pa.string()),
        pa.field("row", pa.int64()),
        pa.field("column", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("value", pa.string()),
    ]
)
