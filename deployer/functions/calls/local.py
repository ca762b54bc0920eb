"""Calls in this thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from deployer.functions.calls.failures import FailureLog
from deployer.functions.calls.runner import tear_down
from deployer.functions.model import UDF
from deployer.platform.system.clock import Clock
from deployer.platform.system.retry import Backoff


class LocalRunner:
    """Calls the function in the thread that calls this (see `RowRunner`, `ArrayRunner`)."""

    def __init__(self, udf: UDF, clock: Clock) -> None:
        self._udf, self._clock = udf, clock
        self._function = udf.instance()

    def call_rows(self, columns: Sequence[list[Any]], rows: int, log: FailureLog, first: int) -> list[Any]:
        """Calls the function for each row (see `RowRunner`)."""
        values: list[Any] = []
        calls = map(self._function, *columns)
        while (error := _extended(values, calls, rows)) is not None:
            values.append(self._repeated(columns, len(values), error, log, first))
        return values

    def call_arrays(self, part: pa.RecordBatch) -> Any:
        """Calls the function for a batch (see `ArrayRunner`)."""
        return self._function(part) if self._udf.form == "batch" else self._function(*part.columns)

    def close(self) -> None:
        """Calls the instance's `teardown`."""
        tear_down(self._function)

    def _repeated(self, columns: Sequence[list[Any]], row: int, error: Exception, log: FailureLog, first: int) -> Any:
        attempts = 1
        arguments = [[column[row]] for column in columns]
        while (rule := self._udf.on_error.retry_for(error, attempts)) is not None:
            Backoff(rule.first_pause, rule.longest_pause).wait(attempts, self._clock)
            attempts += 1
            values: list[Any] = []
            failed = _extended(values, map(self._function, *arguments), 1)
            if failed is None:
                return values[0]
            error = failed
        log.decide(first + row, error, attempts)
        return None


def _extended(values: list[Any], calls: Iterator[Any], rows: int) -> Exception | None:
    """Adds values until one call fails, and returns its exception; the iterator is then after the failed row.

    CPython's `extend` keeps the values from before an exception.
    """
    try:
        values.extend(calls)
    except Exception as error:
        return error
    # a StopIteration of the function would end the iteration over all rows
    return RuntimeError("it raised StopIteration") if len(values) < rows else None
