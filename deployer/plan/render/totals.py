"""The texts about a whole plan that every rendering shows: resources by action, the rows and bytes that it rewrites or
destroys, the catalogs outside the lake that it publishes to, the verdict of policies, and the command for a saved
plan."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deployer.live.model import TableStatistics
from deployer.plan.assess.risk import Assessment, Risk
from deployer.plan.model import Action, Plan, PlannedChange, ResourcePlan
from deployer.plan.targeting.outside_targets import begins_to_send, places
from deployer.plan.verdict import Enforcement, Verdict
from deployer.platform.text.formatting import about_size, count, size

if TYPE_CHECKING:
    from deployer.plan.saved.seal import SavedAs

_VERBS: tuple[tuple[Action, str], ...] = (("create", "to create"), ("update", "to update"), ("delete", "to delete"))

_OF_LAKES = ("instance/", "table/", "dataset/")


@dataclass(frozen=True, slots=True)
class Extent:
    """The tables, rows and bytes with a risk; each row counts once. `unknown`: the number of tables without a known
    size."""

    tables: int = 0
    rows: int = 0
    bytes: int = 0
    unknown: int = 0
    about: bool = False  #: some of the bytes are estimated


def extent(plan: Plan, risk: Risk) -> Extent:
    """Returns the extent of all changes with that risk together."""
    tables = rows = size_ = unknown = 0
    about = False
    for resource in plan.resources:
        touched = [change.assessment for change in resource.changes if change.assessment.risk is risk]
        if touched:
            tables += 1
            rows += max(each.rows for each in touched)
            size_ += _bytes(touched, resource.statistics)
            about |= any(each.about for each in touched)
            unknown += not resource.statistics.known
    return Extent(tables, rows, size_, unknown, about)


def _bytes(touched: Sequence[Assessment], statistics: TableStatistics) -> int:
    """Returns the bytes of changes of single columns together, at most those of the table."""
    return max(*(each.bytes for each in touched), min(sum(each.bytes for each in touched), statistics.bytes))


def headline(plan: Plan) -> str:
    """Returns `1 to create, 2 to update, 7 unchanged`, or `nothing to do, 7 resources as declared`; and `1
    unreadable`."""
    counts = plan.counts()
    unreadable = [f"{len(plan.unreadable):,} unreadable"] if plan.unreadable else []
    if plan.is_empty:
        return ", ".join([f"nothing to do, {count(len(plan.resources), 'resource')} as declared", *unreadable])
    parts = [f"{counts[action]:,} {verb}" for action, verb in _VERBS if counts[action]]
    parts += foreign_counts(plan)
    parts += filter(None, [removal_total(plan)])
    return ", ".join([*parts, f"{counts['same']:,} unchanged", *unreadable])


#: the text about a table that cannot be read
LEFT_ALONE = "nothing is planned for it, and `up` leaves it as it is"


def foreign_counts(plan: Plan) -> list[str]:
    """Returns `2 of other providers`, `3 for Pulumi's state`: the number of operations that do not change the lake."""
    own = sum(item.address.startswith(_OF_LAKES) for item in plan.foreign)
    others = len(plan.foreign) - own
    parts = [(others, "of other providers"), (own, "for Pulumi's state")]
    return [f"{number:,} {what}" for number, what in parts if number]


def foreign_title(plan: Plan) -> str:
    """Returns the heading of operations that do not change the lake. Their plan is only as good as the program."""
    own = any(item.address.startswith(_OF_LAKES) for item in plan.foreign)
    return f"Other {'operations' if own else 'providers'}, as the program has them"


def extents(plan: Plan) -> list[tuple[Risk, str]]:
    """Returns the extents of destroyed, published and rewritten data, the worst first, each with its text: `3 rows, 1.5
    KiB in 1 resource`."""
    found: list[tuple[Risk, str]] = []
    for risk in (Risk.DESTROYS, Risk.EXTERNAL, Risk.REWRITES):
        total = extent(plan, risk)
        if risk is Risk.EXTERNAL:
            if total.tables:
                sent = [each for change in plan.changes for each in begins_to_send(change.change)]
                found.append((risk, f"{count(total.tables, 'table')} published to {places(sent)}"))
            continue
        if total.tables:
            where = f"in {count(total.tables, 'resource')}"
            known = f"{count(total.rows, 'row')}, {about_size(total.bytes, about=total.about)}"
            if total.unknown == total.tables:
                known = "size unknown,"
            elif total.unknown:
                known += f" and {total.unknown:,} of unknown size,"
            found.append((risk, f"{known} {where}"))
    return found


def is_risky(change: PlannedChange) -> bool:
    """Returns whether a reviewer must see the change: it changes data, publishes data, or is refused."""
    return change.assessment.risk is not Risk.SAFE or change.refused is not None


def parted(resource: ResourcePlan) -> tuple[tuple[PlannedChange, ...], tuple[PlannedChange, ...]]:
    """Returns the risky changes of a resource, the worst first, and the safe ones in their order."""
    order = [Risk.DESTROYS, Risk.EXTERNAL, Risk.REWRITES, Risk.SAFE]
    risky = sorted(filter(is_risky, resource.changes), key=lambda change: order.index(change.assessment.risk))
    return tuple(risky), tuple(change for change in resource.changes if not is_risky(change))


def note_of(change: PlannedChange) -> str:
    """Returns `336,776 rows, 11.8 MiB; rows are sorted and placed again`, or an empty text."""
    assessment = change.assessment
    size_ = about_size(assessment.bytes, about=assessment.about)
    touched = f"{count(assessment.rows, 'row')}, {size_}" if assessment.rows else ""
    return "; ".join(part for part in (touched, assessment.why) if part)


def removal_total(plan: Plan) -> str:
    """Returns `2 datasets to remove (11.8 MiB)`; empty without removals."""
    if not plan.removals:
        return ""
    return f"{count(len(plan.removals), 'dataset')} to remove ({size(sum(each.bytes for each in plan.removals))})"


#: the remedy for mandatory violations
REMEDY = "`up` changes nothing until they are gone or approved in `policies/`"


def verdict_line(verdict: Verdict) -> str:
    """Returns the source of the rules and what they found: `5 rules of origin/main; violations: 2 mandatory, 1
    approved`.

    Those of the checkout may be a branch's own: `5 rules, 1 disabled of this checkout; no violations`.
    """
    disabled = sum(rule.enforcement is Enforcement.DISABLED for rule in verdict.rules)
    head = count(len(verdict.rules), "rule") + (f", {disabled:,} disabled" if disabled else "")
    head += f" of {verdict.ref}" if verdict.ref else " of this checkout"
    if len(verdict.rules) == disabled:
        return head
    found = [f"{number:,} {status}" for status, number in verdict.counts().items() if number]
    return f"{head}; violations: {', '.join(found)}" if found else f"{head}; no violations"


def describe_saved_plan(saved: SavedAs) -> str:
    """Returns `saved as sha256:…, signed by 4fb6…`."""
    return f"saved as {saved.digest}" + (f", signed by {saved.signed_by}" if saved.signed_by else "")


def apply_command(saved: SavedAs) -> str:
    """Returns the command that applies only that file."""
    return f"deployer up {shlex.quote(saved.file)} --expect {saved.digest}"
