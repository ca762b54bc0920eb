"""Computes values of columns that a source lacks and whose spec has a `default:`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deployer.specs.types.arrow import DEFAULT
from deployer.tables.conversion.casts import converted
from deployer.tables.conversion.sql_values import values_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


def default_of(field: pa.Field) -> str:
    """Returns the SQL expression of a column of the table; empty when it has none."""
    metadata: Mapping[bytes, bytes] = field.metadata or {}
    return metadata.get(DEFAULT, b"").decode()


def defaulted(rows: pa.RecordBatch, expression: str, target: pa.DataType) -> tuple[Any, NDArray[np.bool_] | None]:
    """Returns the value of the expression for each row, and the rows that it fails for (null there; None: no row).

    `rows` are the table's columns as far as they are known.
    """
    return converted(
        pa.array(np.arange(rows.num_rows)), lambda places: values_of(rows.take(places), expression, target), target
    )


def filled(
    array: Any, misfits: NDArray[np.bool_] | None, rows: pa.RecordBatch, expression: str
) -> tuple[Any, NDArray[np.bool_] | None]:
    """Returns the column with the default in place of its nulls, and which rows do not fit; `misfits` stay null."""
    absent = np.asarray(array.is_null())
    if misfits is not None:
        absent &= ~misfits
    places = np.cumsum(absent) - 1
    values, failed = defaulted(rows.filter(pa.array(absent)), expression, array.type)
    both = pa.concat_arrays([array, values])
    merged = both.take(pa.array(np.where(absent, len(array) + places, np.arange(len(array)))))
    if failed is None or not failed.any():
        return merged, misfits
    failing = np.zeros(len(array), np.bool_)
    failing[absent] = failed
    return merged, failing if misfits is None else failing | misfits
