"""METASYNC: publishes a table to catalogs, and says what others changed there. `metasync_table` runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from deployer.errors import DeployerError
from deployer.services.metasync.results import Metasynced
from deployer.services.metasync.sync import sync
from deployer.services.metasync.targets.registry import target_for
from deployer.specs.schema.services import all_options
from deployer.system.progress import OnProgress
from deployer.tables.open_table import OpenTable, open_entry

if TYPE_CHECKING:
    from deployer.services.runs.runner import RunRequest


class NotPublished(DeployerError):
    """Some targets failed; the others are up to date."""

    kind = "NotPublished"


def metasync_table(
    root: str,
    table: str,
    options: Mapping[str, Any] | None = None,
    *,
    on_progress: OnProgress | None = None,
    asked: RunRequest | None = None,
) -> Metasynced:
    """Publishes `table` (`database.name`, or the name alone when it is the only one) at `root`, as a run.

    `options` are those of the service METASYNC. Without `targets` the target is the directory namespace of the lake.
    None takes the options of the table's own service, and then entries in other targets are removed. Raises NotFound,
    InvalidInput, and Conflict when one is running already; NotPublished when a target failed, after all of them were
    tried.
    """
    from deployer.services.runs.runner import run_on_table

    def prepared(opened: OpenTable, declared: Mapping[str, Any]) -> Callable[[str, OnProgress], Metasynced]:
        targets = all_options("METASYNC", declared)["targets"]
        has_own = options is None and "METASYNC" in opened.state.services

        def work(run_id: str, report_progress: OnProgress) -> Metasynced:
            current = open_entry(opened.store, root, opened.entry)
            return sync(
                current,
                targets,
                lambda target: target_for(current, target),
                all_of_them=has_own,
                on_progress=report_progress,
                run_id=run_id,
            )

        return work

    done = run_on_table(root, table, "METASYNC", options, asked, on_progress, prepared)
    if done.status == "FAILED":
        raise NotPublished(done.why, where=f"table/{done.table}", remedy="the run's figures say what was published")
    return done
