"""Refuses changes of columns while a run writes their values."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from deployer.errors import Conflict
from deployer.platform.system.clock import Clock
from deployer.specs.types.arrow import computed_of
from deployer.specs.types.column_names import listed

if TYPE_CHECKING:
    from deployer.tables.open_table import OpenTable


def refuse_while_written(table: OpenTable, names: Collection[str]) -> None:
    """Raises Conflict, which names the run, while a run writes these columns or columns that are computed from them."""
    now = Clock().now()
    read = {field.name: computed.inputs for field in table.schema if (computed := computed_of(field)) is not None}
    for run in table.state.runs.values():
        alive = run.is_open and (run.lease_until is None or run.lease_until >= now)
        needed = {*run.target, *(name for column in run.target for name in read.get(column, ()))}
        if alive and (both := needed & {*names}):
            raise Conflict(
                f"run {run.run_id} of {run.service} is writing {listed(run.target)}, for which it needs "
                f"{listed(sorted(both))}",
                where=table.address,
                remedy="wait for that run, or cancel it",
            )
