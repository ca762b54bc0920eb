"""What a change does to data: nothing, a rewrite of so many rows and bytes, or the loss of some. One rule a change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import assert_never

from deployer.live.model import TableStatistics
from deployer.plan import changes as c


class Risk(StrEnum):
    """In rising order: `safe` changes no data, `rewrites` writes data anew, `destroys` loses data."""

    SAFE = "safe"
    REWRITES = "rewrites"
    DESTROYS = "destroys"


@dataclass(frozen=True, slots=True)
class Assessment:
    """The risk of one change, and the rows and bytes that it rewrites or loses."""

    risk: Risk
    rows: int = 0
    bytes: int = 0
    why: str = ""


_SAFE = Assessment(Risk.SAFE)
_NO_KEYS: Mapping[str, str] = MappingProxyType({})


def assess(change: c.Change, statistics: TableStatistics, keys: Mapping[str, str] = _NO_KEYS) -> Assessment:
    """The risk of `change` on a table of these live `statistics` (zero for what does not exist).

    `keys` are the columns that order rows before and after (`deployer.plan.support.kept_keys`).
    """
    match change:
        case c.WidenColumn(column=(name,)) if keys.get(name) == "row key":
            return _rewrite(statistics, "rows are placed anew, by keys of the wider type")
        case c.DeleteTable():
            return _lose(statistics, "its rows are deleted")
        case c.DropColumn():
            return _lose(statistics, "the column's values are deleted")
        case c.DeleteInstance():
            return Assessment(Risk.SAFE, why="only an instance without tables can be deleted")
        case c.ChangeRoot():
            return Assessment(Risk.DESTROYS, why="tables stay behind at the old root")
        case c.ChangeStateBackend():
            return Assessment(Risk.DESTROYS, why="state stays behind in the old store")
        case c.WidenColumn() | c.ConvertColumn():
            return _rewrite(statistics, "the column is written anew")
        case c.ChangeRowKeys() | c.ChangeSortKeys():
            return _rewrite(statistics, "rows are sorted and placed anew")
        case c.ChangeSplitPoints():
            return _rewrite(statistics, "rows are placed into other partitions")
        case c.ChangeLeafLimit():
            return Assessment(
                Risk.SAFE, why="leaves above it are split after the next load, or by `deployer table split`"
            )
        case c.ChangeStorage(before=before, after=after):
            if before.data_storage_version == after.data_storage_version and (
                before.stable_row_ids == after.stable_row_ids
            ):
                return Assessment(Risk.SAFE, why="applies to files written from now on")
            return _rewrite(statistics, "files are written anew in the other format")
        case c.AddColumn(definition=column) if column.default:
            return _rewrite(statistics, "a file with the column's values is written beside each of the others")
        case c.ChangeColumnDefault():
            return Assessment(Risk.SAFE, why="applies to rows loaded from now on")
        case c.AddColumn(definition=column) if not column.nullable:
            return _rewrite(statistics, "a column that is never null needs values for existing rows")
        case c.AddColumn():
            return Assessment(Risk.SAFE, why="null in existing rows, no file is written")
        case c.CreateIndex() | c.RebuildIndex():
            return Assessment(Risk.SAFE, why=_indexed(statistics))
        case c.DropIndex():
            return Assessment(Risk.SAFE, why="searches read every row; none is lost")
        case c.TightenNullability():
            return Assessment(Risk.SAFE, why="existing rows are checked first")
        case (
            c.CreateInstance()
            | c.CreateTable()
            | c.RenameTable()
            | c.RenameColumn()
            | c.RelaxNullability()
            | c.ReorderColumns()
            | c.ChangeColumnDescription()
            | c.SetOnline()
            | c.SetDeletionProtection()
            | c.ChangeDescription()
            | c.ChangeTags()
            | c.ChangeEngine()
            | c.ChangeClusters()
        ):
            return _SAFE
        case _:
            assert_never(change)


def _indexed(statistics: TableStatistics) -> str:
    if not statistics.known:
        return "every row is indexed; none is written"
    return f"{statistics.rows:,} rows are indexed; none is written"


def _lose(statistics: TableStatistics, why: str) -> Assessment:
    if not statistics.known:
        return Assessment(Risk.DESTROYS, why=f"{why}; size unknown")
    if statistics.rows == 0:
        return Assessment(Risk.SAFE, why="the table holds no rows")
    return Assessment(Risk.DESTROYS, statistics.rows, statistics.bytes, why)


def _rewrite(statistics: TableStatistics, why: str) -> Assessment:
    if not statistics.known:
        return Assessment(Risk.REWRITES, why=f"{why}; size unknown")
    if statistics.rows == 0:
        return Assessment(Risk.SAFE, why="the table holds no rows")
    return Assessment(Risk.REWRITES, statistics.rows, statistics.bytes, why)
