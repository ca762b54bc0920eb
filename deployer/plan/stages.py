"""The stages in which the changes of one table are applied. Pure: the one place that defines their order.

`deployer.plan.diff` returns changes in this order, renderings show them in this order, and `deployer.tables.admin`
executes the stages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from deployer.plan import changes as c
from deployer.specs.model import TableSpec


@dataclass(frozen=True, slots=True)
class RenameTable:
    changes: tuple[c.RenameTable, ...]


@dataclass(frozen=True, slots=True)
class DropIndexes:
    """Drops indexes while their columns still have the names and types that they were built for."""

    changes: tuple[c.DropIndex, ...]


@dataclass(frozen=True, slots=True)
class EvolveSchema:
    """Changes columns in place, except those that later stages change."""

    changes: tuple[c.ColumnChange, ...]


@dataclass(frozen=True, slots=True)
class DropUnique:
    """Permits rows with equal row keys, which can result from the new keys of a rewrite."""

    changes: tuple[c.SetUnique, ...]


@dataclass(frozen=True, slots=True)
class RewriteTable:
    """Makes all of these changes by one copy of the rows into a new dataset."""

    changes: tuple[c.RewriteChange, ...]


@dataclass(frozen=True, slots=True)
class SetConstraints:
    """Sets the constraints of rows with the new keys and leaves, their retention and their holds."""

    changes: tuple[c.Constraint, ...]


@dataclass(frozen=True, slots=True)
class EvolveFormerKeys:
    """Changes columns that no longer order the rows. Before the rewrite their types define the order."""

    changes: tuple[c.ColumnChange, ...]


@dataclass(frozen=True, slots=True)
class DropColumns:
    """Drops columns last: no key needs them at this stage, no table or struct is without columns meanwhile, and a
    failure before this stage loses no data."""

    changes: tuple[c.DropColumn, ...]


@dataclass(frozen=True, slots=True)
class BuildIndexes:
    """Builds and renames indexes, and builds again those that a change of their column or a rewrite removed.

    A table that declares indexes always has this stage.
    """

    changes: tuple[c.CreateIndex | c.RebuildIndex | c.RenameIndex, ...]


@dataclass(frozen=True, slots=True)
class ChangeServices:
    changes: tuple[c.ServiceChange, ...]


@dataclass(frozen=True, slots=True)
class SetProperties:
    changes: tuple[c.PropertyChange, ...]


Stage = (
    RenameTable
    | DropIndexes
    | EvolveSchema
    | DropUnique
    | RewriteTable
    | SetConstraints
    | EvolveFormerKeys
    | DropColumns
    | BuildIndexes
    | ChangeServices
    | SetProperties
)


def stages(changes: Iterable[c.TableAlteration], desired: TableSpec) -> list[Stage]:
    """Returns the stages that apply `changes` to a table that becomes `desired`, in order; none without changes.

    Within a stage, changes keep their order.
    """
    changes = tuple(changes)
    if not changes:  # as for most tables of a plan
        return []
    kept, former = _keys(changes, desired)
    renamed: list[c.RenameTable] = []
    dropped_indexes: list[c.DropIndex] = []
    columns: list[c.ColumnChange] = []
    not_unique: list[c.SetUnique] = []
    rewritten: list[c.RewriteChange] = []
    constraints: list[c.Constraint] = []
    former_keys: list[c.ColumnChange] = []
    dropped_columns: list[c.DropColumn] = []
    indexes: list[c.CreateIndex | c.RebuildIndex | c.RenameIndex] = []
    services: list[c.ServiceChange] = []
    properties: list[c.PropertyChange] = []
    for change in changes:
        match change:
            case c.RenameTable():
                renamed.append(change)
            case c.DropIndex():
                dropped_indexes.append(change)
            case c.CreateIndex() | c.RebuildIndex() | c.RenameIndex():
                indexes.append(change)
            case c.DropColumn():
                dropped_columns.append(change)
            case c.WidenColumn(column=(name,)) if name in kept:
                rewritten.append(change)
            case (
                c.WidenColumn(column=(name,)) | c.ConvertColumn(column=(name,)) | c.RelaxNullability(column=(name,))
            ) if name in former:
                former_keys.append(change)
            case (
                c.AddColumn()
                | c.RenameColumn()
                | c.WidenColumn()
                | c.ConvertColumn()
                | c.RelaxNullability()
                | c.TightenNullability()
                | c.ReorderColumns()
                | c.ChangeColumnDescription()
                | c.ChangeColumnSensitive()
                | c.ChangeColumnDefault()
                | c.ChangeColumnSource()
                | c.ChangeColumnComputed()
            ):
                columns.append(change)
            case c.SetUnique(unique=False):
                not_unique.append(change)
            case (
                c.SetUnique() | c.ChangeLeafLimit() | c.ChangeRetention() | c.ChangeHolds() | c.ChangeRetainedChanges()
            ):
                constraints.append(change)
            case (
                c.ChangeRowKeys() | c.ChangeSortKeys() | c.ChangeSplitPoints() | c.ChangeStorage() | c.ChangeViewQuery()
            ):
                rewritten.append(change)
            case (
                c.CreateService()
                | c.DeleteService()
                | c.ChangeTrigger()
                | c.ChangeServiceOptions()
                | c.MoveServiceToCluster()
            ):
                services.append(change)
            case (
                c.ChangeEmbedding()
                | c.ChangeMaxStaleness()
                | c.SetOnline()
                | c.SetDeletionProtection()
                | c.ChangeDescription()
                | c.ChangeTags()
            ):
                properties.append(change)
            case _:
                assert_never(change)
    ordered: tuple[Stage, ...] = (
        RenameTable(tuple(renamed)),
        DropIndexes(tuple(dropped_indexes)),
        EvolveSchema(tuple(columns)),
        DropUnique(tuple(not_unique)),
        RewriteTable(tuple(rewritten)),
        SetConstraints(tuple(constraints)),
        EvolveFormerKeys(tuple(former_keys)),
        DropColumns(tuple(dropped_columns)),
        BuildIndexes(tuple(indexes)),
        ChangeServices(tuple(services)),
        SetProperties(tuple(properties)),
    )
    builds = bool(changes and desired.indexes)
    return [stage for stage in ordered if stage.changes or (builds and isinstance(stage, BuildIndexes))]


def in_order(changes: Iterable[c.TableAlteration], desired: TableSpec) -> tuple[c.TableAlteration, ...]:
    """Returns the changes in the order of their stages."""
    return tuple(change for stage in stages(changes, desired) for change in stage.changes)


def _keys(changes: Iterable[c.TableAlteration], desired: TableSpec) -> tuple[frozenset[str], frozenset[str]]:
    """Returns the row keys that stay row keys, and the columns that order the rows only before the rewrite, by their
    new names.

    A row key that stays counts as a former key too, because all changes of its type except a wider type are refused.
    """
    row_keys, sort_keys = desired.row_keys, desired.sort_keys
    for change in changes:
        if isinstance(change, c.ChangeRowKeys):
            row_keys = change.before
        elif isinstance(change, c.ChangeSortKeys):
            sort_keys = change.before
    unsorted = set(sort_keys) - {*desired.row_keys, *desired.sort_keys}
    return frozenset(row_keys) & {*desired.row_keys}, frozenset(row_keys) | unsorted
