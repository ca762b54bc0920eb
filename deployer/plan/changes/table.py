"""Changes of a table, its keys, storage and properties. Instances have descriptions and tags too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from deployer.specs.model import Embedding, Hold, KeyValue, Retention, Storage, TableSpec
from deployer.specs.types.types import Column
from deployer.specs.types.view import ViewSpec

SplitPoints = tuple[tuple[KeyValue, ...], ...]


@dataclass(frozen=True, slots=True)
class CreateTable:
    kind = "CreateTable"
    address: str
    spec: TableSpec


@dataclass(frozen=True, slots=True)
class DeleteTable:
    """A deletion. `name` is the table's `database.name` where it differs from its address, as after a rename by
    hand."""

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
class ChangeRowKeys:
    """New row keys. `unique`: two rows may not have the same new keys, which the old keys do not guarantee."""

    kind = "ChangeRowKeys"

    address: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    unique: bool = False


@dataclass(frozen=True, slots=True)
class SetUnique:
    """A flag: two rows may not have the same row keys; `keys` are the keys where the flag is set."""

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
    keys: tuple[Column, ...] = ()  #: names and types of the row keys whose values are in split points


@dataclass(frozen=True, slots=True)
class ChangeLeafLimit:
    """The number of rows that a leaf may hold before it is split after a load; None: no limit."""

    kind = "ChangeLeafLimit"

    address: str
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class ChangeEmbedding:
    """The function that makes vectors of texts; None: no function."""

    kind = "ChangeEmbedding"

    address: str
    before: Embedding | None
    after: Embedding | None


@dataclass(frozen=True, slots=True)
class ChangeRetention:
    """The time for which rows are kept; None: forever. `before` has the column's name after a rename."""

    kind = "ChangeRetention"

    address: str
    before: Retention | None
    after: Retention | None


@dataclass(frozen=True, slots=True)
class ChangeRetainedChanges:
    """The time for which the change feed can be read; None: as long as CLEAN keeps versions."""

    kind = "ChangeRetainedChanges"

    address: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class ChangeHolds:
    """The legal holds on rows of a table, by name."""

    kind = "ChangeHolds"

    address: str
    before: tuple[Hold, ...]
    after: tuple[Hold, ...]


@dataclass(frozen=True, slots=True)
class ChangeViewQuery:
    """The definition of a view's rows; None: the rows are loaded, as for a table."""

    kind = "ChangeViewQuery"

    address: str
    before: ViewSpec | None
    after: ViewSpec | None


@dataclass(frozen=True, slots=True)
class ChangeMaxStaleness:
    """The largest delay of a view, in milliseconds; None: no limit."""

    kind = "ChangeMaxStaleness"

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
    """The description of a table, a dataset or an instance."""

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
