"""What exists, in the models that the specs have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from deployer.specs.model import InstanceSpec, TableSpec


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
    """A table of the lake; `owner` is the `project/stack` that manages it, empty when nobody does."""

    spec: TableSpec
    table_id: str
    location: str
    owner: str
    statistics: TableStatistics = TableStatistics()


@dataclass(frozen=True, slots=True)
class LiveLake:
    """An instance and its tables by address; `instance` is None when there is none at this root.

    `owner` is the `project/stack` that manages the instance, empty when that is not known. `read`: it was read at the
    root that the specs declare, and not made of specs to compare with.
    """

    instance: InstanceSpec | None
    tables: Mapping[str, LiveTable] = field(default_factory=dict)
    owner: str = ""
    read: bool = False
