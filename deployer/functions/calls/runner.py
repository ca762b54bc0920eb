"""The places where calls run: in the thread (`local`), concurrently (`concurrent`) or in a process of their own
(`processes`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pyarrow as pa

from deployer.functions.calls.failures import FailureLog


class Runner(Protocol):
    """A function that is set up. The constructor sets it up, and raises the errors of the set-up."""

    def close(self) -> None:
        """Ends the function's set-up."""
        ...


class RowRunner(Runner, Protocol):
    """Calls a function of values, for each row."""

    def call_rows(self, columns: Sequence[list[Any]], rows: int, log: FailureLog, first: int) -> list[Any]:
        """Returns the function's value for each row, None for failed rows, which `log` records. `first` is the number
        of the first row in the batch. The function is called once per row, and again where the policy repeats calls."""
        ...


class ArrayRunner(Runner, Protocol):
    """Calls a function of arrays or of batches."""

    def call_arrays(self, part: pa.RecordBatch) -> Any:
        """Returns the function's result for a batch; raises its exception."""
        ...


def tear_down(function: Callable[..., Any]) -> Any:
    """Calls the method `teardown` of an instance that has one."""
    teardown = None if isinstance(function, type) else getattr(function, "teardown", None)
    return teardown() if callable(teardown) else None
