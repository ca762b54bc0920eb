"""Rules in Python, seen from the command: requests to the process of the rules, and checks of its answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from deployer.errors import Position, Problem
from deployer.plan.verdict import Enforcement
from deployer.platform.isolation.carried import json_of, position_of, problem_of, text_of
from deployer.platform.isolation.channel import ChannelBroken
from deployer.platform.isolation.process import Isolated, OnLine
from deployer.policy.model import NAME, Policy, RuleFailed
from deployer.policy.rows import Finding, PlanView
from deployer.policy.view_form import view_to_json

SECONDS = 20.0  #: the time limit for the run of one file, and for the check of a plan by one rule
_PATIENCE_SECONDS = 1.0
RULES_PROCESS = "deployer.policy.rules_process"


class _NoAnswer(Exception):
    """A file or a rule does not answer. `what` completes a message that begins with "the rule" or "the file"."""

    def __init__(self, what: str, remedy: str) -> None:
        self.what, self.remedy = what, remedy
        super().__init__(what)


class PythonRules:
    """The process of all Python rules of a project. It runs until `close`."""

    def __init__(self, on_line: OnLine, seconds: float = SECONDS) -> None:
        self._process = Isolated(f"{RULES_PROCESS}:main", on_line)
        self._process.channel.seconds = seconds
        self._is_over = False  #: the process was ended, or ended by itself
        self._view: PlanView | None = None

    def load(self, files: Sequence[tuple[Path, str]], problems: list[Problem]) -> dict[str, list[Policy]]:
        """Returns the rules of each file by the file's name for users; faults are added to `problems`.

        After a file that ends the process, no other file is run.
        """
        numbers = iter(range(1 << 31))
        found: dict[str, list[Policy]] = {}
        for path, name in files:
            try:
                answer = self._ask({"file": [str(path), name]})
            except _NoAnswer as none:
                problems.append(Problem(Position(name), f"the file {none.what}", none.remedy, "rule-failed"))
                break
            found[name] = self._read(answer, name, numbers, problems)
        return found

    def close(self) -> None:
        """Ends the process after its output is shown."""
        self._process.end(_PATIENCE_SECONDS)

    def _read(self, document: Any, file: str, numbers: Iterator[int], problems: list[Problem]) -> list[Policy]:
        listed = document.get("rules") if isinstance(document, dict) else None
        found = [self._policy(each, file, next(numbers)) for each in (listed if isinstance(listed, list) else ())]
        if (problem := problem_of(document.get("problem")) if isinstance(document, dict) else None) is not None:
            problems.append(problem)
        elif listed is None or None in found:
            problems.append(Problem(Position(file), "the file defines an invalid rule", "fix it", "rule-failed"))
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
        def failed(what: str, remedy: str = "fix the rule") -> RuleFailed:
            return RuleFailed(Problem(at, f"the rule {name} {what}", remedy, "rule-failed"))

        def check(plan: PlanView) -> Iterator[Finding]:
            self._send_view(plan)
            try:
                answer = self._ask({"check": number})
            except _NoAnswer as none:
                raise failed(none.what, none.remedy) from None
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
        """Returns the answer to a request; None for an answer that cannot be read. Raises _NoAnswer where the process
        ended, or does not answer within the time limit."""
        if self._is_over:
            raise _NoAnswer("did not run: another rule ended its process", "fix that rule")
        self._send(request)
        channel = self._process.channel
        try:
            frame = channel.receive()
        except ChannelBroken:
            return None
        except TimeoutError:
            self._is_over = True
            self._process.end(0)
            raise _NoAnswer(f"takes more than {channel.seconds:g} s and was ended", "make it faster") from None
        if frame is None:
            self._is_over = True
            ended = self._process.end(_PATIENCE_SECONDS)
            what = f"did not answer: its process ended with {ended or 'exit code 0'}"
            raise _NoAnswer(what, "remove the call that ends its process")
        return json_of(frame)

    def _send(self, request: Any) -> None:
        with suppress(OSError):  # then no answer arrives
            self._process.channel.send(json.dumps(request).encode())


def _finding(document: Any) -> Finding | None:
    match document:
        case {"address": str(address), "message": str(message), "column": str(column)}:
            return Finding(text_of(address), text_of(message), text_of(column), position_of(document.get("at")))
    return None
