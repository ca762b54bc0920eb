"""Row keys of Arrow data in the form of the state store: values, and the smallest and largest key of a fragment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deployer.platform.text.visible import shortened
from deployer.specs.model import KeyValue
from deployer.specs.types.arrow import column_of
from deployer.specs.types.types import Column, format_type
from deployer.specs.values.keys import is_key_type
from deployer.state.model.keys import encode_key, encode_value

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The smallest and largest encoded row key, and the same for each key column alone, all inclusive."""

    min_key: bytes
    max_key: bytes
    column_min: tuple[bytes, ...]
    column_max: tuple[bytes, ...]

    def joined(self, other: KeyRange) -> KeyRange:
        return KeyRange(
            min(self.min_key, other.min_key),
            max(self.max_key, other.max_key),
            tuple(map(min, self.column_min, other.column_min)),
            tuple(map(max, self.column_max, other.column_max)),
        )


def key_kinds(schema: pa.Schema, columns: Sequence[str]) -> tuple[str, ...]:
    """Returns the kinds (see `deployer.state.model.keys`) of key columns."""
    return tuple(format_type(column_of(schema.field(name)).type) for name in columns)


def fault_of_keys(columns: Iterable[Column], keys: Sequence[str]) -> str | None:
    """Returns why a table of these columns cannot have these row keys or sort keys; None where it can."""
    types = {column.name: column.type for column in columns}
    for key in keys:
        if key not in types:
            return f"{shortened(key)} is not a column of the table"
        if not is_key_type(types[key]):
            return f"{shortened(key)} is a column of type {shortened(format_type(types[key]))}, which has no order"
        if keys.count(key) > 1:
            return f"{shortened(key)} is listed twice"
    return None


def comparable(values: Any) -> Any:
    """Returns the same values (Array or ChunkedArray) in a type that Arrow's kernels order as keys are ordered.

    Dates, times, timestamps and durations become their integers; anything a key or sort key can be is covered.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        return comparable(pc.cast(values, kind.storage_type))
    if pa.types.is_dictionary(kind):
        return comparable(pc.cast(values, kind.value_type))
    if pa.types.is_float16(kind):
        return pc.cast(values, pa.float32())
    if pa.types.is_temporal(kind):
        return pc.cast(pc.cast(values, pa.int32()) if kind.bit_width == 32 else values, pa.int64())
    return values


def key_value(scalar: pa.Scalar) -> KeyValue:
    """Returns a scalar of `comparable` values in the form of the state store."""
    import pyarrow as pa

    value = scalar.as_py()
    result: KeyValue = format(value, "f") if pa.types.is_decimal(scalar.type) else value
    return result


def key_range(keys: pa.Table, kinds: Sequence[str], *, in_order: bool = False) -> KeyRange | None:
    """Returns the range of the row-key columns `keys`; None when there are no rows or a key is null.

    `in_order`: the rows are sorted by these columns, so that only the first and last row are read.
    """
    if not keys.num_rows or not keys.num_columns:
        return None
    columns = [comparable(column) for column in keys.columns]
    if any(column.null_count for column in columns):
        return None
    found = [extremes(column) for column in columns]
    if in_order:
        first, last = ([column[row] for column in columns] for row in (0, keys.num_rows - 1))
    else:
        first, last = _extreme_row(columns, 0), _extreme_row(columns, 1)
    return KeyRange(
        encode_key(kinds, [key_value(value) for value in first]),
        encode_key(kinds, [key_value(value) for value in last]),
        tuple(encode_value(kind, key_value(low)) for kind, (low, _) in zip(kinds, found, strict=True)),
        tuple(encode_value(kind, key_value(high)) for kind, (_, high) in zip(kinds, found, strict=True)),
    )


def extremes(column: Any) -> tuple[pa.Scalar, pa.Scalar]:
    """Returns the smallest and largest of `comparable` values, of which at least one is not null. NaN, which Arrow
    ignores, is above all numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.min_max(column)
    low, high = found["min"], found["max"]
    if pa.types.is_floating(column.type):
        nan = pc.is_nan(column)
        not_a_number = pa.scalar(float("nan"), column.type)
        low = not_a_number if pc.all(nan).as_py() else low
        high = not_a_number if pc.any(nan).as_py() else high
    return low, high


def _extreme_row(columns: Sequence[Any], which: int) -> list[pa.Scalar]:
    """Returns the first or last row in key order: the extreme of the first column, then of the second among the rows
    found."""
    import pyarrow as pa
    import pyarrow.compute as pc

    row, rest = [], list(columns)
    while rest:
        value = extremes(rest[0])[which]
        row.append(value)
        is_nan = pa.types.is_floating(value.type) and value.as_py() != value.as_py()
        same = pc.is_nan(rest[0]) if is_nan else pc.equal(rest[0], value)
        rest = [column.filter(same) for column in rest[1:]]
    return row
