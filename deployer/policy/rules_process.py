"""The process that runs rules in Python: it executes the files of `policies/`, and calls their functions with a plan.

The command that started this process does not trust it, because rules can change anything in the process. Messages are
JSON:

    {"file": [PATH, NAME]}    runs a file; the answer is the result of `_loaded`
    {"view": …}               sets the plan; there is no answer
    {"check": N}              runs rule N of all files, from 0: {"found": [FINDING, …]} or {"failed": PROBLEM}
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from deployer.errors import Position, Problem
from deployer.platform.isolation.carried import position_as_json, problem_as_json
from deployer.platform.isolation.channel import Channel
from deployer.policy.python_rules import PythonRule
from deployer.policy.rows import Finding, PlanView
from deployer.policy.view_form import view_from_json


def main(channel: Channel) -> None:
    """Answers requests until the command ends."""
    rules: list[tuple[PythonRule, str]] = []
    view: PlanView | None = None
    while (frame := channel.receive()) is not None:
        asked = json.loads(frame)
        if "view" in asked:
            view = view_from_json(asked["view"])
            continue
        if "file" in asked:
            path, name = asked["file"]
            answer = _loaded(Path(path), name, rules)
        else:
            assert view is not None  # noqa: S101 -- the command sends the view before a check
            rule, file = rules[asked["check"]]
            answer = _asked(rule, file, view)
        sys.stdout.flush()
        channel.send(json.dumps(answer, default=lambda _: None).encode())  # a value that is not JSON is not a finding


def _loaded(path: Path, file: str, rules: list[tuple[PythonRule, str]]) -> dict[str, Any]:
    """Runs a file, and returns its rules and the problem that stopped the run, if any. Adds the rules to `rules`.
    `file` is the name of the file for users."""
    module = ModuleType(f"deployer_policies_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look up their module when they are made
    problem: Problem | None = None
    try:
        exec(compile(path.read_bytes(), file, "exec"), module.__dict__)  # noqa: S102 -- the project's own rules
    except SyntaxError as error:
        at = Position(file, error.lineno or 1, error.offset or 1)
        problem = Problem(at, f"this is not Python: {error.msg}", "fix it", "rule-syntax")
    except BaseException as error:
        problem = Problem(_line(error, file), f"the file cannot be run: {_said(error)}", "fix it", "rule-failed")
    found = [each for each in vars(module).values() if isinstance(each, PythonRule)]
    own = [each for each in found if getattr(each.function, "__module__", None) == module.__name__]
    own = list(dict.fromkeys(own))
    rules += [(each, file) for each in own]
    return {"problem": problem_as_json(problem) if problem else None, "rules": [_declared(each) for each in own]}


def _declared(rule: PythonRule) -> dict[str, Any]:
    doc = (rule.function.__doc__ or "").strip()
    return {
        "name": rule.name,
        "enforcement": rule.enforcement.value,
        "description": doc.splitlines()[0] if doc else "",
        "stacks": list(rule.stacks),
        "addresses": list(rule.addresses),
        "line": _first_line(rule),
    }


def _asked(rule: PythonRule, file: str, view: PlanView) -> dict[str, Any]:
    at = Position(file, _first_line(rule))
    try:
        found: list[object] = list(rule.function(view) or ())
    except BaseException as error:
        return _failed(rule, _line(error, file, at), f"failed: {_said(error)}", "fix the rule")
    for other in (each for each in found if not isinstance(each, Finding)):
        remedy = "yield row.violation(…), or a Finding"
        return _failed(rule, at, f"gave {type(other).__name__} {other!r:.60}, which is not a Finding", remedy)
    return {"found": [_finding(each) for each in found if isinstance(each, Finding)]}


def _finding(found: Finding) -> dict[str, Any]:
    at = position_as_json(found.at) if found.at else None
    return {"address": found.address, "message": found.message, "column": found.column, "at": at}


def _failed(rule: PythonRule, at: Position, what: str, remedy: str) -> dict[str, Any]:
    return {"failed": problem_as_json(Problem(at, f"the rule {rule.name} {what}", remedy, "rule-failed"))}


def _first_line(rule: PythonRule) -> int:
    code = getattr(rule.function, "__code__", None)
    return code.co_firstlineno if code else 1


def _line(error: BaseException, file: str, otherwise: Position | None = None) -> Position:
    """Returns the last line of the rule's file in the error's traceback. Returns `otherwise`, or the file, where the
    traceback has none."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return Position(file, lines[-1] or 1) if lines else otherwise or Position(file)


def _said(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text:.200}" if text else type(error).__name__
