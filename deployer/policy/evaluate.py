"""Evaluates every rule on a plan, and applies approvals to the violations."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from fnmatch import fnmatchcase

from deployer.errors import InvalidSpecs, Problem
from deployer.plan.verdict import Enforcement, RuleOutcome, Verdict, Violation, sorted_violations
from deployer.policy.model import Approval, Policies, Policy, RuleFailed, Unchecked
from deployer.policy.rows import Finding, PlanView


def evaluate(policies: Policies, plan: PlanView) -> Verdict:
    """Returns the verdict of the rules that apply to the plan's stack. Raises InvalidSpecs with the problems of all
    rules that failed."""
    asked = [rule for rule in policies.rules if _holds(rule.stacks, plan.stack)]
    approvals = [approval for approval in policies.approvals if _holds(approval.stacks, plan.stack)]
    problems: list[Problem] = []
    violations: list[Violation] = []
    notes: list[str] = []
    used: set[Approval] = set()
    today = plan.now.date()
    for rule in asked:
        if rule.enforcement is Enforcement.DISABLED:
            continue
        try:
            found = list(rule.check(plan))
        except RuleFailed as failed:
            problems.append(failed.problem)
            continue
        for each in found:
            if not _holds(rule.addresses, each.address):
                continue
            if isinstance(each, Unchecked):
                notes.append(f"{rule.name} was not checked for {each.address}: {each.what}")
            else:
                fitting = [approval for approval in approvals if _fits(approval, rule, each)]
                used.update(fitting)
                violations.append(_violation(rule, each, fitting, today))
    if problems:
        raise InvalidSpecs(problems, of="the policies")
    notes += [
        f"{address} cannot be read, so no rule checked changes to it, and none is made: {why}"
        for address, why in plan.unreadable.items()
    ]
    names = {rule.name for rule in asked}
    notes += [_unused(each, today) for each in approvals if each not in used and each.rule in names]
    rules = tuple(RuleOutcome(rule.name, rule.enforcement, rule.description, rule.at) for rule in asked)
    return Verdict(rules, sorted_violations(violations), tuple(notes))


def _holds(globs: Sequence[str], name: str) -> bool:
    return not globs or any(fnmatchcase(name, glob) for glob in globs)


def _fits(approval: Approval, rule: Policy, found: Finding) -> bool:
    same = approval.rule == rule.name and approval.address == found.address
    return same and approval.column in ("", found.column)


def _violation(rule: Policy, found: Finding, fitting: Sequence[Approval], today: dt.date) -> Violation:
    valid = next((each for each in fitting if today <= each.until), None)
    message = " ".join(found.message.split())  # makes one line of any text that a rule returns
    if valid is None and fitting:
        last = max(fitting, key=lambda each: each.until)
        message += f" (the approval by {last.by} ended on {last.until})"
    approved = f"by {valid.by} until {valid.until}: {valid.reason}" if valid else ""
    return Violation(rule.name, rule.enforcement, found.address, message, found.column, found.at, approved)


def _unused(approval: Approval, today: dt.date) -> str:
    what = f"{approval.at}: the approval of {approval.rule} for {approval.address}"
    if approval.column:
        what += f" column {approval.column}"
    return f"{what} {'is not used' if today <= approval.until else f'ended on {approval.until}'}: remove it"
