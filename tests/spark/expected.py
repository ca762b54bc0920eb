"""The values that Spark is to have for values of a table, by their spec types, worked out one by one."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa

from deployer.specs.types.arrow import arrow_field
from deployer.specs.types.types import Column, ColumnType, Dictionary, FixedSizeList, ListOf, MapOf, Scalar, Struct


def as_spark(kind: ColumnType, value: Any) -> Any:
    """The value in the terms of Arrow's `to_pylist` for the type that Spark has."""
    if value is None:
        return None
    match kind:
        case Scalar("uuid"):
            return str(UUID(bytes=value))
        case Scalar("decimal256", (50, 2)):
            return f"{value:.2f}"
        case Scalar("float16"):
            return float(value)
        case Scalar("time32" | "time64"):
            return _stored(kind, value).cast(pa.int32() if kind.name == "time32" else pa.int64()).as_py()
        case Scalar("timestamp" | "duration" | "date32" | "date64"):
            found = _stored(kind, value).as_py()
            zoned = isinstance(found, dt.datetime) and found.tzinfo is not None
            return found.astimezone(dt.UTC) if zoned else found
        case ListOf(item) | FixedSizeList(item):
            return [as_spark(item.type, each) for each in value]
        case Struct(fields):
            return {field.name: as_spark(field.type, value[field.name]) for field in fields}
        case MapOf(key, inner):
            return [(as_spark(key.type, each), as_spark(inner.type, found)) for each, found in value]
        case Dictionary(_, inner_type):
            return as_spark(inner_type, value)
        case _:
            return value


def of_pandas(kind: ColumnType, value: Any) -> Any:
    """A value of a column of pandas, whoever made it, in one form for each spec type. pandas has nulls of numbers as
    NaN, whole numbers beside nulls as floats, and instants of Spark in UTC without a zone."""
    if not isinstance(value, list | dict | tuple | np.ndarray) and pd.isna(value):
        return None
    match kind:
        case Scalar("uuid"):
            return str(UUID(bytes=value)) if isinstance(value, bytes) else str(value)
        case Scalar("decimal128" | "decimal256"):
            return Decimal(value)
        case Scalar("time32" | "time64"):
            own = isinstance(value, dt.time)
            return (
                _stored(kind, value).cast(pa.int32() if kind.name == "time32" else pa.int64()).as_py() if own else value
            )
        case Scalar("timestamp"):
            found = pd.Timestamp(value)
            return (found if found.tzinfo is None else found.tz_convert("UTC").tz_localize(None)).to_pydatetime()
        case Scalar("duration"):
            return pd.Timedelta(value).to_pytimedelta()
        case Scalar(name) if name.startswith(("int", "uint")):
            return int(value)
        case Scalar(name) if name.startswith("float"):
            return float(value)
        case ListOf(item) | FixedSizeList(item):
            return [of_pandas(item.type, each) for each in value]
        case Struct(fields):
            return {field.name: of_pandas(field.type, value[field.name]) for field in fields}
        case MapOf(key, inner):
            pairs = value.items() if isinstance(value, dict) else value
            return [(of_pandas(key.type, each), of_pandas(inner.type, found)) for each, found in pairs]
        case Dictionary(_, inner_type):
            return of_pandas(inner_type, value)
        case _:
            return bytes(value) if isinstance(value, bytearray) else value


def _stored(kind: Scalar, value: Any) -> Any:
    return pa.scalar(value, arrow_field(Column("c", kind)).type)
