"""Data on storage that `up` removes in addition to the changes of resources. `up` removes only data that the plan
shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from deployer.platform.text.formatting import count, size

if TYPE_CHECKING:
    pass

# : `replaced`: a rewrite or a truncation replaced it; `unfinished`: an interrupted rewrite; `deleted`: of a table :
# that is deleted; `creating`, `deleting`: of a table whose creation or deletion was interrupted.
RemovalKind = Literal["replaced", "unfinished", "deleted", "creating", "deleting"]


@dataclass(frozen=True, slots=True)
class Removal:
    """A dataset to remove: the address of its table, its place below the root, and the reason.

    `rows` is None where it is unknown. `refused` is the reason why `up` cannot remove it, and so refuses the plan.
    """

    address: str
    table_id: str
    number: int
    location: str
    kind: RemovalKind
    why: str
    rows: int | None
    bytes: int
    refused: str | None = None

    @property
    def name(self) -> tuple[str, int]:
        """The key by which the removal is compared."""
        return self.table_id, self.number


def describe_removal(removal: Removal) -> str:
    """Returns `nyc/flights-0a1b2c3d.lance (336,776 rows, 11.8 MiB): replaced on 2030-01-31 and kept until
    2030-02-07`."""
    rows = f"{count(removal.rows, 'row')}, " if removal.rows is not None else ""
    return f"{removal.location} ({rows}{size(removal.bytes)}): {removal.why}"


def removal_as_json(removal: Removal) -> dict[str, Any]:
    """Returns a removal, as a part of the plan's document."""
    return {
        "address": removal.address,
        "table_id": removal.table_id,
        "dataset": removal.number,
        "location": removal.location,
        "kind": removal.kind,
        "why": removal.why,
        "rows": removal.rows,
        "bytes": removal.bytes,
        "refused": removal.refused,
    }


def saved_names(document: Any) -> frozenset[tuple[str, int]]:
    """Returns the removals of a saved plan's document, by table id and number; entries in another form are ignored."""
    found = document.get("removals") if isinstance(document, Mapping) else None
    named = (
        (each.get("table_id"), each.get("dataset"))
        for each in (found if isinstance(found, list) else ())
        if isinstance(each, Mapping)
    )
    return frozenset((id, number) for id, number in named if isinstance(id, str) and isinstance(number, int))
