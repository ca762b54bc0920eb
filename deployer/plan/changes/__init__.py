"""The changes that a lake can have: one frozen class for each kind of change, in one closed union.

A change describes the difference, not how it is applied (deployer.tables) or shown (deployer.plan.render.changes).
`kind` is the name of the class in JSON, in policies and in docs/changes.md: it stays when the class is renamed.
`address` is the resource; `column` is the path of names from the table's top-level column to the nested field.

The rest of `deployer.plan` and every layer above `deployer.plan` may import it.
"""

from __future__ import annotations

from deployer.plan.changes.columns import (
    AddColumn,
    ChangeColumnComputed,
    ChangeColumnDefault,
    ChangeColumnDescription,
    ChangeColumnSensitive,
    ChangeColumnSource,
    ColumnChange,
    ColumnPath,
    ConvertColumn,
    DropColumn,
    RelaxNullability,
    RenameColumn,
    ReorderColumns,
    TightenNullability,
    WidenColumn,
)
from deployer.plan.changes.datasets import (
    ChangeDatasetServices,
    ChangeDefaultBlueprint,
    ChangeRegister,
    ChangeSources,
    ChangeVersionsKept,
    CreateDataset,
    CreateSearchIndex,
    DeleteDataset,
    DropSearchIndex,
    RebuildSearchIndex,
)
from deployer.plan.changes.indexes import (
    CreateIndex,
    DropIndex,
    IndexChange,
    RebuildIndex,
    RenameIndex,
)
from deployer.plan.changes.instance import (
    ChangeClusters,
    ChangeEngine,
    ChangeNotify,
    ChangeRoot,
    ChangeStateBackend,
    CreateInstance,
    DeleteInstance,
)
from deployer.plan.changes.services import (
    ChangeServiceOptions,
    ChangeTrigger,
    CreateService,
    DeleteService,
    MoveServiceToCluster,
    ServiceChange,
)
from deployer.plan.changes.table import (
    ChangeDescription,
    ChangeEmbedding,
    ChangeHolds,
    ChangeLeafLimit,
    ChangeMaxStaleness,
    ChangeRetainedChanges,
    ChangeRetention,
    ChangeRowKeys,
    ChangeSortKeys,
    ChangeSplitPoints,
    ChangeStorage,
    ChangeTags,
    ChangeViewQuery,
    CreateTable,
    DeleteTable,
    RenameTable,
    SetDeletionProtection,
    SetOnline,
    SetUnique,
    SplitPoints,
)

__all__ = [
    "AddColumn",
    "Change",
    "ChangeClusters",
    "ChangeColumnComputed",
    "ChangeColumnDefault",
    "ChangeColumnDescription",
    "ChangeColumnSensitive",
    "ChangeColumnSource",
    "ChangeDatasetServices",
    "ChangeDefaultBlueprint",
    "ChangeDescription",
    "ChangeEmbedding",
    "ChangeEngine",
    "ChangeHolds",
    "ChangeLeafLimit",
    "ChangeMaxStaleness",
    "ChangeNotify",
    "ChangeRegister",
    "ChangeRetainedChanges",
    "ChangeRetention",
    "ChangeRoot",
    "ChangeRowKeys",
    "ChangeServiceOptions",
    "ChangeSortKeys",
    "ChangeSources",
    "ChangeSplitPoints",
    "ChangeStateBackend",
    "ChangeStorage",
    "ChangeTags",
    "ChangeTrigger",
    "ChangeVersionsKept",
    "ChangeViewQuery",
    "ColumnChange",
    "ColumnPath",
    "Constraint",
    "ConvertColumn",
    "CreateDataset",
    "CreateIndex",
    "CreateInstance",
    "CreateSearchIndex",
    "CreateService",
    "CreateTable",
    "DatasetAlteration",
    "DatasetChange",
    "DeleteDataset",
    "DeleteInstance",
    "DeleteService",
    "DeleteTable",
    "DropColumn",
    "DropIndex",
    "DropSearchIndex",
    "IndexChange",
    "InstanceChange",
    "MoveServiceToCluster",
    "PropertyChange",
    "RebuildIndex",
    "RebuildSearchIndex",
    "RelaxNullability",
    "RenameColumn",
    "RenameIndex",
    "RenameTable",
    "ReorderColumns",
    "RewriteChange",
    "ServiceChange",
    "SetDeletionProtection",
    "SetOnline",
    "SetUnique",
    "SplitPoints",
    "TableAlteration",
    "TableChange",
    "TightenNullability",
    "WidenColumn",
]

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
RewriteChange = WidenColumn | ChangeRowKeys | ChangeSortKeys | ChangeSplitPoints | ChangeStorage | ChangeViewQuery
#: Constraints that are set after a table's rows have their new keys and leaves.
Constraint = SetUnique | ChangeLeafLimit | ChangeRetention | ChangeHolds | ChangeRetainedChanges
PropertyChange = (
    ChangeEmbedding | ChangeMaxStaleness | SetOnline | SetDeletionProtection | ChangeDescription | ChangeTags
)
#: Changes of a table that exists before and after.
TableAlteration = RenameTable | ColumnChange | RewriteChange | Constraint | IndexChange | ServiceChange | PropertyChange
TableChange = CreateTable | DeleteTable | TableAlteration
#: Changes of a dataset that exists before and after.
DatasetAlteration = (
    ChangeSources
    | ChangeRegister
    | ChangeVersionsKept
    | ChangeDatasetServices
    | ChangeDefaultBlueprint
    | CreateSearchIndex
    | DropSearchIndex
    | RebuildSearchIndex
    | SetDeletionProtection
    | ChangeDescription
)
DatasetChange = CreateDataset | DeleteDataset | DatasetAlteration
Change = InstanceChange | TableChange | DatasetChange
