"""Plans an erasure: reads every dataset of the table, and finds what needs the versions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from deployer.datasets.dataset import open_dataset, versions_written
from deployer.datasets.indexes.read import observed_indexes
from deployer.datasets.storage.places import dataset_uri
from deployer.datasets.storage.refs import branch_points, tags_of
from deployer.errors import NotFound, Refused
from deployer.live.former_datasets import FormerDataset, former_datasets
from deployer.live.reader import holds_of
from deployer.platform.text.formatting import timestamp
from deployer.services.erasure.counting import Values, searchable
from deployer.services.erasure.results import ErasurePlan
from deployer.services.erasure.scan import DatasetScan, scan_dataset
from deployer.state.model.entities import TableState
from deployer.state.model.services import LEASE, Savepoint
from deployer.tables.conversion.sql_values import named_columns
from deployer.tables.evolution.rewrite.cleanup import came_late
from deployer.tables.inspect.protection import RELEASE
from deployer.tables.inspect.savepoint_tags import PREFIX
from deployer.tables.maintenance.collect.versions import oldest_in_use
from deployer.tables.open_table import OpenTable
from deployer.tables.read.conditions import check_condition
from deployer.tables.rows.holds import is_usable, refuse_held
from deployer.tables.rows.tasks import RunTasks, count_rows, run_here


def plan_erasure(
    table: OpenTable, where: str, values: Values | None = None, run_tasks: RunTasks = run_here
) -> ErasurePlan:
    """Reads all versions of all datasets of the table, and changes nothing; `run_tasks` reads files elsewhere.

    Raises InvalidInput for the condition, and Refused, naming the hold, where rows are under a legal hold.
    """
    check_condition(where, table.address, table.schema)
    counted = partial(count_rows, table, table.dataset(), run_tasks=run_tasks)
    refuse_held(table, where, "erased", counted)
    rows = counted(where)  # it reports a condition that does not fit the newest version
    values = values if values is not None else values_of(table, where)
    scans = [scan_dataset(table.state.dataset, table.location, where, values, run_tasks=run_tasks)]
    retired = [each for each in former_datasets(table.state) if each.status == "retired"]
    scans += [_scan_retired(table, each, where, values, run_tasks) for each in retired]
    _refuse_held_before(table, where, scans, run_tasks)
    plan = _assembled(table, rows, tuple(scans), retired)
    writing = [each for each in former_datasets(table.state) if each.status == "writing"]
    unreached = [
        f"a rewrite of the table to {each.location} is running or was interrupted: finish it by `deployer up`, or let "
        "CLEAN remove it, and run this again"
        for each in writing
    ]
    return replace(plan, unreached=(*plan.unreached, *unreached))


def _scan_retired(
    table: OpenTable, dataset: FormerDataset, where: str, values: Values, run_tasks: RunTasks
) -> DatasetScan:
    """Scans a retired dataset. A dataset whose removal was interrupted counts as holding the rows, because files of it
    may remain."""
    location = dataset_uri(table.root, dataset.location)
    try:
        return scan_dataset(dataset.number, location, where, values, run_tasks=run_tasks)
    except NotFound:
        return DatasetScan(dataset.number, location, holding=frozenset({0}))


def values_of(table: OpenTable, where: str) -> Values:
    """Returns an empty collection for the values of the row keys, and of the columns that the condition names."""
    names = [*table.row_keys, *named_columns(table.schema, where)]
    return Values(searchable(table.schema, names), table.row_keys, table.kinds)


def _refuse_held_before(table: OpenTable, where: str, scans: Sequence[DatasetScan], run_tasks: RunTasks) -> None:
    """Raises Refused where versions have such rows under a hold which the newest version does not have."""
    held = [each for each in scans if each.holding and each.versions]
    for hold in holds_of(table.state) if held else ():
        both = f"({where}) AND ({hold.where})"
        covers = not hold.where or not is_usable(table, hold)
        scanned = (
            scan_dataset(each.number, each.location, both, Values(frozenset()), run_tasks=run_tasks) for each in held
        )
        if covers or any(each.rows for each in scanned):
            raise Refused(
                f"earlier versions have rows to be erased under legal hold {hold.name}; nothing was changed",
                where=table.address,
                remedy=f"leave these rows out of the condition, or {RELEASE}",
            )


def _assembled(
    table: OpenTable, rows: int, scans: tuple[DatasetScan, ...], retired: Sequence[FormerDataset]
) -> ErasurePlan:
    state, newest = table.state, scans[0]
    dataset = open_dataset(table.location)
    savepoints = sorted(each.name for each in _savepoints(state, scans) if not _is_lease(each))
    unreached = [
        f"a reader has version {each.lance_version} until {timestamp(each.expires_at or 0)} (lease {each.name}): run "
        "this again after that"
        for each in _savepoints(state, scans)
        if _is_lease(each)
    ]
    old = sorted(newest.holding)
    floor = oldest_in_use(state, versions_written(table.location))
    if busy := [each for each in old if floor is not None and each >= floor]:
        unreached.append(
            f"running work needs versions {_listed(busy)}: wait for it (`deployer service runs`, `deployer state "
            "show`), or let `deployer table gc` give up a commit that was interrupted, and run this again"
        )
    tags = [name for name, version in tags_of(dataset).items() if version in old and not name.startswith(PREFIX)]
    if points := [each for each in sorted(branch_points(dataset)) if each in newest.holding]:
        unreached.append(
            f"branches of other programs begin at versions {_listed(points)}: delete the branches and run this again"
        )
    gone = []
    by_number = {each.number: each for each in retired}
    for scan in scans[1:]:
        if not scan.holding:
            continue
        each = by_number[scan.number]
        if late := came_late(table.root, table.entry.location, table.entry.full_name, each):
            unreached.append(f"{each.location}: {late}")
        else:
            gone.append(str(each.location))
    return ErasurePlan(
        table=table.entry.full_name,
        rows=rows,
        stored_rows=max((each.rows for each in scans), default=0),
        versions=tuple(old),
        unknown_versions=tuple(sorted(newest.unknown)),
        savepoints=tuple(savepoints),
        tags=tuple(sorted(tags)),
        datasets=tuple(gone),
        indexes=tuple(sorted(observed_indexes(dataset))),
        unreached=tuple(unreached),
        scans=scans,
    )


def _savepoints(state: TableState, scans: Sequence[DatasetScan]) -> Iterator[Savepoint]:
    """Returns the savepoints whose versions hold rows, including those of a replaced dataset that is removed as a
    whole."""
    current, holding = state.dataset, {each.number: each.holding for each in scans}
    now = time.time() * 1000
    for each in state.savepoints.values():
        if each.expires_at is not None and each.expires_at <= now:
            continue
        of = holding.get(each.dataset, frozenset())
        if each.lance_version in of or (of and each.dataset != current):
            yield each


def _is_lease(savepoint: Savepoint) -> bool:
    return savepoint.name.startswith(LEASE) and savepoint.expires_at is not None


def _listed(versions: Sequence[int], most: int = 8) -> str:
    shown = ", ".join(map(str, versions[:most]))
    return f"{shown} and {len(versions) - most} more" if len(versions) > most else shown
