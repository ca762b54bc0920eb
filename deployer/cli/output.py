"""What commands print: results on stdout, everything else on stderr, errors in words."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from rich.console import Console

from deployer.errors import DeployerError, InvalidSpecs

#: Columns where there is no terminal, so that nothing is folded or cut in files and pipes.
_UNFOLDED = 10_000


def stdout() -> Console:
    """The console of results."""
    return _console(stderr=False)


def stderr() -> Console:
    """The console of notes, progress and errors."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False, emoji=False, markup=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _UNFOLDED
    return console


def print_json(document: Any) -> None:
    """One JSON document, readable, on stdout."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, default=str) + "\n")


def note(text: str) -> None:
    """A remark for people that is no part of the result."""
    stderr().print(text, style="dim")


def print_error(error: DeployerError, *, as_json: bool) -> None:
    """The error in words on stderr, or as a JSON document on stdout."""
    if as_json:
        print_json({"error": error_as_json(error)})
        return
    console = stderr()
    if isinstance(error, InvalidSpecs):
        for problem in error.problems:
            console.print(str(problem), soft_wrap=True)  # one line each, for editors that jump to file:line:column
    console.print(f"error: {error}", style="red", soft_wrap=True)


def error_as_json(error: DeployerError) -> dict[str, Any]:
    document: dict[str, Any] = {
        "kind": type(error).__name__,
        "what": error.what,
        "where": str(error.where) if error.where is not None else None,
        "remedy": error.remedy or None,
    }
    if isinstance(error, InvalidSpecs):
        document["problems"] = [
            {
                "file": problem.at.file,
                "line": problem.at.line,
                "column": problem.at.column,
                "what": problem.what,
                "remedy": problem.remedy,
                "rule": problem.rule,
            }
            for problem in error.problems
        ]
    return document
