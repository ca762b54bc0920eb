"""The decorator of rules as Python functions, which files in `policies/` import.

The rules run in a separate process (`rules_process`). A rule takes the plan and yields its violations:

    from deployer.policy import Finding, PlanView, rule

    @rule(enforcement="advisory")
    def gold_is_protected(plan: PlanView) -> Iterator[Finding]:
        \"\"\"Gold tables keep their deletion protection.\"\"\"
        for table in plan.tables:
            if table.tags.get("tier") == "gold" and not table.deletion_protection:
                yield table.violation("a gold table without deletion protection")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import overload

from deployer.plan.verdict import Enforcement
from deployer.policy.model import NAME
from deployer.policy.rows import Finding, PlanView

RuleFunction = Callable[[PlanView], Iterable[Finding] | None]


@dataclass(frozen=True, slots=True)
class PythonRule:
    """A rule that `@rule` makes from a function. A call of the rule calls the function."""

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
    """Makes a rule of a function, as a decorator with or without brackets: `@rule`, `@rule(enforcement="advisory")`.

    The rule has the name `name`, or else the function's name with `-` instead of `_`. The first line of the function's
    docstring describes the rule. `enforcement` is mandatory, advisory or disabled. `stacks` and `addresses` are globs
    of the stacks and resources to which the rule applies; all by default.

    Raises ValueError for another enforcement, and for a name that is not in small letters and digits with `-` between
    words. Raises TypeError where `stacks` or `addresses` is a single string.
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
            remedy = "use small letters and digits with - between words"
            raise ValueError(f"{own!r} is not a valid name of a rule: {remedy}")
        return PythonRule(function, own, chosen, tuple(stacks), tuple(addresses))

    return made if function is None else made(function)
