"""Finds the cause of a failed Spark job in Spark's error text, which has stack traces of Python and Java."""

from __future__ import annotations

import re

from deployer.datasets.errors import first_line
from deployer.errors import DeployerError

_OWN = "deployer.errors."
_TRACEBACK = "Traceback (most recent call last):"
_LOST_TASK = re.compile(r"most recent failure: Lost task [^:]*: (.+)")
_CAUSED_BY = "Caused by: "
_PYTHON_ERROR = re.compile(r"(?:OSError|IOError|RuntimeError|ValueError): ")


def job_failed(failure: BaseException, location: str) -> DeployerError:
    """Returns the error for a Spark job on the dataset at `location` that raised `failure`."""
    lines = [line.rstrip() for line in str(failure).splitlines() if line.strip()]
    own = next((line for line in lines if line.startswith(_OWN)), None)
    if own is not None:
        text = own.partition(": ")[2].removeprefix(f"{location}: ")
        what, _, remedy = text.rpartition("; ")
        return DeployerError(f"the Spark job failed: {what or remedy}", where=location, remedy=remedy if what else "")
    cause = first_line(Exception(_cause(lines) or type(failure).__name__))
    remedy = "free some disk space, and run it again" if "No space left on device" in cause else "run it again"
    return DeployerError(f"the Spark job failed: {cause}", where=location, remedy=remedy)


def _cause(lines: list[str]) -> str:
    """Returns the first of these that the text has: the exception of the Python worker, Java's innermost cause, the
    failure of the task, or the first line."""
    raised = [
        next((line for line in lines[at + 1 :] if not line.startswith((" ", "\t"))), "")
        for at, text in enumerate(lines)
        if text.endswith(_TRACEBACK)  # for an RDD, the line begins with Java's text
    ]
    if raised:
        return _PYTHON_ERROR.sub("", raised[-1], count=1)
    caused = [line.removeprefix(_CAUSED_BY) for line in lines if line.startswith(_CAUSED_BY)]
    lost = [found[1] for line in lines if (found := _LOST_TASK.search(line))]
    return next(iter([*caused[-1:], *lost, *lines]), "")
