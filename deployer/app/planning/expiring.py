"""The number of rows that expire now under a plan's retention, from the recorded bounds of files. No row is read."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace

from deployer.live.model import LiveLake
from deployer.plan import Plan, ResourcePlan
from deployer.plan import changes as c
from deployer.plan.assess.risk import Risk
from deployer.plan.model import PlannedChange
from deployer.platform.text.formatting import count
from deployer.specs.model import Lake, Retention, TableSpec
from deployer.state import open_reader
from deployer.state.model.entities import TableState


def with_expiring(plan: Plan, lake: Lake, live: LiveLake, root: str) -> Plan:
    """Returns the plan with the number of rows that would expire now, for each change of retention that destroys
    data."""
    tables = {table.table_id: table for table in live.tables.values()}
    declared = {spec.address: spec for spec in lake.tables}
    found: list[ResourcePlan] = []
    for resource in plan.resources:
        table, spec = tables.get(resource.table_id), declared.get(resource.address)
        if table is None or spec is None or not any(_counts(each) for each in resource.changes):
            found.append(resource)
            continue
        with closing(open_reader(root)) as store:
            state = store.table(resource.table_id)
        changes = tuple(
            _counted(each, state, f"{root.rstrip('/')}/{table.location}", spec, table.spec) if _counts(each) else each
            for each in resource.changes
        )
        found.append(replace(resource, changes=changes))
    return replace(plan, resources=tuple(found))


def _counts(planned: PlannedChange) -> bool:
    return isinstance(planned.change, c.ChangeRetention) and planned.assessment.risk is Risk.DESTROYS


def _field_id(location: str, column: str) -> int | None:
    """Returns Lance's id of the column. The bounds of files that CLUSTER wrote are stored by this id."""
    from deployer.datasets.dataset import open_dataset
    from deployer.datasets.ordering.clustering import field_of

    field = field_of(open_dataset(location), column)
    return None if field is None else int(field.id())


def _counted(
    planned: PlannedChange, state: TableState, location: str, spec: TableSpec, live: TableSpec
) -> PlannedChange:
    from deployer.services.kinds.expire.expired_files import Cutoff, expired_files  # it loads Arrow

    assert isinstance(planned.change, c.ChangeRetention)  # noqa: S101 -- _counts
    keep = planned.change.after
    column = next((each for each in spec.columns if keep is not None and each.name == keep.column), None)
    if keep is None or column is None:
        return planned
    before = column.renamed_from or column.name
    was = next((each for each in live.columns if each.name in (column.name, before)), None)
    if was is None or was.type != column.type:
        return planned
    cutoff = Cutoff.of(Retention(was.name, keep.keep), was, time.time())
    found = expired_files(state, cutoff, _field_id(location, was.name) if state.files.clusterings() else None)
    if not found.mixed:
        why = f"EXPIRE deletes {count(found.rows, 'row')} in {count(len(found.whole), 'whole file')} now"
        if not found.whole:
            why = "no row is old enough now; EXPIRE deletes those that become so"
    else:
        may = sum(file.rows for file in found.mixed)
        why = (
            f"EXPIRE deletes {count(found.rows, 'row')} in {count(len(found.whole), 'whole file')} now, and any of "
            f"{count(may, 'row')} in {count(len(found.mixed), 'file')} that are old enough, which is unknown without "
            "reading them"
        )
    return replace(planned, assessment=replace(planned.assessment, rows=found.rows, bytes=found.bytes, why=why))
