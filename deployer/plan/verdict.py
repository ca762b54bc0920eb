"""The verdict of policies on a plan: data that every rendering shows. `deployer.policy` makes it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from deployer.errors import Position


class Enforcement(StrEnum):
    """`mandatory` violations are refused by `up`, `advisory` ones are only shown, `disabled` rules are not asked."""

    MANDATORY = "mandatory"
    ADVISORY = "advisory"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that breaks a rule. `at` is the line of the specs that it is about, None when no line is.

    `approved` says who approved it, until when and why; empty without an approval.
    """

    rule: str
    enforcement: Enforcement
    address: str
    message: str
    column: str = ""
    at: Position | None = None
    approved: str = ""

    @property
    def status(self) -> str:
        """`approved`, or else how the rule is enforced."""
        return "approved" if self.approved else self.enforcement.value


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """A rule that holds for this stack; `at` is where it is written."""

    name: str
    enforcement: Enforcement
    description: str
    at: Position


_ORDER = ("mandatory", "advisory", "approved")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of the rules of `policies/`. `ref` is the Git ref that they are from, empty for those of the project.

    `notes` are remarks that refuse nothing: approvals that are not used, and what could not be checked.
    """

    rules: tuple[RuleOutcome, ...] = ()
    violations: tuple[Violation, ...] = ()
    notes: tuple[str, ...] = ()
    ref: str = ""

    def of(self, status: str) -> tuple[Violation, ...]:
        """Returns the violations that are `mandatory`, `advisory` or `approved`."""
        return tuple(violation for violation in self.violations if violation.status == status)

    @property
    def denied(self) -> tuple[Violation, ...]:
        """The mandatory violations without an approval: with any, `up` changes nothing."""
        return self.of("mandatory")

    def counts(self) -> dict[str, int]:
        """Returns how many violations are mandatory, advisory and approved."""
        return {status: len(self.of(status)) for status in _ORDER}


def sorted_violations(violations: Iterable[Violation]) -> tuple[Violation, ...]:
    """Returns the mandatory first, the approved last; else in the order of the rules."""
    return tuple(sorted(violations, key=lambda violation: _ORDER.index(violation.status)))
