"""A table's state at a version of its dataset for which the log has no separate record.

Commits by plain Lance are recorded when deployer opens the table next: several in a row become one record, of the
newest. The state at a version in between is the one recorded before it, with what that version of the dataset holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deployer.datasets.recovery.unrecorded import missing_updates
from deployer.errors import Corrupt
from deployer.platform.system.clock import Clock
from deployer.state.log.entries import LogEntry
from deployer.state.log.inapplicable import Inapplicable
from deployer.state.log.reducer import apply
from deployer.state.log.updates import TableUpdate
from deployer.state.model.entities import TableState

if TYPE_CHECKING:
    import lance


def state_at(dataset: lance.LanceDataset, recorded: TableState) -> TableState:
    """Returns the state at the opened version of the dataset; `recorded` is a state of this dataset, at that version or
    before it.

    Raises Corrupt when the state and the dataset do not fit each other.
    """
    if int(dataset.version) <= recorded.lance_version:
        return recorded
    return applied(recorded, missing_updates(dataset, recorded))


def applied(state: TableState, updates: Sequence[TableUpdate]) -> TableState:
    """Returns the state after updates that are not committed. Raises Corrupt for updates that do not fit it."""
    at = max(Clock().now(), state.at)
    entry = LogEntry(state.table_id, state.version + 1, "", at, "", tuple(updates))
    try:
        after = apply(state, entry)
    except Inapplicable as error:
        raise Corrupt(f"what the dataset has does not fit what was recorded: {error.what}") from None
    assert isinstance(after, TableState)  # noqa: S101 (updates of a table make no other)
    return after
