"""Conditions on row keys: the choice of files that may contain a matching row, and of the matching rows.

Lance finds the rows if its SQL compares a type correctly; otherwise this module compares the columns. In pylance 14,
SQL has no literals for times, durations and 256-bit decimals, and reads `TIMESTAMP '…Z'` as local time where the zone
of the column is not UTC. `arrow_cast` returns a timestamp of exactly the column's type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.datasets.ordering.clustering import clustered_fields
from deployer.datasets.ordering.key_ranges import comparable, key_kinds
from deployer.specs.types.column_names import path_fault, quoted
from deployer.state.model.files.data_file import Bounds, File
from deployer.state.model.files.files import Files
from deployer.state.model.keys import encode_key, encode_value, successor
from deployer.tables.read.key_values import Interval, from_python

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.specs.model import KeyValue


@dataclass(frozen=True, slots=True)
class KeyPredicate:
    """The condition that a row's key starts with one of `prefixes` (empty: any key) and its columns are in `intervals`.

    `fields` has the row keys, then other columns with an interval; `others` has Lance's ids of these, by position.
    Values have the form of the state store (`deployer.state.model.keys`).
    """

    fields: tuple[pa.Field, ...]
    kinds: tuple[str, ...]
    prefixes: tuple[tuple[KeyValue, ...], ...] = ()
    intervals: Mapping[int, Interval] = field(default_factory=dict)
    others: Mapping[int, int] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not self.prefixes and not self.intervals

    def files(self, files: Files) -> list[File]:
        """Returns the files that may contain a matching row, by fragment id."""
        bounds = {self.others[i]: self._nullable_bounds(i, self.intervals[i]) for i in self.others}
        return [file for file in self._by_keys(files) if _may_hold(file, bounds)] if bounds else self._by_keys(files)

    def _by_keys(self, files: Files) -> list[File]:
        ranges = {i: self._bounds(i, interval) for i, interval in self.intervals.items() if i not in self.others}
        lower, upper = self._first_bounds()
        if not self.prefixes:
            return files.overlapping_columns(ranges, lower, upper)
        found: dict[int, File] = {}
        for prefix in self.prefixes:
            start = encode_key(self.kinds, prefix)
            for file in files.overlapping_columns(ranges, max(lower, start), _least(upper, successor(start))):
                found[file.fragment_id] = file
        return [found[i] for i in sorted(found)]

    def _bounds(self, i: int, interval: Interval) -> Bounds:
        # The bytes of a value are never a prefix of another value's. So the value and a zero byte are just above it.
        low = None if interval.low is None else encode_value(self.kinds[i], interval.low)
        high = None if interval.high is None else encode_value(self.kinds[i], interval.high)
        return (
            low if low is None or interval.low_included else low + b"\x00",
            high if high is None or not interval.high_included else high + b"\x00",
        )

    def _nullable_bounds(self, i: int, interval: Interval) -> tuple[bytes, bytes]:
        """Returns the bounds of values that are not null, encoded by `encode_nullable`. The upper one is excluded."""
        low, high = self._bounds(i, interval)
        return b"\x00" + (low or b""), b"\x01" if high is None else b"\x00" + high

    def _first_bounds(self) -> tuple[bytes, bytes | None]:
        interval = self.intervals.get(0)
        if interval is None or 0 in self.others:
            return b"", None
        low = b"" if interval.low is None else encode_value(self.kinds[0], interval.low)
        if interval.high is None:
            return low, None
        high = encode_value(self.kinds[0], interval.high)
        return low, successor(high) if interval.high_included else high

    @property
    def columns(self) -> list[str]:
        """The columns that the condition reads."""
        depth = max((len(prefix) for prefix in self.prefixes), default=0)
        return [f.name for i, f in enumerate(self.fields) if i < depth or i in self.intervals]

    def to_sql(self) -> str | None:
        """Returns the condition in Lance's SQL; None when Lance's SQL cannot express it."""
        used = [f for f in self.fields if f.name in self.columns]
        if not all(speaks_sql(f.type) and path_fault(f.name) is None for f in used):
            return None
        either = [" AND ".join(self._compared(i, "=", v) for i, v in enumerate(prefix)) for prefix in self.prefixes]
        parts = [f"({' OR '.join(f'({each})' for each in either)})"] if either else []
        for i, interval in self.intervals.items():
            if interval.low is not None:
                parts.append(self._compared(i, ">=" if interval.low_included else ">", interval.low))
            if interval.high is not None:
                parts.append(self._compared(i, "<=" if interval.high_included else "<", interval.high))
        return " AND ".join(parts) or None

    def _compared(self, i: int, operator: str, value: KeyValue) -> str:
        return f"{quoted(self.fields[i].name)} {operator} {sql_literal(self.fields[i].type, value)}"

    def mask(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Returns a mask of the matching rows. The batch must have at least `columns`."""
        result = np.ones(batch.num_rows, np.bool_)
        if self.prefixes:
            either = np.zeros(batch.num_rows, np.bool_)
            for prefix in self.prefixes:
                equal = [self._holds(batch, i, pc.equal, value) for i, value in enumerate(prefix)]
                either |= np.logical_and.reduce(equal) if equal else True
            result &= either
        for i, interval in self.intervals.items():
            if interval.low is not None:
                compare = pc.greater_equal if interval.low_included else pc.greater
                result &= self._holds(batch, i, compare, interval.low)
            if interval.high is not None:
                compare = pc.less_equal if interval.high_included else pc.less
                result &= self._holds(batch, i, compare, interval.high)
        return result

    def _holds(self, batch: pa.RecordBatch, i: int, compare: Any, value: KeyValue) -> NDArray[np.bool_]:
        column = comparable(batch.column(self.fields[i].name))
        other = pc.cast(pa.scalar(value), column.type) if isinstance(value, str) else pa.scalar(value, column.type)
        return np.asarray(compare(column, other).fill_null(False).cast(pa.int8())).astype(np.bool_)


def key_predicate(
    schema: pa.Schema,
    row_keys: Sequence[str],
    kinds: tuple[str, ...],
    keys: Sequence[Sequence[Any]] = (),
    ranges: Mapping[str, Interval] | None = None,
    ids: Mapping[str, int] | None = None,
) -> KeyPredicate:
    """Returns the condition for keys (prefixes of the row-key tuple) and ranges by column. Values are Python's or
    Arrow's.

    `ids` are Lance's ids of those columns in `ranges` that are not row keys.
    """
    names = [*row_keys, *(ids or {})]
    fields = tuple(schema.field(name) for name in names)
    prefixes = tuple(tuple(from_python(f, v) for f, v in zip(fields, key, strict=False)) for key in keys)
    intervals = {}
    for name, given in (ranges or {}).items():
        i = names.index(name)
        low = None if given.low is None else from_python(fields[i], given.low)
        high = None if given.high is None else from_python(fields[i], given.high)
        intervals[i] = Interval(low, high, given.low_included, given.high_included)
    others = {names.index(name): field_id for name, field_id in (ids or {}).items()}
    return KeyPredicate(fields, (*kinds, *key_kinds(schema, list(ids or ()))), prefixes, intervals, others)


def _may_hold(file: File, bounds: Mapping[int, tuple[bytes, bytes]]) -> bool:
    """Returns whether the file may contain a row whose columns, by Lance's ids, are within their bounds [low, high)."""
    places = {each: place for place, each in enumerate(clustered_fields(file.clustering))}
    return all(
        field_id not in places
        or (file.cluster_max[places[field_id]] >= low and file.cluster_min[places[field_id]] < high)
        for field_id, (low, high) in bounds.items()
    )


_UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}
_ZONE = re.compile(r"[A-Za-z0-9_+:/-]*")


def _least(one: bytes | None, other: bytes | None) -> bytes | None:
    return min((each for each in (one, other) if each is not None), default=None)


def speaks_sql(kind: pa.DataType) -> bool:
    """Returns whether Lance's SQL compares values of the type correctly, and `sql_literal` supports them."""
    types = pa.types
    return bool(
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
        or types.is_date32(kind)
        or types.is_decimal128(kind)
        or (types.is_timestamp(kind) and _ZONE.fullmatch(kind.tz or ""))
    )


def sql_literal(kind: pa.DataType, value: KeyValue) -> str:
    """Returns the value of a type that Lance's SQL compares rightly, as a literal; nothing in it can end it."""
    types = pa.types
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if types.is_decimal128(kind):
        return f"CAST('{value}' AS DECIMAL({kind.precision}, {kind.scale}))"
    if isinstance(value, str):
        quoted = value.replace("'", "''")
        return f"'{quoted}'"
    if types.is_date32(kind):
        return f"DATE '{pa.scalar(value, kind)}'"
    if types.is_timestamp(kind):
        zone = f'Some("{kind.tz}")' if kind.tz else "None"
        return f"arrow_cast({value}, 'Timestamp({_UNITS[kind.unit]}, {zone})')"
    if value == -(2**63):  # its digits alone are above every int64, and would be read as a float
        return "(-9223372036854775807 - 1)"
    return str(value)
