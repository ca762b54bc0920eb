"""Plans over the small lake of tests/plan, as rules see them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from deployer.live.column_age import Since
from deployer.live.model import LiveLake, TableStatistics
from deployer.plan import make_plan
from deployer.plan.changes import ColumnPath
from deployer.plan.verdict import Verdict
from deployer.policy.evaluate import evaluate
from deployer.policy.load import load_policies
from deployer.policy.rows import PlanView
from deployer.policy.view import ColumnSince, plan_view
from deployer.specs.model import TableSpec
from tests.plan.lakes import INSTANCE, LIVE, OWNER, graph

NOW = dt.datetime(2026, 6, 30, 12, tzinfo=dt.UTC)


def aged(days: float, *, at_least: bool = False) -> ColumnSince:
    """Every column was added so many days ago."""
    return lambda address, column: Since(NOW - dt.timedelta(days=days), at_least)


def unknown(address: str, column: ColumnPath) -> None:
    """Nobody knows since when there is any column."""


def view_of(
    *tables: TableSpec, live: LiveLake = LIVE, since: ColumnSince | None = unknown, stack: str = "dev"
) -> PlanView:
    """What rules see of the plan that makes `live` these tables."""
    plan = make_plan("demo", graph(*tables), live, owner=OWNER)
    return plan_view(plan, (INSTANCE, *tables), live, stack, NOW, since)


def verdict_in(project: Path, plan: PlanView) -> Verdict:
    """What the policies of a project say of a plan."""
    with load_policies(project) as policies:
        return evaluate(policies, plan)


def without_sizes(live: LiveLake = LIVE) -> LiveLake:
    """As `preview --against` has it."""
    tables = {key: replace(table, statistics=TableStatistics(known=False)) for key, table in live.tables.items()}
    return replace(live, tables=tables)


Change = Callable[[TableSpec], TableSpec]
