"""Rules as Python functions: `policies/*.py`, run in this process when a plan is made.

A rule takes the plan and yields what breaks it:

    from deployer.policy import Finding, PlanView, rule

    @rule(enforcement="advisory")
    def gold_is_protected(plan: PlanView) -> Iterator[Finding]:
        \"\"\"Gold tables keep their deletion protection.\"\"\"
        for table in plan.tables:
            if table.tags.get("tier") == "gold" and not table.deletion_protection:
                yield table.violation("a gold table without deletion protection")
"""

from __future__ import annotations

import contextlib
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import overload

from deployer.errors import Position, Problem
from deployer.plan.verdict import Enforcement
from deployer.policy.model import NAME, Check, Policy, RuleFailed
from deployer.policy.rows import Finding, PlanView

RuleFunction = Callable[[PlanView], Iterable[Finding] | None]


@dataclass(frozen=True, slots=True)
class PythonRule:
    """A function that `@rule` made a rule of; called, it is the function."""

    function: RuleFunction
    name: str
    enforcement: Enforcement
    stacks: tuple[str, ...]
    addresses: tuple[str, ...]

    def __call__(self, plan: PlanView) -> Iterable[Finding] | None:
        return self.function(plan)


@overload
def rule(function: RuleFunction, /) -> PythonRule: ...
@overload
def rule(
    *,
    name: str | None = None,
    enforcement: str = "mandatory",
    stacks: Sequence[str] = (),
    addresses: Sequence[str] = (),
) -> Callable[[RuleFunction], PythonRule]: ...
def rule(
    function: RuleFunction | None = None,
    /,
    *,
    name: str | None = None,
    enforcement: str = "mandatory",
    stacks: Sequence[str] = (),
    addresses: Sequence[str] = (),
) -> PythonRule | Callable[[RuleFunction], PythonRule]:
    """Makes a function a rule, with or without brackets: `@rule`, `@rule(enforcement="advisory")`.

    It is named after the function, with `-` for `_`, unless `name` is given; its docstring's first line describes it.
    `enforcement` is mandatory, advisory or disabled; `stacks` and `addresses` are globs of where it holds.
    Raises ValueError for another enforcement, and a name that is not in small letters with `-` between words; TypeError
    for globs that are one text.
    """
    if isinstance(stacks, str) or isinstance(addresses, str):
        raise TypeError('stacks and addresses are lists, such as stacks=["prod"]')
    try:
        chosen = Enforcement(enforcement)
    except ValueError:
        wanted = ", ".join(each.value for each in Enforcement)
        raise ValueError(f"enforcement={enforcement!r}: use one of {wanted}") from None

    def made(function: RuleFunction) -> PythonRule:
        own = name or getattr(function, "__name__", "").strip("_").replace("_", "-")
        if not re.fullmatch(NAME, own):
            raise ValueError(f"{own!r} is no name of a rule: use small letters and digits with - between words")
        return PythonRule(function, own, chosen, tuple(stacks), tuple(addresses))

    return made if function is None else made(function)


def read_python_rules(path: Path, file: str, problems: list[Problem]) -> list[Policy]:
    """The rules of a Python file, which is run; a file that cannot be run is a problem. `file` names it to users."""
    module = ModuleType(f"deployer_policies_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look their module up while they are made
    try:
        with _output_aside():
            exec(compile(path.read_bytes(), file, "exec"), module.__dict__)  # noqa: S102 -- the project's own rules
    except SyntaxError as error:
        at = Position(file, error.lineno or 1, error.offset or 1)
        problems.append(Problem(at, f"this is not Python: {error.msg}", "mend it", "rule-syntax"))
    except (Exception, SystemExit) as error:
        problems.append(
            Problem(_line(error, file), f"the file cannot be run: {_said(error)}", "mend it", "rule-failed")
        )
    finally:
        sys.modules.pop(module.__name__, None)
    rules = [each for each in vars(module).values() if isinstance(each, PythonRule)]
    own = [each for each in rules if getattr(each.function, "__module__", None) == module.__name__]
    return [_policy(each, file) for each in dict.fromkeys(own)]


def _policy(rule: PythonRule, file: str) -> Policy:
    doc = (rule.function.__doc__ or "").strip()
    code = getattr(rule.function, "__code__", None)
    at = Position(file, code.co_firstlineno if code else 1)
    description = doc.splitlines()[0] if doc else ""
    return Policy(rule.name, _check(rule, file, at), at, rule.enforcement, description, rule.stacks, rule.addresses)


def _check(rule: PythonRule, file: str, at: Position) -> Check:
    def failed(where: Position, what: str, remedy: str) -> RuleFailed:
        return RuleFailed(Problem(where, f"the rule {rule.name} {what}", remedy, "rule-failed"))

    def check(plan: PlanView) -> Iterator[Finding]:
        try:
            with _output_aside():
                found: list[object] = list(rule.function(plan) or ())
        except (Exception, SystemExit) as error:
            raise failed(_line(error, file, at), f"failed: {_said(error)}", "mend the rule") from None
        for each in found:
            if not isinstance(each, Finding):
                remedy = "yield row.violation(…), or a Finding"
                raise failed(at, f"gave {type(each).__name__} {each!r:.60}, which is no Finding", remedy)
            yield each

    return check


def _output_aside() -> contextlib.AbstractContextManager[object]:
    """What rules print goes to stderr: stdout may be one JSON document."""
    return contextlib.redirect_stdout(sys.stderr)


def _line(error: BaseException, file: str, otherwise: Position | None = None) -> Position:
    """The last line of the rule's own file that the error came through."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return Position(file, lines[-1] or 1) if lines else otherwise or Position(file)


def _said(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text:.200}" if text else type(error).__name__
