"""Computed columns that a backfill would compute. A plan reports them, and `up` does not change them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deployer.plan import changes as c
from deployer.plan.assess.column_bytes import values_bytes
from deployer.platform.text.formatting import about_size, count, describe_seconds

if TYPE_CHECKING:
    from deployer.live.model import LiveTable
    from deployer.live.uncomputed import UncomputedColumn
    from deployer.specs.model import ServiceSpec, TableSpec

SERVICE = "BACKFILL"


@dataclass(frozen=True, slots=True)
class PendingBackfill:
    """A column of the table at `address`, and the amount that a backfill would write.

    `is_stale`: rows have values of another version; otherwise they have none. `seconds` is the time at the rate of the
    last run that computed the column, None where there was none. `by_service`: the next run of the table's service
    computes it.
    """

    address: str
    table: str
    column: str
    version: str
    is_stale: bool
    rows: int
    bytes: int
    about: bool
    seconds: float | None
    by_service: bool


def pending_backfills(
    address: str, table: LiveTable, after: TableSpec, changes: Sequence[c.Change]
) -> Iterator[PendingBackfill]:
    """Yields the columns of a table to report: stale columns, and columns without values that no BACKFILL of the
    declared table computes. Columns whose definition the plan changes are left out: the change reports them."""
    changed = {change.column for change in changes if isinstance(change, c.ChangeColumnComputed | c.DropColumn)}
    for each in table.uncomputed:
        by_service = any(_computes(service, each) for service in after.services)
        rows = each.stale + each.missing
        if (each.name,) in changed or (by_service and not each.stale):
            continue
        size = values_bytes(each.name, rows, table.statistics, table.spec.columns)
        rate = table.rates.get(each.name)
        yield PendingBackfill(
            address=address,
            table=table.spec.full_name,
            column=each.name,
            version=each.version,
            is_stale=bool(each.stale),
            rows=rows,
            bytes=size.number,
            about=size.about,
            seconds=rows / rate if rate else None,
            by_service=by_service,
        )


def _computes(service: ServiceSpec, column: UncomputedColumn) -> bool:
    """Returns whether the service computes all missing values of the column."""
    if service.kind != SERVICE or service.unsafe_raw:
        return False
    chosen: Any = service.options.get("columns") or (column.name,)
    return column.name in chosen and (not column.stale or service.options.get("on_change") == "recompute")


def describe_pending(pending: PendingBackfill) -> str:
    """Returns `column speed is stale: a backfill writes 1,000 rows, 8.0 kB, in about 3 s at the rate of the last one;
    run …`."""
    what = "is stale" if pending.is_stale else "is not computed yet"
    size = f"{count(pending.rows, 'row')}, {about_size(pending.bytes, about=pending.about)}"
    rate = "" if pending.seconds is None else f", in about {describe_seconds(pending.seconds)} at the rate of the last"
    by = "its service BACKFILL does that" if pending.by_service else f"run `{backfill_command(pending)}`"
    return f"column {pending.column} {what}: a backfill to version {pending.version} writes {size}{rate}; {by}"


def backfill_command(pending: PendingBackfill) -> str:
    """Returns the command that computes the column."""
    return f"deployer column backfill {shlex.quote(pending.table)} {shlex.quote(pending.column)}"


def pending_as_json(pending: PendingBackfill) -> Mapping[str, Any]:
    """Returns a column that a backfill would compute, as a part of the plan's document."""
    return {
        "address": pending.address,
        "table": pending.table,
        "column": pending.column,
        "status": "stale" if pending.is_stale else "not computed",
        "version": pending.version,
        "rows": pending.rows,
        "bytes": pending.bytes,
        **({"bytes_about": True} if pending.about else {}),
        "seconds": None if pending.seconds is None else round(pending.seconds, 3),
        "by_service": pending.by_service,
    }
