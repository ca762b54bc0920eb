"""The changes of a transaction to the catalog's records as a whole: a savepoint of them, and a return to one."""

from __future__ import annotations

from dataclasses import dataclass, field

from deployer.state.model.names import SavepointName
from deployer.state.model.times import TIME


@dataclass(frozen=True, slots=True)
class CatalogSavepointTaken:
    """A savepoint of the catalog's records as they are when this is committed, whatever came before."""

    TAG = "catalog-savepoint-taken"

    name: SavepointName
    expires_at: int | None = field(default=None, metadata=TIME)
    note: str = ""


@dataclass(frozen=True, slots=True)
class CatalogRestored:
    """The catalog's records are those of the savepoint of that name.

    A record whose name a table of the instance has got since is left out, and is still in the savepoint.
    """

    TAG = "catalog-restored"

    name: SavepointName


CatalogUpdate = CatalogSavepointTaken | CatalogRestored
