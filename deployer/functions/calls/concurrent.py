"""Concurrent calls of an async function: an event loop in a thread of its own, and a bound."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from deployer.functions.calls.failures import FailureLog
from deployer.functions.calls.runner import tear_down
from deployer.functions.model import UDF
from deployer.platform.system.clock import Clock
from deployer.platform.system.retry import Backoff

T = TypeVar("T")


class AsyncRunner:
    """Calls an async function for several rows at a time (see `RowRunner`).

    The event loop has its own thread, because the caller's thread may have a running loop, as in a notebook. A call
    that takes longer than the timeout is cancelled at its next `await`.
    """

    def __init__(self, udf: UDF, clock: Clock) -> None:
        self._udf, self._clock = udf, clock
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"udf-{udf.name}", daemon=True)
        self._thread.start()
        try:
            self._function: Callable[..., Any] = self._run(self._set_up())
        except BaseException:
            self._stop()
            raise

    def call_rows(self, columns: Sequence[list[Any]], rows: int, log: FailureLog, first: int) -> list[Any]:
        """Calls the function for each row (see `RowRunner`)."""
        return self._run(self._rows(columns, rows, log, first))

    def close(self) -> None:
        """Calls the instance's `teardown`, and ends the loop."""
        try:
            self._run(self._tear_down())
        finally:
            self._stop()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C ends the wait, and so the calls
            raise

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _set_up(self) -> Callable[..., Any]:
        function = self._udf.construct()
        set_up = getattr(function, "setup", None)
        if callable(set_up) and inspect.isawaitable(waiting := set_up()):
            await waiting
        return function

    async def _tear_down(self) -> None:
        if inspect.isawaitable(waiting := tear_down(self._function)):
            await waiting

    async def _rows(self, columns: Sequence[list[Any]], rows: int, log: FailureLog, first: int) -> list[Any]:
        values: list[Any] = [None] * rows
        left = iter(range(rows))

        async def call_next() -> None:
            for row in left:
                values[row] = await self._one(columns, row, log, first)

        tasks = [asyncio.ensure_future(call_next()) for _ in range(min(rows, self._udf.max_concurrent_calls))]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return values

    async def _one(self, columns: Sequence[list[Any]], row: int, log: FailureLog, first: int) -> Any:
        attempts = 0
        while True:
            attempts += 1
            value, error = await self._called([column[row] for column in columns])
            if error is None:
                return value
            if (rule := self._udf.on_error.retry_for(error, attempts)) is None:
                log.decide(first + row, error, attempts)
                return None
            await asyncio.sleep(Backoff(rule.first_pause, rule.longest_pause).pause(attempts, self._clock))

    async def _called(self, arguments: Sequence[Any]) -> tuple[Any, Exception | None]:
        try:
            return await asyncio.wait_for(self._function(*arguments), self._udf.timeout), None
        except TimeoutError as error:
            if str(error) or self._udf.timeout is None:
                return None, error
            return None, TimeoutError(f"the call took longer than {self._udf.timeout:g} s")
        except Exception as error:
            return None, error
