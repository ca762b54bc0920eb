"""Plans a backfill. Without a condition, only the table's state is read, and no data file is opened."""

from __future__ import annotations

import math
from collections import Counter

from deployer.columns.backfill.definition import Definition
from deployer.columns.backfill.request import BackfillRequest
from deployer.columns.backfill.results import BackfillPlan
from deployer.columns.backfill.selection import Selection, named_fragments
from deployer.columns.fill.executor import slots_of
from deployer.columns.fill.tasks import number_of_tasks, task_rows
from deployer.columns.fill.work import Target, works_of
from deployer.datasets.dataset import field_ids
from deployer.live.backfill_rates import backfill_rates
from deployer.specs.types.computed import version_of
from deployer.state.model.entities import TableState
from deployer.tables.inspect.computed import fill_shares
from deployer.tables.open_table import ReadTable


def plan_backfill(table: ReadTable, request: BackfillRequest, definition: Definition) -> BackfillPlan:
    """Returns the plan of a backfill. Raises as `backfill` does for a request that cannot be fulfilled.

    For a condition that is not always true, the columns that it names are read once, by all cores.
    """
    dataset = table.dataset()
    selection = Selection(request, definition.identities, named_fragments(table, request))
    files = table.state.files
    if request.where is None or request.is_of_all:
        sizes = [file.rows for file in selection.recorded(table.state, dataset)]
        rows = sum(sizes)
    else:
        works = works_of(dataset, Target(tuple(definition.columns)), definition.inputs)
        chosen = [each.work for each in selection.chosen(table, dataset, works)]
        rows, sizes = selection.rows_of(chosen), [work.physical_rows for work in chosen]
    fragments, size = len(sizes), task_rows(request.task_size, files.rows, slots_of(request.concurrency))
    granularity = request.commit_granularity or max(1, fragments)
    rate = backfill_rates(table.state, (request.column,)).get(request.column)
    return BackfillPlan(
        column=request.column,
        version=definition.version,
        rows=rows,
        fragments=fragments,
        tasks=number_of_tasks(sizes, size),
        commits=math.ceil(fragments / granularity),
        total_rows=files.rows,
        total_fragments=files.count,
        by_version=by_version(table.state, field_ids(dataset, [request.column])[0]),
        seconds=None if rate is None else rows / rate,
        where=request.where,
    )


def by_version(state: TableState, field: int) -> dict[str, int]:
    """Returns the number of the table's rows by the version of the column's definition that computed them, as
    `describe` does.

    "" has the rows of files that no definition, or more than one, computed.
    """
    found = Counter[str]()
    for identity, rows in fill_shares(state, field).items():
        found[version_of(identity) if identity else ""] += rows
    return dict(found)
