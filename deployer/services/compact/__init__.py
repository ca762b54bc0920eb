"""COMPACT: merges small files of a leaf, drops deleted rows, keeps the order. `compact_table` runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deployer.compute.spark.local import LocalCluster
    from deployer.services.compact.results import Compacted
    from deployer.services.rewriting.run import Engine
    from deployer.services.runs.runner import RunRequest
    from deployer.system.progress import OnProgress
    from deployer.tables.open_table import OpenTable


def compact_table(
    root: str,
    table: str,
    options: Mapping[str, Any] | None = None,
    *,
    cluster: Callable[[], LocalCluster] | None = None,
    engine: Engine = "auto",
    on_progress: OnProgress | None = None,
    asked: RunRequest | None = None,
) -> Compacted:
    """Compacts `table` (`database.name`, or the name alone when it is the only one) at `root`, as a run.

    `options` are those of the service COMPACT in canonical form, sizes in bytes; None takes those of the table's own
    service. `cluster` is asked when the work turns out to need Spark; `asked` names a run that is queued already, or
    says why one is wanted. A run that is cancelled or interrupted gives what it had committed, with status CANCELLED.
    Raises NotFound, InvalidInput, and Conflict when one is running already or others change the same rows without end.
    """
    from deployer.compute.spark.local import LocalCluster
    from deployer.compute.spark.session import job_session
    from deployer.services.compact.job import compact
    from deployer.services.compact.options import CompactOptions
    from deployer.services.runs.runner import run_on_table

    choose = cluster or LocalCluster

    def prepared(opened: OpenTable, declared: Mapping[str, Any]) -> Callable[[str, OnProgress], Compacted]:
        chosen = CompactOptions.of(declared)
        return lambda run_id, report_progress: compact(
            opened.refreshed(), chosen, lambda: job_session(choose), engine, report_progress, run_id
        )

    return run_on_table(root, table, "COMPACT", options, asked, on_progress, prepared)
