"""What can change in a lake: one frozen class for each kind of change, in one closed union.

A change says what is different, never how it is applied (deployer.tables) or how it is shown
(deployer.plan.render.changes). `kind` is the name of the class in JSON, in policies and in docs/changes.md: it stays
when the class is renamed. `address` is the resource; `column` is the path of names from the table's top-level column to
the nested field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from deployer.specs.model import (
    Cluster,
    IndexSpec,
    InstanceSpec,
    KeyValue,
    ServiceSpec,
    StateBackend,
    Storage,
    TableSpec,
    Trigger,
)
from deployer.specs.types.types import Column, ColumnType

ColumnPath = tuple[str, ...]
SplitPoints = tuple[tuple[KeyValue, ...], ...]


@dataclass(frozen=True, slots=True)
class CreateInstance:
    kind = "CreateInstance"
    address: str
    spec: InstanceSpec


@dataclass(frozen=True, slots=True)
class DeleteInstance:
    kind = "DeleteInstance"
    address: str


@dataclass(frozen=True, slots=True)
class ChangeRoot:
    """`found`: the lake is at the new root already, moved there by hand; only its record changes."""

    kind = "ChangeRoot"

    address: str
    before: str
    after: str
    found: bool = False


@dataclass(frozen=True, slots=True)
class ChangeStateBackend:
    """`found`: the state is in the new store already, imported there with a new root; only its record changes."""

    kind = "ChangeStateBackend"

    address: str
    before: StateBackend
    after: StateBackend
    found: bool = False


@dataclass(frozen=True, slots=True)
class ChangeEngine:
    kind = "ChangeEngine"
    address: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ChangeClusters:
    kind = "ChangeClusters"
    address: str
    before: tuple[Cluster, ...]
    after: tuple[Cluster, ...]


@dataclass(frozen=True, slots=True)
class ChangeNotify:
    """The addresses that are told of failed runs."""

    kind = "ChangeNotify"

    address: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CreateTable:
    kind = "CreateTable"
    address: str
    spec: TableSpec


@dataclass(frozen=True, slots=True)
class DeleteTable:
    """`name` is the table's `database.name` where that is not the one of its address: somebody renamed it."""

    kind = "DeleteTable"

    address: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class RenameTable:
    """A new name or another database; `before` and `after` are `database.name`."""

    kind = "RenameTable"

    address: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class AddColumn:
    """`after` names the sibling that it follows in the spec, None for the first."""

    kind = "AddColumn"

    address: str
    column: ColumnPath
    definition: Column
    after: str | None


@dataclass(frozen=True, slots=True)
class DropColumn:
    kind = "DropColumn"
    address: str
    column: ColumnPath


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """`column` is the path before; `after` the new last name."""

    kind = "RenameColumn"

    address: str
    column: ColumnPath
    after: str


@dataclass(frozen=True, slots=True)
class WidenColumn:
    """Every value of `before` is a value of `after`."""

    kind = "WidenColumn"

    address: str
    column: ColumnPath
    before: ColumnType
    after: ColumnType


@dataclass(frozen=True, slots=True)
class ConvertColumn:
    """Some values of `before` may have no value of `after`; `using` is the SQL expression that gives the new ones."""

    kind = "ConvertColumn"

    address: str
    column: ColumnPath
    before: ColumnType
    after: ColumnType
    using: str | None = None


@dataclass(frozen=True, slots=True)
class RelaxNullability:
    kind = "RelaxNullability"
    address: str
    column: ColumnPath


@dataclass(frozen=True, slots=True)
class TightenNullability:
    kind = "TightenNullability"
    address: str
    column: ColumnPath


@dataclass(frozen=True, slots=True)
class ReorderColumns:
    """`before` and `after` order the columns that both sides have, under the struct `column` (empty: the table)."""

    kind = "ReorderColumns"

    address: str
    column: ColumnPath
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangeColumnDescription:
    kind = "ChangeColumnDescription"
    address: str
    column: ColumnPath
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ChangeColumnDefault:
    """The SQL expression for rows that come without the column; empty: they get null."""

    kind = "ChangeColumnDefault"

    address: str
    column: ColumnPath
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ChangeColumnSource:
    """The name that the column has in files; None: its own."""

    kind = "ChangeColumnSource"

    address: str
    column: ColumnPath
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class ChangeRowKeys:
    """`unique`: no two rows may have the same new keys, which the old ones do not show."""

    kind = "ChangeRowKeys"

    address: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    unique: bool = False


@dataclass(frozen=True, slots=True)
class SetUnique:
    """Whether no two rows may have the same row keys; `keys` are those keys where they may not."""

    kind = "SetUnique"

    address: str
    unique: bool
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeSortKeys:
    kind = "ChangeSortKeys"
    address: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangeSplitPoints:
    kind = "ChangeSplitPoints"
    address: str
    before: SplitPoints
    after: SplitPoints
    keys: tuple[Column, ...] = ()  #: names and types of the row keys that split points have values of


@dataclass(frozen=True, slots=True)
class ChangeLeafLimit:
    """How many rows a leaf may hold before it is split after a load; None: no limit."""

    kind = "ChangeLeafLimit"

    address: str
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class ChangeStorage:
    kind = "ChangeStorage"
    address: str
    before: Storage
    after: Storage


@dataclass(frozen=True, slots=True)
class CreateIndex:
    kind = "CreateIndex"
    address: str
    index: IndexSpec


@dataclass(frozen=True, slots=True)
class DropIndex:
    kind = "DropIndex"
    address: str
    index: IndexSpec


@dataclass(frozen=True, slots=True)
class RebuildIndex:
    """Another kind, column or parameter under the same name."""

    kind = "RebuildIndex"

    address: str
    before: IndexSpec
    after: IndexSpec


@dataclass(frozen=True, slots=True)
class RenameIndex:
    """Another name for an index that stays as it is; both have its column by the new name."""

    kind = "RenameIndex"

    address: str
    before: IndexSpec
    after: IndexSpec


@dataclass(frozen=True, slots=True)
class CreateService:
    kind = "CreateService"
    address: str
    service: ServiceSpec


@dataclass(frozen=True, slots=True)
class DeleteService:
    kind = "DeleteService"
    address: str
    service: ServiceSpec


@dataclass(frozen=True, slots=True)
class ChangeTrigger:
    """When a service runs; None: on demand only. `service` is its kind."""

    kind = "ChangeTrigger"

    address: str
    service: str
    before: Trigger | None
    after: Trigger | None


@dataclass(frozen=True, slots=True)
class ChangeServiceOptions:
    """`before_raw` and `after_raw`: whether the options are texts that nobody checked."""

    kind = "ChangeServiceOptions"

    address: str
    service: str
    before: Mapping[str, object]
    after: Mapping[str, object]
    before_raw: bool = False
    after_raw: bool = False


@dataclass(frozen=True, slots=True)
class MoveServiceToCluster:
    """None: the cluster that jobs of the table have otherwise."""

    kind = "MoveServiceToCluster"

    address: str
    service: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class SetOnline:
    kind = "SetOnline"
    address: str
    online: bool


@dataclass(frozen=True, slots=True)
class SetDeletionProtection:
    kind = "SetDeletionProtection"
    address: str
    protected: bool


@dataclass(frozen=True, slots=True)
class ChangeDescription:
    """The description of a table or an instance."""

    kind = "ChangeDescription"

    address: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ChangeTags:
    """The tags of a table or an instance."""

    kind = "ChangeTags"

    address: str
    before: Mapping[str, str]
    after: Mapping[str, str]


InstanceChange = (
    CreateInstance
    | DeleteInstance
    | ChangeRoot
    | ChangeStateBackend
    | ChangeEngine
    | ChangeClusters
    | ChangeNotify
    | ChangeDescription
    | ChangeTags
)
ColumnChange = (
    AddColumn
    | DropColumn
    | RenameColumn
    | WidenColumn
    | ConvertColumn
    | RelaxNullability
    | TightenNullability
    | ReorderColumns
    | ChangeColumnDescription
    | ChangeColumnDefault
    | ChangeColumnSource
)
IndexChange = CreateIndex | DropIndex | RebuildIndex | RenameIndex
ServiceChange = CreateService | DeleteService | ChangeTrigger | ChangeServiceOptions | MoveServiceToCluster
RewriteChange = WidenColumn | ChangeRowKeys | ChangeSortKeys | ChangeSplitPoints | ChangeStorage
PropertyChange = SetOnline | SetDeletionProtection | ChangeDescription | ChangeTags
#: What can change of a table that exists and stays.
TableAlteration = (
    RenameTable
    | ColumnChange
    | RewriteChange
    | SetUnique
    | ChangeLeafLimit
    | IndexChange
    | ServiceChange
    | PropertyChange
)
TableChange = CreateTable | DeleteTable | TableAlteration
Change = InstanceChange | TableChange
