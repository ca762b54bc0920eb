"""Rows of real files, as pandas, pyarrow and Python's json read them, compared with the rows that a load gave a table.

The libraries know nothing of deployer: texts of CSV are compared as numbers, dates and times by Python's own readers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import lance
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

from deployer.tables.ingest.files.model import ReadOptions

Row = Sequence[Any]


def expected_rows(file: Path, options: Mapping[str, Any]) -> list[Row]:
    """All rows of the file, its values in the order of its columns; `options` are those of `pandas.read_csv`."""
    name = file.name.removesuffix(".gz").removesuffix(".zst")
    if name.endswith(".json"):
        return _values(json.loads(file.read_text(encoding="utf-8")))
    if name.endswith(".jsonl"):
        return _values([json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()])
    if name.endswith(".parquet"):
        return _values(pq.ParquetFile(file).read().to_pylist())
    if name.endswith((".feather", ".arrow")):
        return _values(feather.read_table(file).to_pylist())
    if name.endswith(".lance"):
        return _values(lance.dataset(str(file)).to_table().to_pylist())
    text = pa.input_stream(file, compression="detect")  # pandas has no zstd
    texts = pd.read_csv(text, dtype=str, keep_default_na=False, na_filter=False, **options)
    rows = texts if isinstance(texts.index, pd.RangeIndex) else texts.reset_index()
    return [list(row) for row in rows.to_numpy()]


def _values(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    names = dict.fromkeys(name for row in rows for name in row)
    return [[row.get(name) for name in names] for row in rows]


def differences(expected: Sequence[Row], loaded: pa.Table, options: ReadOptions, most: int = 3) -> list[str]:
    """The first values that the table has otherwise than the file; a difference in number alone if there is one."""
    if len(expected) != loaded.num_rows:
        return [f"{len(expected)} rows in the file, {loaded.num_rows} in the table"]
    if expected and len(expected[0]) != loaded.num_columns:
        return [f"{len(expected[0])} columns in the file, {loaded.num_columns} in the table: {loaded.column_names}"]
    found = []
    for at, (name, column) in enumerate(zip(loaded.column_names, loaded.columns, strict=True)):
        formats = [form for of, form in options.date_formats if of in (None, name)]
        is_json = "json" in str(column.type)
        for row, value in enumerate(column.to_pylist()):
            value = json.loads(value) if is_json and value is not None else value
            if not _same(expected[row][at], value, options.null_values, formats):
                found.append(f"row {row + 1}, {name}: {expected[row][at]!r} in the file, {value!r} in the table")
                if len(found) == most:
                    return found
    return found


def _same(expected: Any, value: Any, nulls: Sequence[str], formats: Sequence[str]) -> bool:
    match expected, value:
        case None, _:
            return value is None
        case str(), str():
            return expected == value
        case str(), None:
            return expected in nulls or not expected
        case str(), bool():
            return expected.strip().lower() == str(value).lower()
        case str(), int() | float() | Decimal():
            return _is_number(expected, value)
        case str(), time():
            return expected.strip() == str(value)
        case str(), datetime():
            return value in _moments(expected, formats, value.tzinfo is not None)
        case str(), date():
            return value in [moment.date() for moment in _moments(expected, formats, False)]
        case float(), float():
            return expected == value or (math.isnan(expected) and math.isnan(value))
        case dict(), dict():
            return all(_same(expected.get(name), each, nulls, formats) for name, each in value.items()) and set(
                expected
            ) <= set(value)
        case list(), list():
            return len(expected) == len(value) and all(
                _same(one, other, nulls, formats) for one, other in zip(expected, value, strict=True)
            )
        case _:
            return bool(expected == value)


def _is_number(text: str, value: float | Decimal) -> bool:
    try:
        exact = Decimal(text.strip())
    except InvalidOperation:
        return False
    if isinstance(value, float):
        return float(exact) == value or (exact.is_nan() and math.isnan(value))
    return exact == value


def _moments(text: str, formats: Sequence[str], zoned: bool) -> list[datetime]:
    found = []
    for form in (None, *formats):
        try:
            moment = datetime.fromisoformat(text.strip()) if form is None else datetime.strptime(text.strip(), form)  # noqa: DTZ007
        except ValueError:
            continue
        if (moment.tzinfo is not None) == zoned:
            found.append(moment)
    return found
