"""The difference of two estimates, for a plan. The functions are pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from deployer.cost.estimate import CostLine, Estimate, Holding, StoredData
from deployer.live.model import LiveLake, LiveTable
from deployer.plan.assess.cost_delta import MonthlyCost
from deployer.plan.model import Plan
from deployer.specs.model import Lake


def before_and_after(plan: Plan, live: LiveLake, lake: Lake, managed: str) -> tuple[Holding | None, Holding]:
    """Returns the resources that cost money before the plan (None: there is no lake yet) and after it.

    Tables keep their sizes; new tables and a new state's table are empty.
    """
    before = None
    if live.instance is not None:
        before = Holding(live.instance, tuple(_held(live, address) for address in sorted(live.tables)), None, managed)
    gone = {resource.live_address for resource in plan.resources if resource.action == "delete"}
    left = replace(live, tables={address: table for address, table in live.tables.items() if address not in gone})
    return before, declared_holding(lake, left, 0 if before is None else None, managed)


def declared_holding(lake: Lake, live: LiveLake | None, state_bytes: int | None, managed: str) -> Holding:
    """Returns the declared resources with the current sizes, and the tables of other owners in the same lake.

    `live` is None where nothing could be read: then all sizes are unknown.
    """
    if live is None:
        return Holding(lake.instance, tuple(StoredData(table, None) for table in lake.tables), state_bytes, managed)
    found = {table.address: live.of(table) for table in lake.tables}
    now = {address: each.spec.address for address, each in found.items() if isinstance(each, LiveTable)}
    tables = [
        StoredData(each, _held(live, now[each.address]).bytes if each.address in now else 0) for each in lake.tables
    ]
    tables += [_held(live, address) for address in sorted(live.tables.keys() - {*now.values()})]
    return Holding(lake.instance, tuple(tables), state_bytes, managed)


def _held(live: LiveLake, address: str) -> StoredData:
    table = live.tables[address]
    return StoredData(table.spec, table.statistics.bytes if table.statistics.known else None)


def difference(before: Estimate | None, after: Estimate) -> MonthlyCost:
    """Compares two estimates. Unknown costs that differ are listed by name; the sums leave them out."""
    old = {line.name: line for line in (before.lines if before is not None else ())}
    new = {line.name: line for line in after.lines}
    unknown = tuple(
        name
        for name in dict.fromkeys((*old, *new))
        if old.get(name) != new.get(name) and not (_is_known(old.get(name)) and _is_known(new.get(name)))
    )
    return MonthlyCost(
        _sum(old, unknown),
        _sum(new, unknown),
        after.prices.currency,
        after.region,
        after.prices.dated,
        unknown,
    )


def _is_known(line: CostLine | None) -> bool:
    return line is None or line.monthly is not None


def _sum(lines: Mapping[str, CostLine], without: Collection[str]) -> float:
    return sum(line.monthly or 0.0 for name, line in lines.items() if name not in without)
