"""The verdict of policies on a plan: data that every rendering shows. `deployer.policy` makes it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from deployer.errors import Position


class Enforcement(StrEnum):
    """The enforcement of a rule: `up` refuses `mandatory` violations, `advisory` ones are only shown, `disabled` rules
    do not run."""

    MANDATORY = "mandatory"
    ADVISORY = "advisory"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a rule.

    `at` is the line of the specs that caused it, None when no line did. `approved` has the approver, the end and the
    reason of an approval; empty without one.
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
        """`approved`, otherwise the enforcement of the rule."""
        return "approved" if self.approved else self.enforcement.value


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """A rule that holds for this stack; `at` is its place."""

    name: str
    enforcement: Enforcement
    description: str
    at: Position


_ORDER = ("mandatory", "advisory", "approved")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of the rules of `policies/`. `ref` is the Git ref of the rules, empty for those of the checkout.

    `notes` are remarks that do not refuse anything: unused approvals, and objects that could not be checked.
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
    """Returns the violations: mandatory ones first, approved ones last, otherwise in the order of the rules."""
    return tuple(sorted(violations, key=lambda violation: _ORDER.index(violation.status)))
