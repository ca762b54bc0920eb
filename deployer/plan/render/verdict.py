"""The text about policies that every rendering shows."""

from __future__ import annotations

from deployer.plan.verdict import Enforcement, Verdict
from deployer.text.formatting import count

#: What people can do about mandatory violations.
REMEDY = "`up` changes nothing until they are gone or approved in `policies/`"


def verdict_line(verdict: Verdict) -> str:
    """Whose rules they are and what they found: `5 rules of origin/main; violations: 2 mandatory, 1 approved`.

    Those of the checkout may be a branch's own: `5 rules, 1 disabled of this checkout; nothing breaks them`.
    """
    disabled = sum(rule.enforcement is Enforcement.DISABLED for rule in verdict.rules)
    head = count(len(verdict.rules), "rule") + (f", {disabled:,} disabled" if disabled else "")
    head += f" of {verdict.ref}" if verdict.ref else " of this checkout"
    if len(verdict.rules) == disabled:
        return head
    found = [f"{number:,} {status}" for status, number in verdict.counts().items() if number]
    return f"{head}; violations: {', '.join(found)}" if found else f"{head}; nothing breaks them"
