"""Ends calls whose callers do not read the answers, because each such call occupies one of the server's threads."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

_LOG = logging.getLogger("deployer.catalog")


class SlowReaders:
    """The calls that wait for their callers. A call that waits for more than `patience` seconds is ended."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._numbers = count(1)
        self._waiting = dict[int, tuple[float, Any]]()
        self._over = threading.Event()

    def taken(self, answers: Iterator[Any], context: Any) -> Iterator[Any]:
        """Yields the answers of a call. The call may be ended while its caller reads an answer."""
        number = next(self._numbers)
        try:
            for answer in answers:
                self._waiting[number] = time.monotonic(), context
                yield answer
                self._waiting.pop(number, None)
        finally:
            self._waiting.pop(number, None)
            if (close := getattr(answers, "close", None)) is not None:
                close()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Ends slow calls for the duration of a `with` block."""
        thread = threading.Thread(target=self._watch, name="slow-readers", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _watch(self) -> None:
        while not self._over.wait(self._patience / 10):
            since = time.monotonic() - self._patience
            for number, (at, context) in list(self._waiting.items()):
                if at < since and self._waiting.pop(number, None) is not None:
                    _LOG.warning("a call was ended: its caller took no answer for %g s", self._patience)
                    context.cancel()
