"""COMPACT: merges small files of a leaf, drops deleted rows, keeps the order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deployer.platform.text.formatting import count, size
from deployer.services.definition import ServiceDefinition, Work, options_of
from deployer.services.kinds.compact.options import CompactOptions
from deployer.services.kinds.compact.planning import own_plan

if TYPE_CHECKING:
    from deployer.services.kinds.compact.results import CompactResult
    from deployer.tables.open_table import ReadTable


def _work(work: Work[CompactOptions]) -> CompactResult:
    from deployer.services.kinds.compact.job import compact

    return compact(work.table, work.options, work.session, work.engine, work.on_progress, work.run_id)


def _result() -> type[CompactResult]:
    from deployer.services.kinds.compact.results import CompactResult

    return CompactResult


def _forecast(table: ReadTable) -> str:
    from deployer.runs.rewriting.tasks import files_of
    from deployer.services.kinds.compact.job import planned

    options = CompactOptions.of(options_of(table.state, COMPACT.kind))
    sizes = options.sizes(table.layout().max_rows_per_file)
    tasks = planned(table, table.dataset(), sizes)
    if not tasks:
        return "nothing: no file is to be merged, sorted, placed or freed of deleted rows"
    old = sum(len(task.fragments) for task in tasks)
    new = sum(files_of(task.rows, task.bytes, sizes) for task in tasks)
    rows = count(sum(task.rows for task in tasks), "row")
    deleted = sum(task.deleted for task in tasks)
    dropped = f", {count(deleted, 'deleted row')} dropped" if deleted else ""
    written = size(sum(task.bytes for task in tasks))
    return f"{count(old, 'file')} become about {new:,}: {rows} rewritten, {written}{dropped}"


COMPACT = ServiceDefinition("COMPACT", CompactOptions.of, _work, _result, _forecast, pending=own_plan)
compact_table = COMPACT.run
