"""Rules and approvals as `policies/` declares them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from deployer.errors import Position, Problem
from deployer.plan.verdict import Enforcement
from deployer.policy.rows import Finding, PlanView

#: form of names of rules: words in small letters with `-` between them
NAME = r"[a-z][a-z0-9]*(-[a-z0-9]+)*"


@dataclass(frozen=True, slots=True)
class Unchecked:
    """An object that a rule could not check; `what` follows the address in the message."""

    address: str
    what: str


Found = Finding | Unchecked
#: runs the rule; raises RuleFailed when the rule itself fails
Check = Callable[[PlanView], Iterable[Found]]


@dataclass(frozen=True, slots=True)
class Policy:
    """One rule. `stacks` and `addresses` are globs of the places where it holds; empty means everywhere."""

    name: str
    check: Check
    at: Position
    enforcement: Enforcement = Enforcement.MANDATORY
    description: str = ""
    stacks: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Approval:
    """An approval accepts a violation until the end of the day `until` (UTC).

    Without a column it holds for any column, without stacks for all stacks.
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
    """The rules and approvals of a `policies/` folder, in the order of its files. A context that calls `close`."""

    rules: tuple[Policy, ...] = ()
    approvals: tuple[Approval, ...] = ()
    close: Callable[[], None] = lambda: None  #: ends the process of Python rules, which can run until then

    def __enter__(self) -> Policies:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RuleFailed(Exception):
    """A rule raised an error or is wrong. The problem has its place in the rule's file."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))
