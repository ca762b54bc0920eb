"""Calls a function of arrays or batches: one call for each batch of rows. A failed batch is halved where the policy
skips failed rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from deployer.functions.calls.failures import FailureLog
from deployer.functions.calls.results import columns_of_arrays, joined, null_columns
from deployer.functions.model import UDF
from deployer.functions.values.plain import WrongValue
from deployer.platform.system.clock import Clock
from deployer.platform.system.retry import Backoff

Call = Callable[[pa.RecordBatch], Any]


def call_arrays(
    udf: UDF, call: Call, part: pa.RecordBatch, log: FailureLog, first: int, clock: Clock
) -> list[pa.Array]:
    """Returns a column for each output for the rows of `part`, the first of which is row `first` of the batch.

    Where a call fails and the policy skips rows for its exception, the halves are called, down to the single failed
    rows. Raises FunctionFailed for other exceptions, and for a result of another type or length.
    """
    attempts, failed = 1, None
    while True:
        result, failed = _called(call, part)
        if failed is None:
            break
        if (rule := udf.on_error.retry_for(failed, attempts)) is None:
            return _after(failed, attempts, udf, call, part, log, first, clock)
        Backoff(rule.first_pause, rule.longest_pause).wait(attempts, clock)
        attempts += 1
    try:
        return columns_of_arrays(udf, result, part.num_rows, log, first)
    except WrongValue as error:
        log.end(-1, error, attempts)


def _called(call: Call, part: pa.RecordBatch) -> tuple[Any, Exception | None]:
    """Returns the result or the exception, so that later work is not part of handling the exception and of its
    traceback."""
    try:
        return call(part), None
    except Exception as error:
        return None, error


def _after(
    error: Exception,
    attempts: int,
    udf: UDF,
    call: Call,
    part: pa.RecordBatch,
    log: FailureLog,
    first: int,
    clock: Clock,
) -> list[pa.Array]:
    """Returns the results of the halves of a failed part. Raises FunctionFailed where the policy does not skip rows."""
    if part.num_rows == 1:
        log.decide(first, error, attempts)
        return null_columns(udf, 1)
    if not udf.on_error.skips(error):
        log.end(-1, error, attempts)
    middle = part.num_rows // 2
    before = call_arrays(udf, call, part.slice(0, middle), log, first, clock)
    after = call_arrays(udf, call, part.slice(middle), log, first + middle, clock)
    return joined([before, after])
