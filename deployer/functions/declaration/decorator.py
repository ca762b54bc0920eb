"""The decorator `udf`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, overload

from deployer.errors import InvalidFunction
from deployer.functions.declaration import settings
from deployer.functions.declaration.signatures import called_function, read_signature
from deployer.functions.error_policy import OnError, error_policy, fail
from deployer.functions.model import DEFAULT_CONCURRENT_CALLS, UDF
from deployer.functions.sources import source_of, version_of

_FAIL = fail()


@overload
def udf(function: Callable[..., Any], /) -> UDF: ...


@overload
def udf(
    *,
    data_type: Any = ...,
    version: str | None = ...,
    input_columns: Sequence[str] | None = ...,
    nullable: bool = ...,
    batch_size: int | None = ...,
    timeout: float | timedelta | str | None = ...,
    num_cpus: float = ...,
    memory: int | str | None = ...,
    num_gpus: float = ...,
    on_error: OnError = ...,
    max_concurrent_calls: int = ...,
    name: str | None = ...,
) -> Callable[[Callable[..., Any]], UDF]: ...


def udf(
    function: Callable[..., Any] | None = None,
    /,
    *,
    data_type: Any = None,
    version: str | None = None,
    input_columns: Sequence[str] | None = None,
    nullable: bool = True,
    batch_size: int | None = None,
    timeout: float | timedelta | str | None = None,
    num_cpus: float = 1.0,
    memory: int | str | None = None,
    num_gpus: float = 0.0,
    on_error: OnError = _FAIL,
    max_concurrent_calls: int = DEFAULT_CONCURRENT_CALLS,
    name: str | None = None,
) -> UDF | Callable[[Callable[..., Any]], UDF]:
    """Makes a function or a class compute columns; use it with or without parentheses.

    The parameters are columns. Annotated as values they get one row's values (None for null); annotated as `pa.Array`
    they get a batch of values; a single parameter annotated as `pa.RecordBatch` gets a batch of all columns. A class is
    constructed once per worker, its `setup` is called where it has one, and its `__call__` for rows. Async functions
    of values run concurrently, at most `max_concurrent_calls` at a time.

    - `data_type`: the type of the result, where no annotation gives it: a type of Arrow or Python, or a type of specs
      as text.
    - `version`: the version of the function's values; by default a hash of its source.
    - `input_columns`: the columns of the parameters, where they have other names.
    - `nullable`: whether the function may return None; if not, None is a failure of its row.
    - `batch_size`: rows of one call of a function of arrays or batches.
    - `timeout`: of one call, in seconds, as a timedelta or a text such as `30s`. The function then runs in a process of
      its own, which is killed when a call takes longer; an async function is cancelled instead.
    - `num_cpus`, `memory` (bytes, or a text such as 2GiB), `num_gpus`: what one call needs.
    - `on_error`: `fail()`, `skip()`, `retry(…)`, `stop_above(…)`, or a list of `Retry`, `Skip` and `Fail`.

    Raises InvalidFunction, a ValueError, for a signature or a setting that cannot be used.
    """
    scope = sys._getframe(1).f_locals

    def declare(declared: Callable[..., Any]) -> UDF:
        if isinstance(declared, UDF) or not callable(declared):
            what = "is a UDF already" if isinstance(declared, UDF) else "is not a function"
            raise InvalidFunction(f"{declared!r} {what}", where="udf", remedy="decorate a function or a class")
        called = name or str(getattr(declared, "__name__", type(declared).__name__))
        where = f"function `{called}`"
        is_async = _is_async(declared, where)
        found = read_signature(declared, data_type, nullable=nullable, scope=scope, where=where)
        if is_async and found.form != "scalar":
            raise InvalidFunction(
                "an async function takes arrays", where=where, remedy="take values, which it gets concurrently"
            )
        source = source_of(declared)
        return UDF(
            function=declared,
            name=called,
            form=found.form,
            inputs=found.inputs,
            outputs=found.outputs,
            version=version_of(declared, source) if version is None else settings.version(version),
            input_columns=None if input_columns is None else settings.names("input_columns", input_columns),
            batch_size=None if batch_size is None else settings.whole("batch_size", batch_size, settings.MOST_ROWS),
            timeout=None if timeout is None else settings.seconds("timeout", timeout),
            num_cpus=settings.units("num_cpus", num_cpus),
            memory=None if memory is None else settings.size("memory", memory),
            num_gpus=settings.units("num_gpus", num_gpus),
            on_error=error_policy(on_error),
            is_class=isinstance(declared, type),
            is_async=is_async,
            max_concurrent_calls=settings.whole("max_concurrent_calls", max_concurrent_calls, settings.MOST_CALLS),
            source=source,
        )

    return declare if function is None else declare(function)


def _is_async(declared: Callable[..., Any], where: str) -> bool:
    called = inspect.unwrap(called_function(declared, where))
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise InvalidFunction("it yields values", where=where, remedy="return one value per call")
    return inspect.iscoroutinefunction(called)
