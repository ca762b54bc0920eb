"""METASYNC: publishes a table to catalogs, and reports what others changed there.

The rest of `deployer.services` and `deployer.cli` may import it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deployer.errors import DeployerError
from deployer.runs.records import runs_of
from deployer.services.definition import ServiceDefinition, Work
from deployer.services.kinds.metasync.results import MetasyncResult
from deployer.services.kinds.metasync.sync import sync
from deployer.services.kinds.metasync.targets.registry import target_for
from deployer.specs.schema.services import all_options

if TYPE_CHECKING:
    from deployer.tables.open_table import ReadTable

Targets = Sequence[Mapping[str, Any]]  #: in canonical form


class NotPublished(DeployerError):
    """The error that some targets failed; the others are up to date."""

    kind = "NotPublished"


def _targets(declared: Mapping[str, Any]) -> Targets:
    """Returns the targets to publish to: the declared ones, or the directory namespace of the lake if there are
    none."""
    found: Targets = all_options("METASYNC", declared)["targets"]
    return found


def _work(work: Work[Targets]) -> MetasyncResult:
    """Publishes to the targets. A run with the options of the table's own service removes entries in other targets."""
    return sync(
        work.table,
        work.options,
        lambda target: target_for(work.table, target),
        all_of_them=work.is_own,
        on_progress=work.on_progress,
        run_id=work.run_id,
    )


def _forecast(table: ReadTable) -> str:
    runs = runs_of(table.state, METASYNC.kind)
    last = next((run for run in runs if run.status in ("SUCCEEDED", "SKIPPED")), None)
    version = table.state.lance_version
    if last is not None and last.figures.lance_version_after == version:
        return f"only checks the catalogs: version {version} is published"
    return f"publishes version {version}"


def _failure(done: MetasyncResult) -> NotPublished | None:
    if done.status != "FAILED":
        return None
    return NotPublished(done.why, where=f"table/{done.table}", remedy="the run's figures say what was published")


METASYNC = ServiceDefinition("METASYNC", _targets, _work, lambda: MetasyncResult, _forecast, failure=_failure)
metasync_table = METASYNC.run
