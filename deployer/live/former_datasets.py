"""Datasets of a table beside its current one: replaced ones, which are kept for a time, and those of unfinished
rewrites."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, cast

from deployer.platform.text.units import parse_duration
from deployer.specs.serialized.retention import retained_changes_from_json
from deployer.specs.serialized.specs import storage_from_json
from deployer.state.model.declared_properties import RETAIN_CHANGES
from deployer.state.model.entities import TableState
from deployer.state.model.location import Location


@dataclass(frozen=True, slots=True)
class FormerDataset:
    """One such dataset.

    A retired dataset is kept until `kept_until` (ms), and as long as it has a savepoint. `lance_version` is its last
    recorded version. `savepoints` are its savepoints: name and expiry.
    """

    number: int
    location: Location
    status: Literal["retired", "writing"]
    since: int
    lance_version: int
    kept_until: int
    savepoints: tuple[tuple[str, int | None], ...] = ()

    def needed_at(self, at: int) -> tuple[str, ...]:
        """Returns the names of savepoints that need it at that time (ms)."""
        return tuple(name for name, expires_at in self.savepoints if expires_at is None or expires_at > at)


def former_datasets(state: TableState) -> tuple[FormerDataset, ...]:
    """Returns the table's former datasets. Raises InvalidInput when its `keep_replaced_for` or `retain_changes` is not
    a valid duration."""
    found = [each for each in state.datasets if each.status in ("retired", "writing")]
    return tuple(
        FormerDataset(
            each.number,
            each.location,
            cast(Literal["retired", "writing"], each.status),
            each.since,
            each.lance_version,
            each.since + kept_ms(state) if each.status == "retired" else each.since,
            tuple(
                sorted((one.name, one.expires_at) for one in state.savepoints.values() if one.dataset == each.number)
            ),
        )
        for each in found
    )


def kept_ms(state: TableState) -> int:
    """Returns how long a table's retired datasets are kept, in milliseconds, because the change feed may read them."""
    kept_for = parse_duration(storage_from_json(state.properties.storage).keep_replaced_for)
    changes = retained_changes_from_json(state.properties.declared.get(RETAIN_CHANGES))
    longest = kept_for if changes is None else max(kept_for, parse_duration(changes))
    return longest // timedelta(milliseconds=1)
