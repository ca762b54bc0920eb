"""The size of columns on disk, for the plan: Lance keeps the bytes of each in the footers of its data files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deployer.datasets.dataset import open_dataset
from deployer.plan import changes as c

if TYPE_CHECKING:
    from deployer.live.model import LiveLake, LiveTable
    from deployer.plan.model import Plan, PlannedChange

MOST_FILES = 256  #: a footer is read of each file: about 50 µs on disk, one request on S3


def sized_on_disk(plan: Plan, live: LiveLake, root: str) -> Plan:
    """Returns the plan with columns that it drops, and those written whose values have no fixed width, as large as on
    disk.

    Where there are too many files to ask, what the planner reckoned stays.
    """
    resources = []
    for resource in plan.resources:
        table = live.tables.get(resource.live_address)
        if table is not None and table.statistics.files <= MOST_FILES and any(map(_wants_size, resource.changes)):
            resource = replace(resource, changes=_sized(resource.changes, table, root))
        resources.append(resource)
    return replace(plan, resources=tuple(resources))


def _wants_size(planned: PlannedChange) -> bool:
    if not planned.assessment.rows:
        return False
    return isinstance(planned.change, c.DropColumn) or (
        planned.assessment.about and isinstance(planned.change, c.WidenColumn | c.ConvertColumn)
    )


def _sized(changes: Sequence[PlannedChange], table: LiveTable, root: str) -> tuple[PlannedChange, ...]:
    dataset = open_dataset(f"{root.rstrip('/')}/{table.location}", table.statistics.lance_version)
    on_disk = {field.id: field.bytes_on_disk for field in dataset.stats.data_stats().fields}
    fields = {field.name(): field for field in dataset.lance_schema.fields()}
    renames = [each.change for each in changes if isinstance(each.change, c.RenameColumn)]
    before = {change.after: change.column[0] for change in renames if len(change.column) == 1}
    found = []
    for each in changes:
        match each.change:
            case c.DropColumn(column=path) if _wants_size(each):
                about = False
            case c.WidenColumn(column=whole) | c.ConvertColumn(column=whole) if _wants_size(each):
                about, path = True, whole[:1]  # the whole column is written, and is not what is there
            case _:
                found.append(each)
                continue
        field = _field(fields.get(before.get(path[0], path[0])), path[1:])
        number = _bytes(field, on_disk) if field is not None else 0
        sized = replace(each, assessment=replace(each.assessment, bytes=number, about=about))
        found.append(sized if number else each)
    return tuple(found)


def _field(field: Any, path: c.ColumnPath) -> Any:
    for name in path:
        field = next((child for child in field.children() if child.name() == name), None) if field else None
    return field


def _bytes(field: Any, on_disk: dict[int, int]) -> int:
    return on_disk.get(field.id(), 0) + sum(_bytes(child, on_disk) for child in field.children())
