"""The rows that refreshes of the declared views would read and write, from logs and manifests. No row is read."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace

from deployer.errors import DeployerError
from deployer.live.model import LiveLake, LiveTable
from deployer.plan import changes as c
from deployer.plan.assess.view_refreshes import ViewRefresh
from deployer.plan.model import Plan
from deployer.specs.model import Lake, TableSpec
from deployer.state import open_reader


def with_refreshes(plan: Plan, lake: Lake, live: LiveLake, root: str) -> Plan:
    """Returns the plan with the next refresh of each view that `lake` declares."""
    views = [table for table in lake.tables if table.view is not None]
    if not views:
        return plan
    changes = {each.address: [planned.change for planned in each.changes] for each in plan.resources}
    found = [_refresh(view, changes.get(view.address, ()), lake, live, root) for view in views]
    return replace(plan, refreshes=tuple(sorted(found, key=lambda each: each.address)))


def _refresh(view: TableSpec, changes: Iterable[c.Change], lake: Lake, live: LiveLake, root: str) -> ViewRefresh:
    now = live.of(view)
    changed = any(isinstance(change, c.ChangeViewQuery) for change in changes)
    if isinstance(now, LiveTable) and not changed:
        return _planned(view, now, root)
    reason = "its query changes" if isinstance(now, LiveTable) else "it is created"
    tables = [live.of(each) for each in lake.tables if view.view and each.full_name in view.view.tables]
    sources = [each.statistics for each in tables if isinstance(each, LiveTable)]
    rows, size, files = (sum(getattr(each, name) for each in sources) for name in ("rows", "bytes", "files"))
    return ViewRefresh(view.address, "full", reason, rows, size, files)


def _planned(view: TableSpec, now: LiveTable, root: str) -> ViewRefresh:
    # these modules load Arrow and DataFusion
    from deployer.platform.isolation.trusted_functions import TrustedFunctions
    from deployer.tables.open_table import read_entry
    from deployer.views.refresh.engine import queries_of
    from deployer.views.refresh.refresh import plan_refresh

    try:
        with closing(open_reader(root)) as store:
            table = read_entry(store, root, store.instance().tables[now.table_id])
            found = plan_refresh(queries_of(root, TrustedFunctions.allowed()), table)
    except DeployerError as error:
        return ViewRefresh(view.address, "unknown", error.what)
    written = found.rows if found.mode == "incremental" else found.stored_rows or None
    written = 0 if found.mode == "none" else written
    return ViewRefresh(view.address, found.mode, found.reason, found.rows, found.bytes, found.fragments, written)
