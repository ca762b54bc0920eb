"""Functions that compute columns of rows while they are loaded or changed: only those that are trusted here run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import pyarrow as pa

from deployer.platform.isolation.trusted_functions import NONE_TRUSTED, TrustedFunctions
from deployer.specs.types.computed import ComputedByUdf

if TYPE_CHECKING:
    from deployer.functions.calls.caller import Caller

#: What the caller of a change of rows trusts in this process, beside what the environment names.
_trusted: ContextVar[TrustedFunctions | None] = ContextVar("_trusted", default=None)
MOST_CALLERS = 32  #: that one thread keeps set up
_kept = threading.local()

_Key = tuple[str, str, str, str, tuple[str, ...], TrustedFunctions]


@contextmanager
def trusting(trusted: TrustedFunctions) -> Iterator[None]:
    """Lets functions that are trusted compute columns inside, in this thread. Elsewhere, as in Spark's tasks, those
    that the environment names do."""
    token = _trusted.set(trusted)
    try:
        yield
    finally:
        _trusted.reset(token)


def call_function(root: str, column: str, computed: ComputedByUdf, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns what the function of a column makes of rows: a column for each of its outputs.

    `rows` have the columns that it reads. A function is set up once per thread. `root` is where packages of functions
    are. Raises Refused for a function that is not trusted in this process, InvalidInput for one that cannot be
    imported, and FunctionFailed where its error policy ends the work.
    """
    return _caller(root, column, computed)(rows).values


def _caller(root: str, column: str, computed: ComputedByUdf) -> Caller:
    callers: dict[_Key, Caller] = _kept.__dict__.setdefault("callers", {})
    given = _trusted.get() or NONE_TRUSTED
    trusted = TrustedFunctions.allowed(given.names, authors=given.authors, all_packages=given.all_packages)
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
