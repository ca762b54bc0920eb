"""The effect of a change on data: no effect, a rewrite of rows and bytes, a publication outside the lake, or a loss of
data. Each kind of change has one rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import assert_never

from deployer.live.model import TableStatistics
from deployer.plan import changes as c
from deployer.plan.assess.column_bytes import Bytes, column_bytes
from deployer.plan.targeting.outside_targets import begins_to_send, places
from deployer.platform.text.formatting import count, describe_seconds
from deployer.platform.text.units import parse_duration
from deployer.specs.model import Hold, IndexSpec, Retention
from deployer.specs.types.column_names import listed, shown
from deployer.specs.types.computed import is_stale, readers_of
from deployer.specs.types.types import Column
from deployer.specs.types.view import ViewSpec, staleness_text


class Risk(StrEnum):
    """The risks, in rising order: `safe` changes no data, `rewrites` rewrites data, `external` publishes the table to a
    catalog outside the lake, `destroys` loses data."""

    SAFE = "safe"
    REWRITES = "rewrites"
    EXTERNAL = "external"
    DESTROYS = "destroys"


@dataclass(frozen=True, slots=True)
class Assessment:
    """The risk of one change, and the rows and bytes that it rewrites or loses; `about`: the bytes are estimated."""

    risk: Risk
    rows: int = 0
    bytes: int = 0
    why: str = ""
    about: bool = False


EXPIRES = "EXPIRE deletes older rows; how many is unknown without reading them"
_SAFE = Assessment(Risk.SAFE)
_NO_KEYS: Mapping[str, str] = MappingProxyType({})


def assess(
    change: c.Change,
    statistics: TableStatistics,
    keys: Mapping[str, str] = _NO_KEYS,
    before: Sequence[Column] = (),
    after: Sequence[Column] = (),
    indexes: Sequence[IndexSpec] = (),
) -> Assessment:
    """Returns the risk of `change` on a table with these live `statistics` (zero for a table that does not exist).

    `keys` are the columns that order rows before and after (`deployer.plan.assess.unsupported.kept_keys`). For a change
    of one column the bytes are those of the column (`deployer.plan.assess.column_bytes`); `before` and `after` are the
    table's columns, `indexes` those that it has before.
    """
    if catalogs := begins_to_send(change):
        sends = "sends the table's name, place, schema, keys and split points to"
        return Assessment(Risk.EXTERNAL, why=f"{sends} {places(catalogs)}")
    match change:
        case c.WidenColumn(column=(name,)) if keys.get(name) == "row key":
            return _rewrite(statistics, "rows are placed again, by keys of the wider type")
        case c.DeleteTable():
            return _lose(statistics, "its rows are deleted")
        case c.DeleteDataset():
            return _unregistered(statistics)
        case c.DropColumn():
            return _lose(statistics, "the column's values are deleted", column_bytes(change, statistics, before, after))
        case c.DeleteInstance():
            return Assessment(Risk.SAFE, why="only an instance without tables can be deleted")
        case c.ChangeRoot(found=True) | c.ChangeStateBackend(found=True):
            return Assessment(Risk.SAFE, why="it exists already")
        case c.ChangeRoot():
            return Assessment(Risk.DESTROYS, why="tables stay behind at the old root")
        case c.ChangeStateBackend():
            return Assessment(Risk.DESTROYS, why="state stays behind in the old store")
        case c.WidenColumn() | c.ConvertColumn():
            why = "the column is rewritten" + _stale_readers(change, before)
            return _rewrite(statistics, why, column_bytes(change, statistics, before, after))
        case c.ChangeRowKeys() | c.ChangeSortKeys():
            return _rewrite(statistics, "rows are sorted and placed again")
        case c.ChangeSplitPoints():
            return _rewrite(statistics, "rows are placed into other partitions")
        case c.ChangeLeafLimit():
            return Assessment(
                Risk.SAFE, why="leaves above it are split after the next load, or by `deployer table split`"
            )
        case c.ChangeEmbedding():
            return Assessment(Risk.SAFE, why="searches use it from now on; existing vectors stay as they are")
        case c.ChangeRetention(before=kept, after=keep):
            return _expiring(statistics, kept, keep)
        case c.ChangeHolds(before=held, after=holds):
            return Assessment(Risk.SAFE, why=_held(held, holds))
        case c.ChangeRetainedChanges(after=kept_for):
            if kept_for is None:
                return Assessment(Risk.SAFE, why="CLEAN removes old versions as its options say")
            return Assessment(Risk.SAFE, why=f"CLEAN keeps the versions of the last {kept_for}")
        case c.ChangeViewQuery(before=made, after=make):
            return _rebuilt(statistics, made, make)
        case c.ChangeMaxStaleness(after=latest):
            if latest is None:
                return Assessment(Risk.SAFE, why="checks no longer report that it is late")
            return Assessment(Risk.SAFE, why=f"checks report when its state is older than {staleness_text(latest)}")
        case c.SetUnique(unique=True):
            return Assessment(Risk.SAFE, why="existing rows are checked first")
        case c.SetUnique():
            return Assessment(Risk.SAFE, why="loads no longer check for duplicates")
        case c.ChangeStorage(before=old, after=new):
            if old.data_storage_version == new.data_storage_version and old.stable_row_ids == new.stable_row_ids:
                return Assessment(Risk.SAFE, why="applies to files written from now on")
            return _rewrite(statistics, "files are rewritten in the other format")
        case c.AddColumn(definition=column) if column.default:
            why = "a file with the column's values is written beside each of the others"
            return _rewrite(statistics, why, column_bytes(change, statistics, before, after))
        case c.ChangeColumnDefault():
            return Assessment(Risk.SAFE, why="applies to rows loaded from now on")
        case c.ChangeColumnSource():
            return Assessment(Risk.SAFE, why="applies to files loaded from now on")
        case c.AddColumn(definition=column) if not column.nullable:
            why = "a column that is never null needs values for existing rows"
            return _rewrite(statistics, why, column_bytes(change, statistics, before, after))
        case c.ChangeColumnComputed():
            return _recomputed(change, statistics, before, after)
        case c.AddColumn(definition=column) if column.computed is not None:
            return Assessment(Risk.SAFE, why="null until a backfill computes it, no file is written")
        case c.AddColumn():
            return Assessment(Risk.SAFE, why="null in existing rows, no file is written")
        case c.CreateIndex() | c.RebuildIndex():
            return Assessment(Risk.SAFE, why=_indexed(statistics))
        case c.RenameColumn():
            return Assessment(Risk.SAFE, why=_followed(change, indexes, before))
        case c.RenameIndex():
            return Assessment(Risk.SAFE, why="its files stay, nothing is built")
        case c.DropIndex():
            return Assessment(Risk.SAFE, why="searches read every row; none is lost")
        case c.DeleteService():
            return Assessment(Risk.SAFE, why="it no longer runs; its runs stay on record")
        case c.ChangeTrigger() | c.ChangeServiceOptions() | c.MoveServiceToCluster():
            return Assessment(Risk.SAFE, why="applies to runs from now on")
        case c.TightenNullability():
            return Assessment(Risk.SAFE, why="existing rows are checked first")
        case c.CreateSearchIndex() | c.RebuildSearchIndex():
            return Assessment(Risk.SAFE, why="it is built of the values that are registered, once there are some")
        case c.DropSearchIndex():
            return Assessment(Risk.SAFE, why="its component cannot be searched any more; no recording changes")
        case c.ChangeSources():
            return Assessment(Risk.SAFE, why="what is registered stays")
        case (
            c.CreateDataset()
            | c.ChangeRegister()
            | c.ChangeDefaultBlueprint()
            | c.ChangeVersionsKept()
            | c.ChangeDatasetServices()
            | c.CreateInstance()
            | c.CreateTable()
            | c.CreateService()
            | c.RenameTable()
            | c.RelaxNullability()
            | c.ReorderColumns()
            | c.ChangeColumnDescription()
            | c.ChangeColumnSensitive()
            | c.SetOnline()
            | c.SetDeletionProtection()
            | c.ChangeDescription()
            | c.ChangeTags()
            | c.ChangeEngine()
            | c.ChangeClusters()
            | c.ChangeNotify()
        ):
            return _SAFE
        case _:
            assert_never(change)


def _unregistered(statistics: TableStatistics) -> Assessment:
    """Returns the assessment of the deletion of a dataset, whose layers count as rows."""
    if statistics.known and not statistics.rows:
        return Assessment(Risk.SAFE, why="nothing is registered with it")
    layers = count(statistics.rows, "layer") if statistics.known else "its layers"
    return Assessment(Risk.DESTROYS, why=f"the registration of {layers} is deleted; recordings stay where they are")


def _recomputed(
    change: c.ChangeColumnComputed, statistics: TableStatistics, before: Sequence[Column], after: Sequence[Column]
) -> Assessment:
    """Returns the assessment of a changed computation. Values stay unchanged: rows and bytes are those that a backfill
    would write."""
    if change.after is None:
        return Assessment(Risk.SAFE, why="its values stay, and nothing computes it any more")
    if change.before is None:
        return Assessment(Risk.SAFE, why="its values stay; a backfill computes those that are null")
    if not is_stale(change.before, change.after):
        return Assessment(Risk.SAFE, why="it has the same values, so what is computed stays")
    if not statistics.known or statistics.rows == 0:
        return Assessment(Risk.SAFE, why="applies to rows computed from now on")
    size = column_bytes(change, statistics, before, after)
    why = "the column becomes stale, its values stay until a backfill computes them again"
    return Assessment(Risk.SAFE, statistics.rows, size.number, why, size.about)


def with_expected_time(assessment: Assessment, rate: float | None) -> Assessment:
    """Returns the assessment of a stale column with the time of a backfill at `rate` rows per second, the rate of the
    last one; None where there was none."""
    if not rate or not assessment.rows:
        return assessment
    time = describe_seconds(assessment.rows / rate)
    return replace(assessment, why=f"{assessment.why}, which takes about {time} at the rate of the last one")


def _rebuilt(statistics: TableStatistics, before: ViewSpec | None, after: ViewSpec | None) -> Assessment:
    if before is None or after is None:
        return Assessment(Risk.SAFE)  # refused
    reads = f"reads {listed(after.tables)} from the start"
    if statistics.known and statistics.rows == 0:
        return Assessment(Risk.SAFE, why=f"the view holds no rows; the next refresh {reads}")
    return _rewrite(statistics, f"the view is built again beside its rows, which it then replaces; that {reads}")


def _expiring(statistics: TableStatistics, before: Retention | None, after: Retention | None) -> Assessment:
    """Returns the assessment of a shorter retention. `deployer.app.planning.expiring` counts the expiring rows, where
    key ranges of files show them."""
    if after is None:
        return Assessment(Risk.SAFE, why="rows are kept forever")
    if before == after:
        return Assessment(Risk.SAFE, why="it follows its column")
    longer = before is not None and parse_duration(after.keep) >= parse_duration(before.keep)
    if longer and before is not None and before.column == after.column:
        return Assessment(Risk.SAFE, why="rows are kept longer")
    if statistics.known and statistics.rows == 0:
        return Assessment(Risk.SAFE, why="the table holds no rows")
    return Assessment(Risk.DESTROYS, why=EXPIRES)


def _held(before: Sequence[Hold], after: Sequence[Hold]) -> str:
    released = [each.name for each in before if each.name not in {hold.name for hold in after}]
    return f"rows of {', '.join(released)} may be deleted again" if released else "held rows stay as they are"


def _followed(change: c.RenameColumn, indexes: Sequence[IndexSpec], before: Sequence[Column]) -> str:
    """Returns the effect of a column's rename on its indexes and on columns that are computed from it."""
    computed = [each.name for each in before if each.computed and change.column[0] in each.computed.inputs]
    readers = f"the definition of {', '.join(map(shown, computed))} follows" if computed else ""
    return "; ".join(filter(None, (_following_indexes(change, indexes), readers if len(change.column) == 1 else "")))


def _stale_readers(change: c.WidenColumn | c.ConvertColumn, before: Sequence[Column]) -> str:
    """Returns the computed columns that become stale with it."""
    readers = readers_of({each.name: each.computed for each in before if each.computed}, [change.column[0]])
    if not readers:
        return ""
    verb = "becomes" if len(readers) == 1 else "become"
    return f"; {', '.join(map(shown, readers))}, computed from it, {verb} stale"


def _following_indexes(change: c.RenameColumn, indexes: Sequence[IndexSpec]) -> str:
    path = ".".join(change.column)
    names = [shown(each.name) for each in indexes if f"{each.columns[0]}.".startswith(f"{path}.")]
    if not names:
        return ""
    return f"index {names[0]} follows" if len(names) == 1 else f"indexes {', '.join(names)} follow"


def _indexed(statistics: TableStatistics) -> str:
    if not statistics.known:
        return "every row is indexed; none is written"
    return f"{statistics.rows:,} rows are indexed; none is written"


def _lose(statistics: TableStatistics, why: str, column: Bytes | None = None) -> Assessment:
    if not statistics.known:
        return Assessment(Risk.DESTROYS, why=f"{why}; size unknown")
    if statistics.rows == 0:
        return Assessment(Risk.SAFE, why="the table holds no rows")
    size = column or Bytes(statistics.bytes)
    return Assessment(Risk.DESTROYS, statistics.rows, size.number, why, size.about)


def _rewrite(statistics: TableStatistics, why: str, column: Bytes | None = None) -> Assessment:
    if not statistics.known:
        return Assessment(Risk.REWRITES, why=f"{why}; size unknown")
    if statistics.rows == 0:
        return Assessment(Risk.SAFE, why="the table holds no rows")
    size = column or Bytes(statistics.bytes)
    return Assessment(Risk.REWRITES, statistics.rows, size.number, why, size.about)
