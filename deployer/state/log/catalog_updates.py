"""The changes of a transaction to all records of the catalog: taking a savepoint of them, and restoring a savepoint."""

from __future__ import annotations

from dataclasses import dataclass, field

from deployer.state.model.names import SavepointName
from deployer.state.model.times import TIME


@dataclass(frozen=True, slots=True)
class CatalogSavepointTaken:
    """Takes a savepoint of the catalog's records as they are at this commit, including all earlier commits."""

    TAG = "catalog-savepoint-taken"

    name: SavepointName
    expires_at: int | None = field(default=None, metadata=TIME)
    note: str = ""


@dataclass(frozen=True, slots=True)
class CatalogRestored:
    """Replaces the catalog's records by those of the savepoint `name`.

    A record is left out if a table of the instance has its name by then. The savepoint still has the record.
    """

    TAG = "catalog-restored"

    name: SavepointName


CatalogUpdate = CatalogSavepointTaken | CatalogRestored
