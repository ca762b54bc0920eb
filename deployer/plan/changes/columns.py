"""Changes of columns. `column` is the path of names from the table's top-level column to the nested field."""

from __future__ import annotations

from dataclasses import dataclass

from deployer.specs.types.computed import Computed
from deployer.specs.types.types import Column, ColumnType

ColumnPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A new column. `after` is the sibling before it in the spec, None for the first column."""

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
    """A rename. `column` is the former path, `after` the new last name."""

    kind = "RenameColumn"

    address: str
    column: ColumnPath
    after: str


@dataclass(frozen=True, slots=True)
class WidenColumn:
    """A wider type: every value of `before` is a value of `after`."""

    kind = "WidenColumn"

    address: str
    column: ColumnPath
    before: ColumnType
    after: ColumnType


@dataclass(frozen=True, slots=True)
class ConvertColumn:
    """A conversion: some values of `before` may have no value of `after`. `using` is the SQL expression of the new
    values."""

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
    """A new order. `before` and `after` are the common columns in order, in the struct `column` (empty: the table)."""

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
    """The SQL expression for loaded rows without the column; empty: the value is null."""

    kind = "ChangeColumnDefault"

    address: str
    column: ColumnPath
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ChangeColumnSource:
    """The name of the column in files; None: the column's own name."""

    kind = "ChangeColumnSource"

    address: str
    column: ColumnPath
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class ChangeColumnComputed:
    """The computation of the values; None: they are not computed. `before` has the names that its inputs get in the
    same plan."""

    kind = "ChangeColumnComputed"

    address: str
    column: ColumnPath
    before: Computed | None
    after: Computed | None


@dataclass(frozen=True, slots=True)
class ChangeColumnSensitive:
    """A flag: pages and reports hide the values."""

    kind = "ChangeColumnSensitive"

    address: str
    column: ColumnPath
    before: bool
    after: bool


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
    | ChangeColumnComputed
    | ChangeColumnSensitive
)
