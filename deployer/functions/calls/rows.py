"""Calls of a function of values in this thread: one per row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from deployer.functions.calls.failures import FailureLog
from deployer.functions.error_policy import ErrorPolicy
from deployer.platform.system.clock import Clock
from deployer.platform.system.retry import Backoff


def call_rows(
    function: Callable[..., Any],
    columns: Sequence[list[Any]],
    rows: int,
    policy: ErrorPolicy,
    log: FailureLog,
    first: int,
    clock: Clock,
) -> list[Any]:
    """Returns the function's value for each row, None for rows that failed, which `log` gets; `first` is the number of
    the first row in the batch. The function is called once per row, and again where the policy repeats calls."""
    values: list[Any] = []
    calls = map(function, *columns)
    while (error := _extended(values, calls, rows)) is not None:
        values.append(_repeated(function, columns, len(values), error, policy, log, first, clock))
    return values


def _extended(values: list[Any], calls: Iterator[Any], rows: int) -> Exception | None:
    """Adds values until one call fails, and returns its exception; the iterator is then behind its row.

    CPython's `extend` keeps what came before an exception.
    """
    try:
        values.extend(calls)
    except Exception as error:
        return error
    # a StopIteration of the function ends the iteration, so it would end every row
    return RuntimeError("it raised StopIteration") if len(values) < rows else None


def _repeated(
    function: Callable[..., Any],
    columns: Sequence[list[Any]],
    row: int,
    error: Exception,
    policy: ErrorPolicy,
    log: FailureLog,
    first: int,
    clock: Clock,
) -> Any:
    attempts = 1
    arguments = [column[row] for column in columns]
    while (rule := policy.retry_for(error, attempts)) is not None:
        Backoff(rule.first_pause, rule.longest_pause).wait(attempts, clock)
        attempts += 1
        values: list[Any] = []
        failed = _extended(values, map(function, *([each] for each in arguments)), 1)
        if failed is None:
            return values[0]
        error = failed
    log.decide(first + row, error, attempts)
    return None
