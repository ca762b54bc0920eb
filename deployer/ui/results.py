"""Slow results, such as a plan: they are made on request, one at a time, and cached with their time."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from deployer.errors import DeployerError, InvalidSpecs


@dataclass(frozen=True, slots=True)
class Result:
    """The newest result: when it was made, and its value, or the errors. `running`: the next one is being made."""

    running: bool = False
    at: dt.datetime | None = None
    value: Any = None
    errors: tuple[str, ...] = ()


class Results:
    """The newest result of each kind. `make` has the function of each kind; one of them runs at a time."""

    def __init__(self, make: Mapping[str, Callable[[], Any]]) -> None:
        self._make = dict(make)
        self._found = {kind: Result() for kind in self._make}
        self._lock = threading.Lock()
        self._working = threading.Lock()

    def newest(self, kind: str) -> Result:
        """Returns the newest result of the kind."""
        with self._lock:
            return self._found[kind]

    def start(self, kind: str) -> None:
        """Starts to make the result in a thread of its own, unless it is being made."""
        with self._lock:
            before = self._found[kind]
            if before.running:
                return
            self._found[kind] = Result(True, before.at, before.value, before.errors)
        threading.Thread(target=self._work, args=(kind,), name=f"ui-{kind}", daemon=True).start()

    def _work(self, kind: str) -> None:
        with self._working:
            value: Any = None
            errors: tuple[str, ...] = ()
            try:
                value = self._make[kind]()
            except InvalidSpecs as failure:
                errors = tuple(map(str, failure.problems))
            except DeployerError as failure:
                errors = (str(failure),)
            except Exception as failure:  # the page reports it; a thread cannot report it otherwise
                errors = (f"{type(failure).__name__}: {failure}",)
            result = Result(False, dt.datetime.now(dt.UTC), value, errors)
        with self._lock:
            self._found[kind] = result
