"""Datasets that `up` would remove from storage now, in addition to those of a plan's changes, from live state.

Only datasets to remove are examined, so a lake without them has no cost.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator
from dataclasses import replace

from deployer.datasets.dataset import open_dataset
from deployer.datasets.storage.places import dataset_uri
from deployer.errors import DeployerError
from deployer.live.former_datasets import FormerDataset
from deployer.live.model import LiveLake, LiveTable, UnfinishedTable
from deployer.plan import changes as c
from deployer.plan.model import Plan, ResourcePlan
from deployer.plan.removals import Removal, RemovalKind
from deployer.platform.text.units import parse_duration
from deployer.specs.model import Lake
from deployer.state.model.location import Location
from deployer.tables.admin.deletion import stored
from deployer.tables.evolution.rewrite.cleanup import came_late, is_due

_REWRITING = (c.ChangeRowKeys, c.ChangeSortKeys, c.ChangeSplitPoints, c.ChangeStorage, c.WidenColumn)


def foreseen_removals(
    plan: Plan, live: LiveLake, root: str, *, desired: Lake, owner: str, allow_destroy: Collection[str], now: int
) -> tuple[Removal, ...]:
    """Returns the datasets that are removed with the plan at `now` (ms), by table. Leaves out datasets that savepoints
    or late rows need, and those that the specs, `desired`, keep longer than the state says.

    `owner` is the `project/stack` whose unfinished deletions are ended.
    """
    if not live.unfinished and not any(table.former for table in live.tables.values()):
        return ()
    by_live_address = {resource.live_address: resource for resource in plan.resources}
    declared = {table.table_id: spec for spec in desired.tables if (table := live.of(spec))}
    found: list[Removal] = []
    for address, table in sorted(live.tables.items()):
        if table.former:
            spec = declared.get(table.table_id, table.spec)
            kept = parse_duration(spec.storage.keep_replaced_for) // dt.timedelta(milliseconds=1)
            former = [replace(each, kept_until=max(each.kept_until, each.since + kept)) for each in table.former]
            table = replace(table, former=tuple(former))
            found += _of_table(root, address, table, by_live_address.get(address), now)
    planned = {resource.address: resource for resource in plan.resources}
    for unfinished in live.unfinished:
        found += _of_unfinished(root, unfinished, planned, owner, allow_destroy)
    return tuple(found)


def _of_table(root: str, address: str, table: LiveTable, planned: ResourcePlan | None, now: int) -> Iterator[Removal]:
    deleted = planned is not None and planned.action == "delete"
    rewritten = planned is not None and any(isinstance(each.change, _REWRITING) for each in planned.changes)
    for each in table.former:
        if deleted:
            yield _removal(root, address, table.table_id, each, "deleted", "its table is deleted")
        elif not is_due(each, now):
            continue
        elif each.status == "writing":
            why = "an interrupted rewrite is not needed any more"
            if rewritten:
                why = "an interrupted rewrite; this run resumes it if it has the same target"
            yield _removal(root, address, table.table_id, each, "unfinished", why)
        elif not each.needed_at(-1) and not _is_late(root, table, each):
            why = f"its table was rewritten on {_day(each.since)}, and it was kept until {_day(each.kept_until)}"
            yield _removal(root, address, table.table_id, each, "replaced", why)


def _is_late(root: str, table: LiveTable, dataset: FormerDataset) -> bool:
    return bool(came_late(root, Location(table.location), table.spec.full_name, dataset))


def _of_unfinished(
    root: str,
    table: UnfinishedTable,
    planned: dict[str, ResourcePlan],
    owner: str,
    allow_destroy: Collection[str],
) -> Iterator[Removal]:
    entry = table.entry
    created = (resource := planned.get(entry.address)) is not None and resource.action == "create"
    size, files = stored(dataset_uri(root, entry.location))
    current = FormerDataset(entry.dataset, entry.location, "retired", entry.created_at, 0, 0)
    if entry.status == "creating":
        if created and files:
            refused = "it has a log already, which a table in creation never has" if table.rows is not None else None
            why = "its creation was interrupted; it is created again"
            yield _removal(root, entry.address, entry.table_id, current, "creating", why, size, table.rows, refused)
        return
    if not created and table.owner not in ("", owner):
        return
    refused = None
    if entry.address not in allow_destroy and ((table.rows and table.protected) or (table.rows is None and files)):
        held = f"{table.rows:,} rows, protected from deletion" if table.rows else "files that its log does not record"
        refused = f"its deletion was begun, and it holds {held}; to end it: --allow-destroy {entry.address}"
    why = "its deletion was interrupted; it is ended"
    yield _removal(root, entry.address, entry.table_id, current, "deleting", why, size, table.rows, refused)
    for each in table.former:
        yield _removal(root, entry.address, entry.table_id, each, "deleting", why)


def _removal(
    root: str,
    address: str,
    table_id: str,
    dataset: FormerDataset,
    kind: RemovalKind,
    why: str,
    bytes_: int | None = None,
    rows: int | None = None,
    refused: str | None = None,
) -> Removal:
    location = dataset_uri(root, dataset.location)
    if bytes_ is None:
        bytes_, rows = stored(location)[0], _rows(location, dataset)
    return Removal(
        address=address,
        table_id=table_id,
        number=dataset.number,
        location=dataset.location,
        kind=kind,
        why=why,
        rows=rows,
        bytes=bytes_,
        refused=refused,
    )


def _rows(location: str, dataset: FormerDataset) -> int | None:
    """Returns the number of rows of the last recorded version of a dataset; None for an unfinished dataset, and where
    the rows cannot be counted."""
    if dataset.status == "writing":
        return None
    try:
        return int(open_dataset(location, dataset.lance_version).count_rows())
    except (DeployerError, OSError, ValueError):
        return None


def _day(at: int) -> str:
    try:
        return f"{dt.datetime.fromtimestamp(at / 1000, dt.UTC):%Y-%m-%d}"
    except (OverflowError, OSError, ValueError):
        return "an invalid date"
