"""Functions that compute columns of rows during a load or change. Only functions that this process trusts run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import pyarrow as pa

from deployer.platform.isolation.trusted_functions import NONE_TRUSTED, TrustedFunctions
from deployer.specs.types.computed import ComputedByUdf

if TYPE_CHECKING:
    from deployer.functions.calls.caller import Caller

#: functions that the caller of a change of rows trusts, in addition to those of the environment
_trusted: ContextVar[TrustedFunctions | None] = ContextVar("_trusted", default=None)
MOST_CALLERS = 32  #: the largest number of functions that a thread keeps initialized
_kept = threading.local()

_BatchTask = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
_Key = tuple[str, str, str, str, tuple[str, ...], TrustedFunctions]


@contextmanager
def trusting(trusted: TrustedFunctions) -> Iterator[None]:
    """Allows trusted functions, in addition to those that the environment names, within the block and in this thread.
    Tasks of Spark trust them too where they are made by `with_trust`."""
    token = _trusted.set(trusted)
    try:
        yield
    finally:
        _trusted.reset(token)


def with_trust(task: _BatchTask) -> _BatchTask:
    """Returns the task of Spark with the functions that this thread trusts now, so that its process trusts them too.

    Spark's workers have the environment in which the session began, which may trust fewer functions.
    """
    return _TrustingTask(task, _trusted_here())


class _TrustingTask:
    def __init__(self, task: _BatchTask, trusted: TrustedFunctions) -> None:
        self._task, self._trusts = task, trusted

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with trusting(self._trusts):
            yield from self._task(batches)


def call_function(root: str, column: str, computed: ComputedByUdf, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Calls the function of a column for rows; returns a column for each of its outputs.

    `rows` has the columns that the function reads. A function is initialized once per thread. `root` is the root below
    which the packages of functions are. Raises Refused for a function that is not trusted in this process, InvalidInput
    for one that cannot be imported, and FunctionFailed where its error policy ends the work.
    """
    return _caller(root, column, computed)(rows).values


def _caller(root: str, column: str, computed: ComputedByUdf) -> Caller:
    callers: dict[_Key, Caller] = _kept.__dict__.setdefault("callers", {})
    trusted = _trusted_here()
    key = (root, computed.udf, computed.function, computed.version, computed.inputs, trusted)
    if (found := callers.get(key)) is None:
        from deployer.functions.calls.caller import Caller  # few tables have such columns
        from deployer.functions.defined import defined_function

        otherwise = "; or load without it: `on_load: false`"
        function = defined_function(root, column, computed, trusted, where=f"column {column}", otherwise=otherwise)
        found = Caller(function, computed.inputs)
        while len(callers) >= MOST_CALLERS:
            callers.pop(next(iter(callers))).close()
        callers[key] = found
    return found


def _trusted_here() -> TrustedFunctions:
    given = _trusted.get() or NONE_TRUSTED
    return TrustedFunctions.allowed(given.names, authors=given.authors, all_packages=given.all_packages)
