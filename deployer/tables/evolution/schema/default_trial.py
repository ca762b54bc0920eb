"""Tries a `default:` on one row before it is declared: a load computes it later, without the limits of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.live.model import LiveLake, LiveTable
from deployer.platform.sql.process import OverLimit, SqlFailed, compute
from deployer.specs.model import Lake, TableSpec
from deployer.specs.types.arrow import arrow_schema
from deployer.specs.types.types import Column

_SAMPLES: tuple[Any, ...] = (1000, "text", True, b"bytes")  #: the first that a column can hold is in the row


def refuse_defaults_over_limits(lake: Lake, live: LiveLake) -> None:
    """Raises InvalidInput for a new default that takes more memory or time for one row than a plan may take for many.

    Other errors of a default are reported for the table's rows, or by the load that needs it.
    """
    for table, column in _new_defaults(lake, live):
        row = _row(arrow_schema([each for each in table.columns if each.name != column.name] or table.columns))
        try:
            with suppress(SqlFailed):
                compute(row, column.default)
        except OverLimit as over:
            raise InvalidInput(
                f"`default` of column `{column.name}` cannot be computed: for one row it {over}",
                where=table.sources.get(f"columns.{column.name}.default") or table.address,
                remedy="write an expression that takes less",
            ) from None


def _new_defaults(lake: Lake, live: LiveLake) -> Iterator[tuple[TableSpec, Column]]:
    for table in lake.tables:
        found = live.of(table)
        before = {column.name: column.default for column in found.spec.columns} if isinstance(found, LiveTable) else {}
        for column in table.columns:
            if column.default and before.get(column.name) != column.default:
                yield table, column


def _row(schema: pa.Schema) -> pa.Table:
    columns = []
    for kind in schema.types:
        column = pa.nulls(1, kind)
        for sample in _SAMPLES:
            with suppress(pa.ArrowException, TypeError, ValueError):
                column = pa.array([sample], kind)
                break
        columns.append(column)
    return pa.table(columns, names=schema.names)
