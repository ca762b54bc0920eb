"""Output of rows that several commands share: as a table for people, and as JSON objects."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


WIDEST = 60  #: the most characters of a value in a table for people


def print_rows(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> int:
    """Prints rows as an aligned table for people, with types under the names; returns the number of rows."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from deployer.cli.console.output import stdout
    from deployer.specs.types.arrow import column_of
    from deployer.specs.types.types import format_type
    from deployer.tables.read.export import plain_values

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for field in schema:
        number = _is_number(field.type)
        head = Group(field.name, Text(_type_text(field, column_of, format_type), "dim"))
        table.add_column(head, justify="right" if number else "left", overflow="fold")
    count = 0
    for batch in batches:
        columns = [plain_values(column) for column in batch.columns]
        for row in zip(*columns, strict=True):
            table.add_row(*(_cell(value) for value in row))
        count += batch.num_rows
    stdout().print(table)
    return count


def _type_text(field: Any, column_of: Any, format_type: Any) -> str:
    from deployer.errors import InvalidInput

    try:
        return str(format_type(column_of(field).type))
    except InvalidInput:  # a query can have types that tables cannot have
        return str(field.type)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _cell(value: Any) -> Any:
    from rich.text import Text

    from deployer.platform.text.visible import visible

    if value is None:
        return Text("null", "dim")
    text = visible(str(value)[: WIDEST + 1].replace("\n", "⏎"))  # made visible before it is measured
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def limited(batches: Iterator[pa.RecordBatch], rows: int | None) -> Iterator[pa.RecordBatch]:
    """Yields only the first rows, and reads no further; all rows if `rows` is None."""
    for batch in batches:
        if rows is not None:
            batch = batch.slice(0, rows)
            rows -= batch.num_rows
        yield batch
        if rows == 0:
            return


def rows_as_json(batches: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    """Returns all rows as JSON objects."""
    from deployer.tables.read.export import plain_values

    found: Iterator[dict[str, Any]] = chain.from_iterable(
        (
            dict(zip(batch.schema.names, row, strict=True))
            for row in zip(*(plain_values(column) for column in batch.columns), strict=True)
        )
        for batch in batches
    )
    return list(found)
