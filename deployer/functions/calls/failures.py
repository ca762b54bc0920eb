"""The record of an exception of a function: its type, message and traceback, shortened and without known secrets."""

from __future__ import annotations

import traceback
from types import TracebackType
from typing import NoReturn

from deployer.errors import FunctionFailed
from deployer.functions.error_policy import ErrorPolicy
from deployer.functions.model import Failure
from deployer.platform.text import masking
from deployer.platform.text.visible import visible_lines

LONGEST_MESSAGE = 1000  #: characters
LONGEST_TRACEBACK = 4000  #: characters, from the end
MOST_TRACEBACKS = 1000  #: tracebacks of one batch; later failures have none, so that memory is bounded
_OWN = "deployer/functions/"


class FailureLog:
    """The failures of one batch, by row. `decide` raises the error that ends the work where the policy requires it."""

    def __init__(self, policy: ErrorPolicy, function: str) -> None:
        self._policy, self._function = policy, function
        self._known: masking.KnownSecrets | None = None  # found at the first failure
        self._failures: dict[int, Failure] = {}

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The failures in the order of the rows."""
        return tuple(self._failures[row] for row in sorted(self._failures))

    @property
    def rows(self) -> set[int]:
        """The rows that failed."""
        return set(self._failures)

    def decide(self, row: int, error: BaseException, attempts: int) -> None:
        """Records the failure of a row that the policy skips. Raises FunctionFailed for any other."""
        if not self._policy.skips(error):
            self.end(row, error, attempts)
        self._failures[row] = self._failure(row, error, attempts)

    def end(self, row: int, error: BaseException, attempts: int) -> NoReturn:
        """Raises FunctionFailed for the failure of a row. Row -1 stands for a batch or the set-up."""
        failure = self._failure(row, error, attempts)
        of = f"row {row} of the batch: " if row >= 0 else ""
        calls = f" ({attempts} calls)" if attempts > 1 else ""
        raise FunctionFailed(
            f"{of}{failure.error_type}: {failure.message}{calls}",
            where=f"function `{self._function}`",
            remedy="correct the function or the values, or skip such rows: udf(on_error=skip())",
            row=row,
            traceback=failure.traceback,
        ) from error

    def _failure(self, row: int, error: BaseException, attempts: int) -> Failure:
        if self._known is None:
            self._known = masking.current()
        # shortened before masking too, because masking is slow; the second cut removes a secret that the first one
        # split
        message = visible_lines(self._known.masked(_message(error)[: 4 * LONGEST_MESSAGE]))[:LONGEST_MESSAGE]
        text = ""
        if len(self._failures) < MOST_TRACEBACKS:
            shown = self._known.masked(traceback_of(error)[-4 * LONGEST_TRACEBACK :])
            text = visible_lines(shown)[-LONGEST_TRACEBACK:]
        return Failure(row, type(error).__name__, message, text, attempts)


def traceback_of(error: BaseException) -> str:
    """Returns the traceback from the function on. An exception from another process carries the text."""
    if brought := getattr(error, "deployer_traceback", ""):
        return str(brought)
    return "".join(traceback.format_exception(type(error), error, _from_function(error.__traceback__)))


def _from_function(found: TracebackType | None) -> TracebackType | None:
    while found is not None and _OWN in found.tb_frame.f_code.co_filename.replace("\\", "/"):
        found = found.tb_next
    return found


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:  # an exception whose text raises
        return f"its text raises {type(broken).__name__}"
