"""The rules and approvals that a `policies/` folder declares."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from deployer.errors import Position, Problem
from deployer.plan.verdict import Enforcement
from deployer.policy.rows import Finding, PlanView

#: the pattern of names of rules: words in small letters and digits, with `-` between them
NAME = r"[a-z][a-z0-9]*(-[a-z0-9]+)*"


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A resource that a rule could not check. `what` is the text after the address in the message."""

    address: str
    what: str


Found = Finding | Unchecked
#: a function that runs a rule on a plan; it raises RuleFailed where the rule itself fails
Check = Callable[[PlanView], Iterable[Found]]


@dataclass(frozen=True, slots=True)
class Policy:
    """One rule. `stacks` and `addresses` are globs of the stacks and resources to which it applies; empty means all."""

    name: str
    check: Check
    at: Position
    enforcement: Enforcement = Enforcement.MANDATORY
    description: str = ""
    stacks: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Approval:
    """The acceptance of a violation until the end of the day `until` (UTC).

    An approval without a column applies to every column. An approval without stacks applies to all stacks. `stacks` are
    globs.
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
    """The rules and approvals of a `policies/` folder, in the order of its files. As a context manager, it calls
    `close` at the end."""

    rules: tuple[Policy, ...] = ()
    approvals: tuple[Approval, ...] = ()
    close: Callable[[], None] = lambda: None  #: ends the process of Python rules, which can run only before

    def __enter__(self) -> Policies:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RuleFailed(Exception):
    """A rule raised an error or is invalid. `problem` has the place in the rule's file."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))
