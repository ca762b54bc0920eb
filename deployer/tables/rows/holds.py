"""Checks for rows under a legal hold among the rows that a change is about to affect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deployer.errors import InvalidInput, Refused
from deployer.live.reader import holds_of
from deployer.platform.text.formatting import count
from deployer.specs.model import Hold
from deployer.tables.inspect.protection import RELEASE
from deployer.tables.open_table import OpenTable, ReadTable
from deployer.tables.read.conditions import check_condition
from deployer.tables.read.table import Table
from deployer.tables.rows.matching import ADDRESS, matching_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALL = "true"  #: the condition that is true for every row
CountRows = Callable[[str], int]  #: a function that returns the number of rows for which a condition is true


@dataclass(frozen=True, slots=True)
class HeldRows:
    """A hold, and the number of rows that it covers among those that a change is about to affect."""

    hold: Hold
    rows: int


def held_rows(table: ReadTable, where: str = ALL, counted: CountRows | None = None) -> tuple[HeldRows, ...]:
    """Returns the holds that cover rows for which `where` is true, with the number of those rows.

    For a table without holds the result is empty, and no data is read. `counted` counts rows in another process, such
    as Spark. A hold whose condition cannot be used, for example because its column was dropped, covers every row.
    Raises InvalidInput for an unusable `where`.
    """
    found: list[HeldRows] = []
    if not (holds := holds_of(table.state)):
        return ()
    check_condition(where, table.address, table.schema)  # on its own, before it is combined with another condition
    for hold in holds:
        both = _both(table, hold, where)
        if rows := counted(both) if counted is not None else Table(table).count_where(both):
            found.append(HeldRows(hold, rows))
    return tuple(found)


def refuse_held(table: ReadTable, where: str, verb: str, counted: CountRows | None = None) -> None:
    """Raises Refused, which names the hold, if a hold covers rows for which `where` is true.

    `verb` names the change in the message, such as `deleted`. `counted` counts rows as in `held_rows`.
    """
    for first in held_rows(table, where, counted):
        raise _held(table, first, verb)


def _held(table: ReadTable, held: HeldRows, verb: str) -> Refused:
    reason = f" ({held.hold.reason})" if held.hold.reason else ""
    are = "is" if held.rows == 1 else "are"
    return Refused(
        f"{count(held.rows, 'row')} to be {verb} {are} under legal hold {held.hold.name}{reason}; nothing was changed",
        where=table.address,
        remedy=f"leave these rows out, or {RELEASE}",
    )


def refuse_held_addresses(table: OpenTable, addresses: NDArray[np.uint64], verb: str) -> None:
    """Raises Refused if a hold covers a row at one of these addresses. Does not read a table without holds."""
    for hold in holds_of(table.state) if len(addresses) else ():
        rows = len(addresses)
        if hold.where and is_usable(table, hold):
            batches = matching_rows(table, table.dataset(), hold.where)
            rows = sum(int(np.isin(np.asarray(each.column(ADDRESS)), addresses).sum()) for each in batches)
        if rows:
            raise _held(table, HeldRows(hold, rows), verb)


def without_held(table: ReadTable, where: str) -> str:
    """Returns a condition for the rows for which `where` is true and that no hold covers."""
    parts = [f"({where})"]
    for hold in holds_of(table.state):
        if not is_usable(table, hold) or not hold.where:
            return "false"
        parts.append(f"(({hold.where}) IS NOT TRUE)")
    return " AND ".join(parts)


def is_usable(table: ReadTable, hold: Hold) -> bool:
    """Returns whether the hold's condition can be used with the table's columns."""
    try:
        next(Table(table).scan(hold.where or ALL, table.schema.names[:1], limit=1).batches, None)
    except InvalidInput:
        return False
    return True


def _both(table: ReadTable, hold: Hold, where: str) -> str:
    return f"({where}) AND ({hold.where})" if hold.where and is_usable(table, hold) else where
