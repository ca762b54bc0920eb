"""Types of text columns, from their values. Texts that mean null and dates in other forms are found by evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from deployer.tables.conversion.text_values import parsed
from deployer.tables.ingest.rows.bad_rows import USUAL_NULLS
from deployer.tables.ingest.rows.time_texts import DateFormats, detected_formats, formatted

_TEXT_TYPES = (
    pa.int64(),
    pa.float64(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.time64("us"),
)
_LEADING_ZERO = r"^\s*[-+]?0[0-9]"
_TRIED = 1000  #: values that are tried before all are


@dataclass(frozen=True, slots=True)
class TypedText:
    """Columns with types; `date_formats` are those of columns whose dates are not ISO 8601; `notes` are for people."""

    rows: pa.Table
    date_formats: DateFormats = ()
    notes: tuple[str, ...] = ()


def typed(rows: pa.Table, given: DateFormats, *, numbers: bool) -> TypedText:
    """Returns columns of text as the first type that all of their values have; dates also in the `given` formats.

    `numbers`: text may be numbers and booleans (as in CSV).
    """
    columns, formats, notes = {}, [], []
    for name in rows.schema.names:
        values = _typed_column(rows.column(name), numbers)
        if pa.types.is_string(values.type) and len(values) > values.null_count:
            forms = _formats(name, values, given)
            if len(forms) == 1:
                values = _dates(values, forms[0])
                formats.append((name, forms[0]))
                notes.append(f"dates of {name} are written as {forms[0]}")
            elif forms:
                notes.append(
                    f"dates of {name} may be {' or '.join(forms)}, so it stays text; "
                    f"give --date-format {name}={forms[0]} if that is right"
                )
        columns[name] = values
    return TypedText(pa.table(columns), tuple(formats), tuple(notes))


def usual_nulls(rows: pa.Table) -> dict[str, list[str]]:
    """Texts such as NA that stand for null, with the columns that prove it: without these texts, all other values are
    numbers, dates or booleans. `rows` has text only."""
    found: dict[str, list[str]] = {}
    usual = pa.array(sorted(USUAL_NULLS))
    for name in rows.schema.names:
        values = rows.column(name).combine_chunks()
        texts = pc.unique(values).drop_null()
        nulls = texts.filter(pc.is_in(texts, usual))
        if not len(nulls) or len(nulls) == len(texts):
            continue
        others = values.filter(pc.invert(pc.is_in(values, nulls)))
        is_typed = not pa.types.is_string(_typed_column(others, numbers=True).type)
        if is_typed or _formats(name, others, ()):
            for text in nulls.to_pylist():
                found.setdefault(text, []).append(name)
    return found


def _typed_column(values: Any, numbers: bool) -> Any:
    if pa.types.is_null(values.type):
        return values.cast(pa.string())
    if not pa.types.is_string(values.type) or values.null_count == len(values):
        return values
    joined = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    texts = pc.unique(pc.utf8_lower(pc.utf8_trim_whitespace(joined.drop_null())))
    if numbers and set(texts.slice(0, 3).to_pylist()) <= {"true", "false"}:
        return parsed(joined, pa.bool_())[0]
    kinds = [kind for kind in _TEXT_TYPES if numbers or not _is_number(kind)]
    kind = type_of_texts(pc.unique(joined), kinds)
    return joined if kind is None else parsed(joined, kind)[0]


def type_of_texts(texts: Any, kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """Returns the first of the types that all texts (an Array) have; None without one.

    Text with leading zeros, such as 007, is not a number, and 6.0 is not an integer: other files may have 6.5. A time
    has a colon: 01 is not an hour.
    """
    without_colon = pc.any(pc.invert(pc.match_substring(texts, ":"))).as_py()
    zeros = pc.any(pc.match_substring_regex(texts, _LEADING_ZERO)).as_py()
    written_as_floats = pc.any(pc.match_substring_regex(texts, "[.eE]")).as_py()
    for kind in kinds:
        if (zeros and _is_number(kind)) or (pa.types.is_integer(kind) and written_as_floats):
            continue
        if pa.types.is_time(kind) and without_colon:
            continue
        if all(parsed(part, kind)[1] is None for part in (texts.slice(0, _TRIED), texts)):
            return kind
    return None


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _formats(name: str, values: Any, given: DateFormats) -> list[str]:
    """Returns the given format of the column if it reads all values, otherwise the ones that are detected."""
    texts = pc.unique(values.drop_null()).to_pylist()
    form = dict(given).get(name, dict(given).get(None))
    if form is not None and detected_formats(texts, [form]):
        return [form]
    return detected_formats(texts[:_TRIED]) and detected_formats(texts)


def _dates(values: Any, form: str) -> Any:
    has_time = any(directive in form for directive in ("%H", "%I"))
    kind = pa.timestamp("us", "UTC" if "%z" in form else None) if has_time else pa.date32()
    return parsed(formatted(values, form, is_date=not has_time), kind)[0]
