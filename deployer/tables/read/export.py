"""Writes rows in the order in which they arrive: CSV and JSON lines to a text stream, Parquet to a file."""

from __future__ import annotations

import csv
import json
import unicodedata
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.platform.files.private import replacing


def write_csv(schema: pa.Schema, batches: Iterator[pa.RecordBatch], sink: IO[str], *, safe: bool = False) -> None:
    """Writes a header line and a line for each row: null is empty, nested values are JSON, binary is base64.

    `safe`: names and values of text that a spreadsheet would run as formulas get a `'` in front; all text is quoted.
    """
    writer = csv.writer(
        _Lines(sink), lineterminator="\r\n", quoting=csv.QUOTE_NONNUMERIC if safe else csv.QUOTE_MINIMAL
    )
    writer.writerow([_without_formula(name) for name in schema.names] if safe else schema.names)
    for batch in batches:
        columns = [[_csv_value(value) for value in plain_values(column)] for column in batch.columns]
        if safe:
            columns = [
                values if _is_number_or_time(field.type) else [_without_formula(value) for value in values]
                for field, values in zip(batch.schema, columns, strict=True)
            ]
        writer.writerows(zip(*columns, strict=True))


def write_json_lines(batches: Iterator[pa.RecordBatch], sink: IO[str]) -> None:
    """Writes an object for each row: times are ISO 8601, decimals text, binary base64, so that `ingest` reads them
    again.

    Documents are written as JSON values.
    """
    for batch in batches:
        columns = [_json_texts(column) for column in batch.columns]
        names = [json.dumps(name, ensure_ascii=False) for name in batch.schema.names]
        for row in zip(*columns, strict=True):
            sink.write(f"{{{', '.join(f'{name}: {value}' for name, value in zip(names, row, strict=True))}}}\n")


def _json_texts(column: Any) -> list[str]:
    is_document = isinstance(column.type, pa.BaseExtensionType) and column.type.extension_name == "arrow.json"
    if is_document:
        return ["null" if text is None else _one_line(text) for text in column.to_pylist()]
    return [json.dumps(value, ensure_ascii=False) for value in plain_values(column)]


def _one_line(document: str) -> str:
    """Returns a JSON document on one line. Returns a text that is not JSON as a JSON string."""
    try:
        json.loads(document)
    except ValueError:
        return json.dumps(document, ensure_ascii=False)
    return document.replace("\r", " ").replace("\n", " ")


def write_parquet(schema: pa.Schema, batches: Iterator[pa.RecordBatch], path: Path) -> int:
    """Writes all rows as one file, which exists completely or not at all. Returns the number of rows."""
    import pyarrow.parquet as pq

    rows = 0
    try:
        with replacing(path, keeps_mode=True) as file, pq.ParquetWriter(file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
    except (OSError, pa.ArrowNotImplementedError) as failure:
        raise InvalidInput(
            f"it cannot be written as Parquet: {failure}",
            where=path,
            remedy="give another --output, --columns or --format",
        ) from None
    return rows


def write_parquet_to(schema: pa.Schema, batches: Iterator[pa.RecordBatch], sink: IO[bytes]) -> None:
    """Writes all rows as a Parquet file to a stream, which may be a pipe."""
    import pyarrow.parquet as pq

    try:
        with pq.ParquetWriter(_Forward(sink), schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    except pa.ArrowNotImplementedError as failure:
        raise InvalidInput(
            f"it cannot be written as Parquet: {failure}", remedy="give other --columns, or another --format"
        ) from None
    sink.flush()


class _Forward:
    """A stream without seeking, which counts the position that Arrow needs and a pipe does not have."""

    closed = False

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink, self._position = sink, 0

    def write(self, data: bytes) -> int:
        self._sink.write(data)
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        self._sink.flush()

    def close(self) -> None:
        """Leaves the stream open: it is the process's own."""


def plain_values(column: Any) -> list[Any]:
    """Returns the values of a column in types that JSON supports."""
    return [_plain(value) for value in column.to_pylist()] if _needs_plain(column.type) else column.to_pylist()


def _needs_plain(kind: pa.DataType) -> bool:
    types = pa.types
    return not (
        types.is_boolean(kind) or types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind)
    )


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if value - value == 0 else str(value)
        case bytes():
            return b64encode(value).decode()
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _ if hasattr(value, "isoformat"):
            return value.isoformat()
        case _:
            return str(value)


class _Lines:
    """A text sink that ends lines with a line feed only.

    The CSV writer also ends lines with a carriage return, so that it quotes values that contain either character,
    because programs read a lone carriage return as a line end.
    """

    def __init__(self, sink: IO[str]) -> None:
        self._sink = sink

    def write(self, line: str) -> None:
        self._sink.write(f"{line[:-2]}\n")


#: Characters that begin a formula, as OWASP's page "CSV Injection" lists them.
_FORMULA = frozenset("=+-@\t\r\n")


def _without_formula(value: Any) -> Any:
    """Returns a cell that spreadsheets do not run as a formula.

    A first character that a spreadsheet may skip (a blank, a control or format character) does not hide the next one,
    and a full-width form counts as the plain character.
    """
    if not isinstance(value, str):
        return value
    first = next((character for character in value if unicodedata.category(character)[0] not in "CZ"), "")
    if value[:1] in _FORMULA or unicodedata.normalize("NFKC", first) in _FORMULA:
        return f"'{value}"
    return value


def _is_number_or_time(kind: pa.DataType) -> bool:
    types = pa.types
    checks = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_temporal)
    return any(check(kind) for check in checks)


def _csv_value(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else value
