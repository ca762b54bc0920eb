"""Errors of deployer as JSON, from a process that runs code of the project. Only their texts are carried."""

from __future__ import annotations

import json
from typing import Any

from deployer.errors import DeployerError, EngineFailed, InvalidSpecs, Position, Problem
from deployer.platform.text.masking import masked_values

_LONGEST = 20_000
_MOST_PROBLEMS = 10_000


def error_as_bytes(error: DeployerError) -> bytes:
    """Returns the bytes that `error_of` reads."""
    document: dict[str, Any] = {
        "what": error.what[:_LONGEST],
        "where": None if error.where is None else str(error.where)[:_LONGEST],
        "remedy": error.remedy[:_LONGEST],
    }
    if isinstance(error, InvalidSpecs):
        document["problems"] = [problem_as_json(problem) for problem in error.problems[:_MOST_PROBLEMS]]
    return json.dumps(document).encode()


def error_of(data: bytes) -> DeployerError:
    """Returns the error with its text, known secrets masked: an InvalidSpecs with its problems, or an EngineFailed.

    Both have exit code 1. Other kinds stand for decisions of deployer itself, such as exit code 3 for a refused plan,
    so a project's code cannot raise them.
    """
    document = masked_values(json_of(data))
    if not isinstance(document, dict):
        return EngineFailed("the program failed, and its process reported no error")
    what, remedy = text_of(document.get("what")) or "no message", text_of(document.get("remedy"))
    where = text_of(document.get("where")) or None
    listed = document.get("problems")
    if not isinstance(listed, list):
        return EngineFailed(what, where=where, remedy=remedy)
    invalid = InvalidSpecs([found for each in listed if (found := problem_of(each))])
    invalid.what = what
    return invalid


def problem_as_json(problem: Problem) -> dict[str, Any]:
    return {
        "at": position_as_json(problem.at),
        "what": problem.what[:_LONGEST],
        "remedy": problem.remedy[:_LONGEST],
        "rule": problem.rule,
    }


def problem_of(document: Any) -> Problem | None:
    """Returns the problem; None for another document."""
    if not isinstance(document, dict) or (at := position_of(document.get("at"))) is None:
        return None
    return Problem(at, *(text_of(document.get(name)) for name in ("what", "remedy", "rule")))


def position_as_json(at: Position) -> list[Any]:
    return [at.file, at.line, at.column]


def position_of(document: Any) -> Position | None:
    match document:
        case [str(file), int(line), int(column)] if 0 < line < 1 << 31 and 0 < column < 1 << 31:
            return Position(file[:_LONGEST], line, column)
    return None


def json_of(data: bytes) -> Any:
    """Returns the JSON value; None for bytes that are not JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def text_of(value: Any) -> str:
    """Returns a text of bounded length; empty for another value."""
    return value[:_LONGEST] if isinstance(value, str) else ""
