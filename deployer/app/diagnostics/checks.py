"""Checks that run in parallel within a time limit. A check that hangs or fails becomes a finding; the others
continue."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from deployer.errors import DeployerError


class Status(StrEnum):
    """The outcome of a check: `wrong` prevents something from working, `warning` may prevent it."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check: a sentence, what to do about it, and `details` for programs."""

    status: Status
    what: str
    remedy: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


def ok(what: str, **details: Any) -> Finding:
    return Finding(Status.OK, what, details=details)


def warning(what: str, remedy: str, **details: Any) -> Finding:
    return Finding(Status.WARNING, what, remedy, details)


def wrong(what: str, remedy: str, **details: Any) -> Finding:
    return Finding(Status.WRONG, what, remedy, details)


def not_applicable(why: str) -> Finding:
    return Finding(Status.NOT_APPLICABLE, why)


@dataclass(frozen=True, slots=True)
class Check:
    """A check. `look` runs it and may raise; a DeployerError counts as wrong, with its own message."""

    group: str
    name: str
    look: Callable[[], Finding]


@dataclass(frozen=True, slots=True)
class Result:
    """A check with its finding."""

    group: str
    name: str
    finding: Finding


def run_checks(
    checks: Sequence[Check], limit: float, waiting: Callable[[Sequence[str]], None] = lambda checks: None
) -> list[Result]:
    """Returns the results in the order of the checks, after at most `limit` seconds. `waiting` receives the names of
    the checks that still run."""
    answers: queue.SimpleQueue[tuple[int, Finding]] = queue.SimpleQueue()
    for index, check in enumerate(checks):
        # Daemon threads: a check that hangs in a call must not keep the process alive.
        threading.Thread(target=lambda i, c: answers.put((i, _looked(c))), args=(index, check), daemon=True).start()
    found: dict[int, Finding] = {}
    deadline = time.monotonic() + limit
    while len(found) < len(checks):
        waiting([check.name for index, check in enumerate(checks) if index not in found])
        try:
            index, finding = answers.get(timeout=max(deadline - time.monotonic(), 0))
        except queue.Empty:
            break
        found[index] = finding
    late = wrong(f"no result after {limit:g} s", "check the network and the other problems, or raise --timeout")
    return [Result(check.group, check.name, found.get(index, late)) for index, check in enumerate(checks)]


def counts(results: Sequence[Result]) -> dict[Status, int]:
    """Returns the number of checks by status, in the order of the statuses."""
    counted = Counter(result.finding.status for result in results)
    return {status: counted[status] for status in Status}


def _looked(check: Check) -> Finding:
    try:
        return check.look()
    except DeployerError as error:
        where = f"{error.where}: " if error.where is not None else ""
        return wrong(f"{where}{error.what}", error.remedy)
    except Exception as error:  # a check that fails must not hide what the others find
        return wrong(f"this check failed: {type(error).__name__}: {error}", "check what the message names")
