"""A plan as Markdown that fits a pull-request comment: summary first, risky changes open, safe ones folded."""

from __future__ import annotations

import re
from collections.abc import Sequence

from deployer.plan.assess.cost_delta import describe_cost
from deployer.plan.assess.new_recordings import describe_recordings
from deployer.plan.assess.pending_backfills import PendingBackfill, describe_pending
from deployer.plan.assess.risk import Risk
from deployer.plan.assess.view_refreshes import describe_refresh
from deployer.plan.model import GLYPHS, Foreign, Plan, PlannedChange, ResourcePlan
from deployer.plan.removals import describe_removal
from deployer.plan.render.changes import describe
from deployer.plan.render.escaping import markdown_code, markdown_text
from deployer.plan.render.totals import (
    LEFT_ALONE,
    REMEDY,
    apply_command,
    extents,
    foreign_title,
    headline,
    note_of,
    parted,
    verdict_line,
)
from deployer.plan.saved.seal import SavedAs
from deployer.plan.targeting.targets import describe_targets
from deployer.plan.verdict import Verdict, Violation
from deployer.platform.text.formatting import count, size

#: GitHub refuses comments of more characters. We count UTF-8 bytes, of which a text has never fewer.
COMMENT_LIMIT = 65_536
_ROOM_FOR_NOTES = 400  #: for the lines about omitted changes
_NOTES = 10  #: at most this many computed columns are listed; of more, only the number is shown
_ICONS = {Risk.SAFE: "🟢", Risk.REWRITES: "🟡", Risk.EXTERNAL: "🟣", Risk.DESTROYS: "🔴"}
_STATUSES = {"mandatory": "⛔", "advisory": "⚠️", "approved": "✅"}


def plan_as_markdown(
    plan: Plan, limit: int = COMMENT_LIMIT, against: str | None = None, saved: SavedAs | None = None
) -> str:
    """Returns the plan in at most `limit` bytes.

    The text names the Git ref of the plan's specs, `against`, and the digest of the plan's file, `saved`. A plan that
    is too long shows its safe changes as one line for each resource; then it is shortened, with the number of omitted
    changes.
    """
    head, risky, safe, foreign = (
        _head(plan, against, saved),
        [*_unreadable(plan), *_removals(plan), *_refreshes(plan), *_risky(plan)],
        _safe(plan),
        [_foreign(item) for item in plan.foreign],
    )
    policy = _verdict(plan.verdict) if plan.verdict else []
    title = [f"\n**{foreign_title(plan)}**\n"] if foreign else []
    for safe_lines in (safe, _safe_in_short(plan)):
        text = _joined(head, [*policy, *risky], safe_lines, [*title, *foreign], _safe_title(plan))
        if _length(text) <= limit:
            return text
    room = limit - _length(head) - _length(_safe_title(plan)) - _ROOM_FOR_NOTES
    policy, room = _cut(policy, room, "violations or remarks of policies")
    risky, room = _cut(risky, room, "risky changes or resources")
    foreign, room = _cut(foreign, room, "operations of other providers")
    short, _ = _cut(_safe_in_short(plan), room, "resources with safe changes")
    return _joined(head, [*policy, *risky], short, [*title, *foreign], _safe_title(plan))


def verdict_as_markdown(instance: str, verdict: Verdict, limit: int = COMMENT_LIMIT) -> str:
    """Returns only the verdict of policies, in at most `limit` bytes."""
    head = f"### Policies for {markdown_code(instance)}: {markdown_text(verdict_line(verdict))}\n"
    if verdict.denied:
        head += f"\n⛔ **refused**: {REMEDY}\n"
    lines, _ = _cut(_verdict_lines(verdict), limit - _length(head) - _ROOM_FOR_NOTES, "violations or remarks")
    return _joined(head, lines, (), (), "")


def _verdict(verdict: Verdict) -> list[str]:
    return [f"\n**Policies** ({markdown_text(verdict_line(verdict))})\n", *_verdict_lines(verdict)]


def _verdict_lines(verdict: Verdict) -> list[str]:
    return [*map(_violation, verdict.violations), *(f"- 💬 {markdown_text(note)}" for note in verdict.notes)]


def _violation(violation: Violation) -> str:
    status = violation.status
    line = f"- {_STATUSES[status]} {status} {markdown_code(violation.rule)} {markdown_code(violation.address)}: "
    line += markdown_text(violation.message)
    if violation.at:
        line += f" {markdown_code(str(violation.at))}"
    return line + (f"\n  - {markdown_text(f'approved {violation.approved}')}" if violation.approved else "")


def _head(plan: Plan, against: str | None, saved: SavedAs | None) -> str:
    lines = [f"### Plan for {markdown_code(plan.instance)}: {headline(plan)}"]
    if against is not None:
        lines += ["", f"Compared with the specs at {markdown_code(against)}; live state was not read."]
    if plan.targets is not None:
        lines += ["", f"🎯 **targeted**: {markdown_text(describe_targets(plan.targets))}"]
    if saved is not None:
        signed = f", signed by {markdown_code(saved.signed_by)}" if saved.signed_by else ""
        command = markdown_code(apply_command(saved))
        lines += ["", f"Saved as {markdown_code(saved.digest)}{signed}. To apply exactly this: {command}"]
    facts = [f"{_ICONS[risk]} **{risk.value}** {markdown_text(text)}" for risk, text in extents(plan)]
    if plan.unreadable:
        facts.append(f"❓ **{count(len(plan.unreadable), 'table')} unreadable**: {LEFT_ALONE}")
    if refused := len(plan.refused) + len(plan.refused_removals):
        facts.append(f"⛔ **{count(refused, 'change')} refused**: `up` changes nothing until they are gone")
    if plan.removals:
        size_ = size(sum(each.bytes for each in plan.removals))
        facts.append(
            f"{_ICONS[Risk.DESTROYS]} **removes** {count(len(plan.removals), 'dataset')} from storage, {size_}"
        )
    if plan.denied:
        facts.append(f"⛔ **{count(len(plan.denied), 'mandatory violation')} of policies**: {REMEDY}")
    if not facts and plan.changes:
        facts.append(f"{_ICONS[Risk.SAFE]} all changes are **safe**: no data is rewritten or lost")
    facts += map(_pending, plan.pending_backfills[:_NOTES])
    if len(plan.pending_backfills) > _NOTES:
        facts.append(f"📝 and {count(len(plan.pending_backfills) - _NOTES, 'more column')} to compute")
    if plan.cost:
        facts.append(f"💰 **cost** {markdown_text(describe_cost(plan.cost))}")
    return "\n".join([*lines, *(["", *(f"- {fact}" for fact in facts)] if facts else [])]) + "\n"


def _pending(pending: PendingBackfill) -> str:
    return f"📝 **note** {markdown_code(pending.address)} {markdown_text(describe_pending(pending))}"


def _unreadable(plan: Plan) -> list[str]:
    if not plan.unreadable:
        return []
    lines = [f"- ❓ {markdown_code(each.address)}: {markdown_text(each.why)}" for each in plan.unreadable]
    return ["\n**Unreadable**\n", *lines]


def _risky(plan: Plan) -> list[str]:
    lines = []
    for resource in plan.resources:
        changes, _ = parted(resource)
        if changes:
            lines.append(f"\n**{_title(resource)}**{_live(resource)}\n")
            lines += [_change(change) for change in changes]
    return lines


def _refreshes(plan: Plan) -> list[str]:
    found = [each for each in plan.refreshes if each.mode != "none"]
    lines = ["\n**Refreshes of views** (not done by `up`)\n"] if found else []
    lines += (f"- {markdown_text(describe_refresh(each))}" for each in found)
    recordings = [each for each in plan.recordings if not each.is_empty]
    lines += ["\n**Recordings** (data, and no difference)\n"] if recordings else []
    return [*lines, *(f"- {markdown_text(describe_recordings(each))}" for each in recordings)]


def _removals(plan: Plan) -> list[str]:
    lines = ["\n**Removed from storage**\n"] if plan.removals else []
    for each in plan.removals:
        line = f"- {_ICONS[Risk.DESTROYS]} {markdown_code(each.address)}: {markdown_text(describe_removal(each))}"
        lines.append(line + (f"\n  - ⛔ **refused**: {markdown_text(each.refused)}" if each.refused else ""))
    return lines


def _safe(plan: Plan) -> list[str]:
    lines = []
    for resource in plan.resources:
        _, changes = parted(resource)
        if changes:
            lines.append(f"\n{_title(resource)}\n")
            lines += [_change(change) for change in changes]
    return lines


def _safe_in_short(plan: Plan) -> list[str]:
    return [
        f"- {_title(resource)}: {count(len(changes), 'change')}"
        for resource in plan.resources
        if (changes := parted(resource)[1])
    ]


def _safe_title(plan: Plan) -> str:
    sizes = [len(changes) for resource in plan.resources if (changes := parted(resource)[1])]
    return f"{count(sum(sizes), 'safe change')} to {count(len(sizes), 'resource')}" if sizes else ""


def _title(resource: ResourcePlan) -> str:
    return f"`{GLYPHS[resource.action]}` {markdown_code(resource.address)}"


def _live(resource: ResourcePlan) -> str:
    statistics = resource.statistics
    return f" ({count(statistics.rows, 'row')}, {size(statistics.bytes)})" if statistics.rows else ""


def _change(change: PlannedChange) -> str:
    risk = change.assessment.risk
    line = f"- {_ICONS[risk]} {risk.value}: {markdown_text(describe(change.change))}"
    if note := note_of(change):
        line += f" ({markdown_text(note)})"
    if change.cause:
        line += f" {markdown_code(str(change.cause))}"
    if change.refused:
        line += f"\n  - ⛔ **refused**: {markdown_text(change.refused)}"
    return line


def _foreign(item: Foreign) -> str:
    detail = f" ({markdown_text(item.detail)})" if item.detail else ""
    return f"- {markdown_text(item.action)} {markdown_code(item.address)}{detail}"


def _joined(head: str, risky: Sequence[str], safe: Sequence[str], foreign: Sequence[str], safe_title: str) -> str:
    parts = [head, *risky]
    parts += foreign
    if safe:
        parts += [f"\n<details><summary>{safe_title}</summary>\n", *safe, "\n</details>"]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip("\n") + "\n"


def _cut(lines: list[str], room: int, what: str) -> tuple[list[str], int]:
    """Returns the first lines that fit into `room` bytes, and the room that is left."""
    for index, line in enumerate(lines):
        room -= _length(line) + 1
        if room < 0:
            return [*lines[:index], f"\n… and {len(lines) - index:,} more {what}, not shown here\n"], 0
    return lines, room


def _length(text: str) -> int:
    return len(text.encode())
