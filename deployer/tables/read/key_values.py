"""Converts users' row-key values (text or Python values) to the forms for comparisons and look-ups."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.datasets.ordering.key_ranges import comparable, key_value
from deployer.errors import InvalidInput
from deployer.specs.types.arrow import column_of
from deployer.specs.types.column_names import listed
from deployer.specs.types.types import format_type
from deployer.specs.values.keys import is_key_type
from deployer.specs.yaml.suggestions import nearest
from deployer.tables.conversion.text_values import parsed

if TYPE_CHECKING:
    from deployer.specs.model import KeyValue


@dataclass(frozen=True, slots=True)
class Interval:
    """The values of a column between two ends. None means an open end. Ends are included by default."""

    low: Any = None
    high: Any = None
    low_included: bool = True
    high_included: bool = True


def from_python(field: pa.Field, value: Any) -> KeyValue:
    """Returns a Python value of the column in the form of the state store. Dates and times may be text, as in CSV.

    Raises InvalidInput where the value does not fit the column's type.
    """
    if isinstance(value, str) and pa.types.is_temporal(field.type):
        value = from_text(field, value)
    try:
        array = pa.array([value], field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError) as failure:
        raise _misfit(field, repr(value)) from failure
    if array.null_count:
        raise InvalidInput("a null is neither a key nor the end of a range", where=_where(field), remedy="give a value")
    return key_value(comparable(array)[0])


def from_text(field: pa.Field, text: str) -> Any:
    """Returns the Python value, of the column's type, of a text as in CSV (see `text_values.parsed`)."""
    values, bad = parsed(pa.array([text]), field.type)
    if bad is not None:
        raise _misfit(field, repr(text))
    return values[0] if pa.types.is_timestamp(field.type) or pa.types.is_temporal(field.type) else values[0].as_py()


def _misfit(field: pa.Field, shown: str) -> InvalidInput:
    kind = format_type(column_of(field).type)
    hint = "give a value of that type"
    if pa.types.is_timestamp(field.type):
        hint = "write it as 2013-01-01T10:00:00" + ("Z, with an offset" if field.type.tz else ", without an offset")
    return InvalidInput(f"{shown} is not a value of {kind}", where=_where(field), remedy=hint)


def _where(field: pa.Field) -> str:
    return f"column {field.name!r}"


def parse_keys(schema: pa.Schema, row_keys: Sequence[str], text: str) -> tuple[Any, ...]:
    """Returns the values of a text such as `AA,1545`, which are of the first row keys, in their order. A value with a
    comma must be in double quotes."""
    try:
        values = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error as error:
        raise InvalidInput(
            f"{text!r} cannot be read: {error}", where="--keys", remedy="put a value with a line end in double quotes"
        ) from None
    if not row_keys:
        raise InvalidInput("the table has no row keys", remedy="use --where")
    if not values or len(values) > len(row_keys):
        raise InvalidInput(
            f"--keys {text!r} has {len(values)} values", remedy=f"give at most {len(row_keys)}: {listed(row_keys)}"
        )
    for name, value in zip(row_keys, values, strict=False):
        if value.startswith(f"{name}="):
            plain = text.replace(f"{name}=", "", 1)
            raise InvalidInput(f"--keys takes values alone, not {value!r}", remedy=f"write --keys {plain}")
    return tuple(from_text(schema.field(name), value) for name, value in zip(row_keys, values, strict=False))


_RANGE = re.compile(r"(?P<low>.*?)(?P<after><)?\.\.(?P<before><)?(?P<high>.*)", re.DOTALL)


def parse_range(schema: pa.Schema, text: str) -> tuple[str, Interval]:
    """Returns the column and the interval of a text such as `carrier=AA..DL`, which includes both ends. `AA<..DL`
    excludes the first end, `AA..<DL` the last end. Either end may be omitted."""
    # a name may contain =, so the longest name of an existing column counts
    known = max((name for name in schema.names if text.startswith(f"{name}=")), key=len, default=None)
    name = text.partition("=")[0].strip() if known is None else known
    match = _RANGE.fullmatch(text.partition("=")[2] if known is None else text[len(known) + 1 :])
    if not name or "=" not in text or match is None:
        raise InvalidInput(f"--range {text!r} is not a range", remedy="write COLUMN=LOW..HIGH, such as carrier=AA..DL")
    require_ordered(name, schema)
    field = schema.field(name)
    low = from_text(field, match["low"]) if match["low"] else None
    high = from_text(field, match["high"]) if match["high"] else None
    return name, Interval(low, high, not match["after"], not match["before"])


def parse_ranges(schema: pa.Schema, texts: Sequence[str]) -> Mapping[str, Interval]:
    """Returns the ranges of several columns, which must all match. Raises InvalidInput for a column named twice."""
    found: dict[str, Interval] = {}
    for text in texts:
        name, interval = parse_range(schema, text)
        if name in found:
            raise InvalidInput(f"--range names {name!r} twice", remedy="give both ends in one: LOW..HIGH")
        found[name] = interval
    return found


def require_ordered(name: str, schema: pa.Schema) -> None:
    """Raises InvalidInput where the column does not exist, or its values have no order."""
    if name not in schema.names:
        raise unknown_column(name, schema.names)
    kind = column_of(schema.field(name)).type
    if not is_key_type(kind):
        raise InvalidInput(
            f"column {name!r} of type {format_type(kind)} has no order, and so no ranges", remedy="use --where"
        )


def unknown_column(name: str, names: Sequence[str], where: str | None = None) -> InvalidInput:
    """Returns the error for a column that a table does not have."""
    near = nearest(name, names)
    return InvalidInput(
        f"there is no column {name!r}",
        where=where,
        remedy=f"did you mean {near!r}?" if near else f"columns: {listed(names)}",
    )
