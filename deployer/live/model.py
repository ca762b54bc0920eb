"""What exists, in the models that the specs have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from deployer.live.former import FormerDataset
from deployer.specs.model import InstanceSpec, TableSpec
from deployer.state.model import TableEntry


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """Sizes of a live table: rows and bytes of the files that its newest version has."""

    rows: int = 0
    bytes: int = 0
    files: int = 0
    leaves: int = 1
    lance_version: int = 0
    state_version: int = 0
    generation: int = 1
    known: bool = True  #: False when specs are compared with specs: then there are no sizes to tell


@dataclass(frozen=True, slots=True)
class LiveTable:
    """A table of the lake; `owner` is the `project/stack` that manages it, empty when nobody does.

    `former` are its datasets beside the current one, which are removed some day. `recorded`: its log has all that its
    dataset has. Else it is as it would be recorded.
    """

    spec: TableSpec
    table_id: str
    location: str
    owner: str
    statistics: TableStatistics = TableStatistics()
    former: tuple[FormerDataset, ...] = ()
    recorded: bool = True


@dataclass(frozen=True, slots=True)
class UnfinishedTable:
    """A table whose creation or deletion was cut off. `owner` is empty when its log is not there any more, or yet.

    `rows` are those that its log tells, None without one; `former` its datasets beside the current one.
    """

    entry: TableEntry
    owner: str = ""
    rows: int | None = None
    protected: bool = True
    former: tuple[FormerDataset, ...] = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A table of the lake that is there and cannot be read: its log, its dataset or what they say is damaged, or may
    not be read. Nothing is known of it but its name, and no command changes it.

    `what` says what is wrong, with the place; `remedy` what to do.
    """

    address: str
    table_id: str
    what: str
    remedy: str = ""

    @property
    def name(self) -> str:
        """`database.name`."""
        return self.address.partition("/")[2]

    @property
    def why(self) -> str:
        """What is wrong and what to do, in one line."""
        return f"{self.what}; {self.remedy}" if self.remedy else self.what


@dataclass(frozen=True, slots=True)
class LiveLake:
    """An instance and its tables by address; `instance` is None when there is none at this root.

    `unreadable` are tables, by address too, that are there and not known otherwise: they are not missing. `owner` is
    the `project/stack` that manages the instance, empty when that is not known. `read`: it was read at the root that
    the specs declare, and not made of specs to compare with. `unfinished` are tables that are being created or deleted,
    which `tables` has not.
    """

    instance: InstanceSpec | None
    tables: Mapping[str, LiveTable] = field(default_factory=dict)
    owner: str = ""
    read: bool = False
    unfinished: tuple[UnfinishedTable, ...] = ()
    unreadable: Mapping[str, Unreadable] = field(default_factory=dict)

    def unreadable_of(self, spec: TableSpec) -> Unreadable | None:
        """The table that `spec` declares, by its name or the name that it had, where that cannot be read."""
        if spec.address in self.tables:
            return None
        return self.unreadable.get(spec.address) or self.unreadable.get(f"table/{spec.former_name}")

    def without(self, table: Unreadable) -> LiveLake:
        """The lake when it is found only now that one of its tables cannot be read."""
        tables = {address: each for address, each in self.tables.items() if each.table_id != table.table_id}
        return replace(self, tables=tables, unreadable={**self.unreadable, table.address: table})
