"""Errors of deployer as JSON, from a process that runs code of the project: no more than their words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from deployer.errors import DeployerError, EngineFailed, InvalidSpecs, Position, Problem
from deployer.masking import masked_values

_LONGEST = 20_000
_MOST_PROBLEMS = 10_000


def error_as_bytes(error: DeployerError) -> bytes:
    """What `error_of` reads."""
    document: dict[str, Any] = {
        "kind": type(error).__name__,
        "what": error.what[:_LONGEST],
        "where": None if error.where is None else str(error.where)[:_LONGEST],
        "remedy": error.remedy[:_LONGEST],
    }
    if isinstance(error, InvalidSpecs):
        document["problems"] = [problem_as_json(problem) for problem in error.problems[:_MOST_PROBLEMS]]
    return json.dumps(document).encode()


def error_of(data: bytes) -> DeployerError:
    """The error with its words, known secrets masked. One of an unknown kind or shape becomes an EngineFailed."""
    document = masked_values(json_of(data))
    if not isinstance(document, dict):
        return EngineFailed("the program failed, and its process did not say how")
    what, remedy = text_of(document.get("what")) or "no message", text_of(document.get("remedy"))
    where = text_of(document.get("where")) or None
    kind = document.get("kind")
    if kind == InvalidSpecs.__name__:
        listed = document.get("problems")
        problems = [found for each in (listed if isinstance(listed, list) else ()) if (found := problem_of(each))]
        invalid = InvalidSpecs(problems)
        invalid.what = what
        return invalid
    known = {each.__name__: each for each in _kinds(DeployerError)}
    made = known.get(kind, EngineFailed) if isinstance(kind, str) else EngineFailed
    return made(what, where=where, remedy=remedy)


def problem_as_json(problem: Problem) -> dict[str, Any]:
    return {
        "at": position_as_json(problem.at),
        "what": problem.what[:_LONGEST],
        "remedy": problem.remedy[:_LONGEST],
        "rule": problem.rule,
    }


def problem_of(document: Any) -> Problem | None:
    """The problem; None for another document."""
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
    """The JSON value; None for bytes that are not JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def text_of(value: Any) -> str:
    """A text of bounded length; empty for another value."""
    return value[:_LONGEST] if isinstance(value, str) else ""


def _kinds(kind: type[DeployerError]) -> Iterator[type[DeployerError]]:
    yield kind
    for each in kind.__subclasses__():
        if each.__module__ == DeployerError.__module__:
            yield from _kinds(each)
