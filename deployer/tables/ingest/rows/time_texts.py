"""Converts dates and times in files to ISO 8601, from which columns of dates and timestamps are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from deployer.errors import InvalidInput
from deployer.specs.types.column_names import listed
from deployer.tables.conversion.text_values import parsed
from deployer.tables.ingest.rows.bad_rows import BadRows, Problem

if TYPE_CHECKING:
    from deployer.tables.ingest.files.model import ReadOptions

_HAS_OFFSET = r"[0-9][T ][0-9]{2}.*([zZ]|[+-][0-9]{2}(:?[0-9]{2})?)\s*$"
_THOUSANDS = re.compile(r"\s*[-+]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?\s*")
_TIME_FORMATS = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S")
_DATE_FORMATS = ("%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y")
_NAMED_MONTHS = ("%b %d %Y", "%b %d, %Y", "%d %b %Y", "%d-%b-%Y")
_LIKE_A_DATE = re.compile(r"\s*[0-9]{1,4}([/.-])[0-9]{1,2}\1[0-9]{1,4}([ T][0-9:]{4,8})?\s*")
_SAMPLE = datetime(2012, 12, 31)  # noqa: DTZ001 (a date)

DateFormats = tuple[tuple[str | None, str], ...]  #: columns (None: all others) and their formats for strptime


def date_format(text: str) -> tuple[str | None, str]:
    """Returns the column (None: all) and the format of an option `FORMAT` or `COLUMN=FORMAT`.

    Raises InvalidInput for a format that does not read back a date that it writes.
    """
    column, form = None, text
    for place in (found.start() for found in re.finditer("=", text)):
        if _is_date(text[place + 1 :]):  # the last match counts, because a column's name may contain = and %
            column, form = text[:place], text[place + 1 :]
    if not _is_date(form):
        raise InvalidInput(
            f"--date-format {text!r} has no year, month and day",
            remedy="write it with %Y, %m and %d as Python's strptime reads them, such as %d.%m.%Y",
        )
    return column or None, form


def _is_date(form: str) -> bool:
    """Returns whether a date that is written in this format is read back unchanged."""
    try:
        return "%" in form and datetime.strptime(_SAMPLE.strftime(form), form).date() == _SAMPLE.date()  # noqa: DTZ007
    except ValueError:
        return False


def check_times(options: ReadOptions, table: pa.Schema) -> None:
    """Raises InvalidInput for formats of columns that are neither dates nor timestamps, and for unknown time zones."""
    columns = [column for column, _ in options.date_formats]
    for column in columns:
        if columns.count(column) > 1:
            which = "all columns" if column is None else f"column {column!r}"
            raise InvalidInput(f"--date-format is given twice for {which}", remedy="give it once")
        if column is not None and column not in table.names:
            raise InvalidInput(
                f"--date-format is for column {column!r}, which the table does not have",
                remedy=f"its columns are {listed(table.names)}",
            )
        if column is not None and not _is_dated(table.field(column).type):
            raise InvalidInput(
                f"--date-format is for column {column!r}, which is {table.field(column).type}",
                remedy="give it for columns of dates and timestamps",
            )
    if options.timezone is not None:
        try:
            pc.assume_timezone(pa.array([0], pa.timestamp("s")), options.timezone)
        except (pa.ArrowInvalid, ValueError):
            raise InvalidInput(
                f"unknown --timezone {options.timezone!r}", remedy="give one such as Europe/Berlin or UTC"
            ) from None


def _is_dated(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def as_iso(rows: pa.RecordBatch, table: pa.Schema, options: ReadOptions) -> pa.RecordBatch:
    """Returns the rows with dates and times in ISO 8601. Texts that match a format of the options are converted, and
    local times get the offset of their time zone. Texts that cannot be read are unchanged."""
    if not options.date_formats and options.timezone is None:
        return rows
    formats = dict(options.date_formats)
    arrays = []
    for field, values in zip(rows.schema, rows.columns, strict=True):
        kind = table.field(field.name).type if field.name in table.names else None
        if kind is not None and pa.types.is_string(field.type) and _is_dated(kind):
            form = formats.get(field.name, formats.get(None))
            values = values if form is None else formatted(values, form, is_date=pa.types.is_date(kind))
            if options.timezone is not None and pa.types.is_timestamp(kind) and kind.tz:
                values = _with_offset(values, kind.unit, options.timezone)
        arrays.append(values)
    return pa.RecordBatch.from_arrays(arrays, schema=rows.schema)


def formatted(values: Any, form: str, *, is_date: bool) -> Any:
    """Returns the texts, with those that match the format in ISO 8601. If `is_date`, a time of midnight becomes a
    date."""

    def iso(text: str | None) -> str | None:
        if text is None:
            return None
        try:
            found = datetime.strptime(text.strip(), form)  # noqa: DTZ007 (it has an offset if the format has one)
        except ValueError:
            return text
        midnight = found.time() == datetime.min.time()
        return found.date().isoformat() if is_date and midnight else found.isoformat()

    encoded = values.dictionary_encode()
    texts = pa.array(map(iso, encoded.dictionary.to_pylist()), pa.string())
    return texts.take(encoded.indices)


def _with_offset(values: Any, unit: str, zone: str) -> Any:
    """Returns local times in UTC. Times that a change of the clocks skips or repeats stay without an offset."""
    local = pc.if_else(pc.match_substring_regex(values, _HAS_OFFSET), None, values)
    times, _ = parsed(local, pa.timestamp(unit))
    first = _in_zone(times, zone, "earliest")
    clear = pc.and_(pc.equal(first, _in_zone(times, zone, "latest")), _exists(times, first))
    texts = pc.strftime(pc.cast(first, pa.timestamp(unit, "UTC")), "%Y-%m-%dT%H:%M:%SZ")
    return pc.if_else(pc.fill_null(clear, False), texts, values)


def _in_zone(times: Any, zone: str, which: str) -> Any:
    return pc.assume_timezone(times, zone, ambiguous=which, nonexistent=which)


def _exists(times: Any, instants: Any) -> Any:
    """Returns whether the instants still have the local times from which they were computed."""
    return pc.equal(pc.local_timestamp(instants), times)


def with_remarks(bad: BadRows, table: pa.Schema, options: ReadOptions) -> BadRows:
    """Returns the problems of texts with a remark on the form of the value, where that form is recognized."""
    problems = [replace(each, reason=each.reason + _remark(each, table, options)) for each in bad.problems]
    return replace(bad, problems=tuple(problems))


def _remark(problem: Problem, table: pa.Schema, options: ReadOptions) -> str:
    if problem.value is None or problem.column not in table.names or not problem.reason.startswith("does not fit"):
        return ""
    kind = table.field(problem.column).type
    if pa.types.is_timestamp(kind) and kind.tz and _reads(problem.value, pa.timestamp(kind.unit)):
        if options.timezone is None:
            return ": its offset is missing; if it is local time, give --timezone ZONE"
        return f": clocks in {options.timezone} change then, so it needs an offset such as +01:00"
    if _is_dated(kind) and not options.date_formats and _LIKE_A_DATE.fullmatch(problem.value):
        forms = detected_formats([problem.value])
        return f": give its form as --date-format, such as {' or '.join(forms)}" if forms else ""
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if is_number and _THOUSANDS.fullmatch(problem.value):
        return ": it has a thousands separator"
    return ""


def _reads(text: str, kind: pa.DataType) -> bool:
    return parsed(pa.array([text]), kind)[1] is None


def detected_formats(texts: Sequence[str], formats: Sequence[str] = ()) -> list[str]:
    """Returns those of the `formats` that match all texts. By default, tries widely used formats. `texts` has at least
    one text.

    Returns two formats where no text has a day above 12, which would show whether the day or the month comes first.
    """
    candidates = formats or [form + time for form in _DATE_FORMATS + _NAMED_MONTHS for time in _TIME_FORMATS]
    candidates = [form for form in candidates if _fits(form, texts[0])]
    return [form for form in candidates if all(_fits(form, text) for text in texts)]


def _fits(form: str, text: str) -> bool:
    try:
        datetime.strptime(text.strip(), form)  # noqa: DTZ007
    except ValueError:
        return False
    return True
