"""EXPIRE: removes rows that are older than the table's retention. A file whose rows are all older is not read.

The rest of `deployer.services`, `deployer.app` and `deployer.cli` may import it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deployer.platform.text.formatting import count, size
from deployer.services.definition import ServiceDefinition, Work
from deployer.specs.schema.services import all_options, declared_options

if TYPE_CHECKING:
    from deployer.services.kinds.expire.results import ExpireResult
    from deployer.tables.open_table import ReadTable


@dataclass(frozen=True, slots=True)
class ExpireOptions:
    """The options of EXPIRE. With `dry_run`, rows are counted and not removed."""

    dry_run: bool = False

    @staticmethod
    def of(declared: Mapping[str, Any]) -> ExpireOptions:
        """Reads options as specs write them; omitted ones have their defaults."""
        return ExpireOptions(all_options("EXPIRE", declared_options("EXPIRE", declared))["dry_run"])


def _work(work: Work[ExpireOptions]) -> ExpireResult:
    from deployer.runs.rewriting.row_tasks import tasks_by
    from deployer.services.kinds.expire.job import expire

    by = tasks_by(work.engine, work.session, work.on_progress, "looking for expired rows")
    return expire(work.table, work.options.dry_run, work.on_progress, work.run_id, work.now, by)


def _result() -> type[ExpireResult]:
    from deployer.services.kinds.expire.results import ExpireResult

    return ExpireResult


def _forecast(table: ReadTable) -> str:
    from deployer.datasets.ordering.clustering import field_of
    from deployer.live.reader import holds_of
    from deployer.plan.assess.holds import describe_hold_names
    from deployer.services.kinds.expire.expired_files import cutoff_of, expired_files

    cutoff = cutoff_of(table.state, table.schema, table.address, time.time())
    dataset = table.dataset() if table.state.files.clusterings() else None
    field = field_of(dataset, cutoff.column) if dataset is not None else None
    found = expired_files(table.state, cutoff, None if field is None else field.id())
    if not found.whole and not found.mixed:
        return "nothing: no row is old enough"
    parts = []
    if found.whole:
        parts.append(f"drops {count(len(found.whole), 'file')} whole: {count(found.rows, 'row')}, {size(found.bytes)}")
    if found.mixed:
        rows = sum(file.rows for file in found.mixed)
        parts.append(f"looks for expired rows in {count(len(found.mixed), 'file')} of {count(rows, 'row')}")
    holds = holds_of(table.state)
    held = f"; rows of {describe_hold_names(holds)} stay" if holds else ""
    return "; ".join(parts) + held


EXPIRE = ServiceDefinition("EXPIRE", ExpireOptions.of, _work, _result, _forecast)
expire_table = EXPIRE.run
