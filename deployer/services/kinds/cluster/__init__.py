"""CLUSTER: puts rows with near values in some columns into the same files.

The rest of `deployer.services` and `deployer.cli` may import it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deployer.platform.text.formatting import count, size
from deployer.services.definition import ServiceDefinition, Work, options_of
from deployer.services.kinds.cluster.options import ClusterOptions
from deployer.specs.types.column_names import listed

if TYPE_CHECKING:
    from deployer.services.kinds.cluster.results import ClusterResult
    from deployer.tables.open_table import ReadTable


def _work(work: Work[ClusterOptions]) -> ClusterResult:
    from deployer.services.kinds.cluster import job

    return job.cluster(work.table, work.options, work.session, work.engine, work.on_progress, work.run_id)


def _result() -> type[ClusterResult]:
    from deployer.services.kinds.cluster.results import ClusterResult

    return ClusterResult


def _forecast(table: ReadTable) -> str:
    from deployer.services.kinds.cluster.forecast import forecast

    options = ClusterOptions.of(options_of(table.state, CLUSTER.kind))
    arrangement = options.arrangement(table)
    found = forecast(table, options, arrangement)
    by = f"{arrangement.curve} over {listed(arrangement.columns)}"
    if not found.tasks:
        return f"nothing: all files are clustered by {by}"
    files = sum(len(task.fragments) for task in found.tasks)
    rows, held = sum(task.rows for task in found.tasks), sum(task.bytes for task in found.tasks)
    would = "only reports what it would arrange" if options.dry_run else "arranges"
    text = f"{would} by {by}: {files:,} of {count(table.state.files.count, 'file')}, {count(rows, 'row')}, {size(held)}"
    if not found.unknown:
        return text
    which = f"{count(len(found.unknown), 'part')} of {len(found.tasks):,}" if found.better else "the files"
    return f"{text}; a run that finds {which} in that order already leaves them as they are"


CLUSTER = ServiceDefinition("CLUSTER", ClusterOptions.of, _work, _result, _forecast)
cluster_table = CLUSTER.run
