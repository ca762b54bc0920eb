"""Chooses whether a load of columns runs in this process or with Spark."""

from __future__ import annotations

from deployer.columns.load.source import LoadSource
from deployer.platform.text.formatting import size
from deployer.runs.rewriting.run import SMALL_BYTES, Engine

SMALL_ROWS = 20_000_000  #: most rows of a source that this process loads; it has all their keys in memory
SMALL_TABLE_ROWS = 100_000_000  #: most rows of a table for which this process loads; it has a position for each row


def choose_engine(wanted: Engine, source: LoadSource, table_rows: int) -> tuple[str, str]:
    """Returns the engine of a load, and the reason for it."""
    amount = f"about {source.rows:,} rows, {size(source.bytes)}"
    if wanted != "auto":
        return wanted, f"as asked for ({amount})"
    if source.rows > SMALL_ROWS or source.bytes > SMALL_BYTES:
        return "spark", f"{amount}: more than {SMALL_ROWS:,} rows or {size(SMALL_BYTES)}"
    if table_rows > SMALL_TABLE_ROWS:
        return "spark", f"the table has {table_rows:,} rows: more than {SMALL_TABLE_ROWS:,}"
    return "driver", f"{amount}: this process finishes before Spark would start"
