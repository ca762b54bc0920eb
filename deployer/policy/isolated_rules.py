"""Rules in Python from the command's side: their process is asked, and what it answers is checked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from deployer.errors import Position, Problem
from deployer.isolation.carried import json_of, position_of, problem_of, text_of
from deployer.isolation.channel import ChannelBroken
from deployer.isolation.process import Isolated, OnLine
from deployer.plan.verdict import Enforcement
from deployer.policy.model import NAME, Policy, RuleFailed
from deployer.policy.rows import Finding, PlanView
from deployer.policy.view_form import view_to_json

_PATIENCE_SECONDS = 1.0
RULES_PROCESS = "deployer.policy.rules_process"


class PythonRules:
    """The process of all rules in Python of a project. It lives until `close`."""

    def __init__(self, on_line: OnLine) -> None:
        self._process = Isolated(f"{RULES_PROCESS}:main", on_line)
        self._view: PlanView | None = None

    def load(self, files: Sequence[tuple[Path, str]], problems: list[Problem]) -> dict[str, list[Policy]]:
        """The rules of each file by the name that users know it by; what is wrong is added to `problems`."""
        answer = self._ask({"files": [[str(path), name] for path, name in files]})
        if not isinstance(answer, list) or len(answer) != len(files):
            at = Position(files[0][1])
            what = f"the rules cannot be read: {self._why_not(answer)}"
            problems.append(Problem(at, what, "mend them", "rule-failed"))
            return {}
        numbers = iter(range(1 << 31))
        return {name: self._read(each, name, numbers, problems) for (_, name), each in zip(files, answer, strict=True)}

    def close(self) -> None:
        """Ends the process, after what it printed was shown."""
        self._process.end(_PATIENCE_SECONDS)

    def _read(self, document: Any, file: str, numbers: Iterator[int], problems: list[Problem]) -> list[Policy]:
        listed = document.get("rules") if isinstance(document, dict) else None
        found = [self._policy(each, file, next(numbers)) for each in (listed if isinstance(listed, list) else ())]
        if (problem := problem_of(document.get("problem")) if isinstance(document, dict) else None) is not None:
            problems.append(problem)
        elif listed is None or None in found:
            problems.append(Problem(Position(file), "the file defines an invalid rule", "mend it", "rule-failed"))
        return [each for each in found if each is not None]

    def _policy(self, document: Any, file: str, number: int) -> Policy | None:
        match document:
            case {
                "name": str(name),
                "enforcement": str(enforcement),
                "description": str(description),
                "stacks": list(stacks),
                "addresses": list(addresses),
                "line": int(line),
            } if re.fullmatch(NAME, name) and enforcement in [each.value for each in Enforcement] and line > 0:
                pass
            case _:
                return None
        if not all(isinstance(each, str) for each in (*stacks, *addresses)):
            return None
        at = Position(file, line)
        check = self._check(name, number, at)
        return Policy(name, check, at, Enforcement(enforcement), text_of(description), tuple(stacks), tuple(addresses))

    def _check(self, name: str, number: int, at: Position) -> Callable[[PlanView], Iterator[Finding]]:
        def failed(what: str) -> RuleFailed:
            return RuleFailed(Problem(at, f"the rule {name} {what}", "mend the rule", "rule-failed"))

        def check(plan: PlanView) -> Iterator[Finding]:
            self._send_view(plan)
            answer = self._ask({"check": number})
            if answer is None:
                raise failed(f"gave no answer: {self._why_not(answer)}")
            if not isinstance(answer, dict):
                raise failed("gave an answer that is not a list of findings")
            if (problem := problem_of(answer.get("failed"))) is not None:
                raise RuleFailed(problem)
            listed = answer.get("found")
            findings = [_finding(each) for each in listed] if isinstance(listed, list) else [None]
            for found in findings:
                if found is None:
                    raise failed("gave an invalid Finding: address, message and column are texts")
                yield found

        return check

    def _send_view(self, plan: PlanView) -> None:
        if self._view is not plan:
            self._send({"view": view_to_json(plan)})
            self._view = plan

    def _ask(self, request: Any) -> Any:
        """The answer; None when the process is gone, and an Ellipsis for an answer that cannot be read."""
        self._send(request)
        try:
            frame = self._process.channel.receive()
        except ChannelBroken:
            return ...
        if frame is None:
            return None
        answer = json_of(frame)
        return ... if answer is None else answer

    def _send(self, request: Any) -> None:
        with suppress(OSError):  # then there is no answer
            self._process.channel.send(json.dumps(request).encode())

    def _why_not(self, answer: Any) -> str:
        if answer is not None:
            return "their process gave an invalid answer"
        return f"their process ended with {self._process.end(_PATIENCE_SECONDS) or 'exit code 0'}"


def _finding(document: Any) -> Finding | None:
    match document:
        case {"address": str(address), "message": str(message), "column": str(column)}:
            return Finding(text_of(address), text_of(message), text_of(column), position_of(document.get("at")))
    return None
