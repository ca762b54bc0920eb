"""Rules and approvals as `policies/` declares them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from deployer.errors import Position, Problem
from deployer.plan.verdict import Enforcement
from deployer.policy.rows import Finding, PlanView

#: Names of rules: words in small letters with `-` between them.
NAME = r"[a-z][a-z0-9]*(-[a-z0-9]+)*"


@dataclass(frozen=True, slots=True)
class Unchecked:
    """An object that a rule could not check; `what` follows the address in the message."""

    address: str
    what: str


Found = Finding | Unchecked
#: Asks the rule. Raises RuleFailed when the rule itself does not work.
Check = Callable[[PlanView], Iterable[Found]]


@dataclass(frozen=True, slots=True)
class Policy:
    """One rule. `stacks` and `addresses` are globs of where it holds; empty means everywhere."""

    name: str
    check: Check
    at: Position
    enforcement: Enforcement = Enforcement.MANDATORY
    description: str = ""
    stacks: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Approval:
    """An approval: a violation is accepted, to the end of the day `until` (UTC).

    No column: of any; no stacks: of all.
    """

    rule: str
    address: str
    by: str
    reason: str
    until: dt.date
    at: Position
    column: str = ""
    stacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Policies:
    """Everything that a `policies/` folder declares, in the order of its files. A context that `close` ends."""

    rules: tuple[Policy, ...] = ()
    approvals: tuple[Approval, ...] = ()
    close: Callable[[], None] = lambda: None  #: ends the process of rules in Python, which can be asked until then

    def __enter__(self) -> Policies:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RuleFailed(Exception):
    """A rule that raised or is wrong; carries the problem, with its place in the rule's file."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))
