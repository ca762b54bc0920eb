"""Savepoints: a name for a table, or for many tables of an instance, as they are at one moment.

What a savepoint is of stays readable: the version of the dataset (`tables/collect/garbage.py`,
`tables/rewrite/cleanup.py`) and the table's state (`state/snapshots/retention.py`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from itertools import count
from typing import cast

from deployer.errors import Conflict, InvalidInput
from deployer.state.commits import Part
from deployer.state.log.service_updates import SavepointRemoved, SavepointsExpired, SavepointTaken
from deployer.state.model.entities import TableState
from deployer.state.model.names import is_savepoint_name
from deployer.state.model.services import Savepoint
from deployer.state.store import StateStore
from deployer.state.transactions.services import to_remove_savepoint, to_take_savepoint
from deployer.system.clock import Clock
from deployer.text.formatting import timestamp
from deployer.text.visible import shortened


def name_by_time(prefix: str, at: int, taken: Container[str]) -> str:
    """A name that says the moment `at` (ms) and is not taken: `auto-20300101T000000Z`, else with `-2` at its end."""
    stem = prefix + timestamp(at).replace("-", "").replace(":", "")
    names = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    return next(name for name in names if name not in taken)


def take_savepoint(
    store: StateStore,
    table_ids: Iterable[str],
    name: str,
    *,
    expires_at: int | None = None,
    note: str = "",
    author: str | None = None,
) -> Mapping[str, Savepoint]:
    """A savepoint of each table, all of one moment, by table id; of all or of none.

    Each is of the newest version of the dataset that the state has recorded, whatever is committed meanwhile. To
    include what only Lance has, open the tables first: that rolls them forward. DynamoDB allows at most 49 tables.
    Raises InvalidInput, and Conflict when a table has a savepoint of that name.
    """
    if not is_savepoint_name(name):
        raise InvalidInput(
            f"a savepoint cannot be called {name!r}",
            remedy="use letters, digits, '.', '_' and '-', at most 100, the first a letter or digit; no '..', and not "
            "'.' or '.lock' at the end",
        )
    update, requirements = SavepointTaken(name, expires_at, note), to_take_savepoint(name)
    parts = [Part(table_id, [update], requirements) for table_id in sorted(set(table_ids))]
    states = store.commit_all(parts, author=author)
    return {table_id: cast(TableState, state).savepoints[name] for table_id, state in states.items()}


def remove_savepoint(store: StateStore, table_ids: Iterable[str], name: str, *, author: str | None = None) -> None:
    """Removes the savepoint of that name from all the tables or from none. Raises Conflict when one has none."""
    if not is_savepoint_name(name):
        raise Conflict(f"there is no savepoint {shortened(name)}", remedy="`deployer savepoint list` names them")
    requirements = to_remove_savepoint(name)
    parts = [Part(table_id, [SavepointRemoved(name)], requirements) for table_id in sorted(set(table_ids))]
    store.commit_all(parts, author=author)


def expire_savepoints(store: StateStore, table_id: str, now: int | None = None) -> list[Savepoint]:
    """Removes the table's savepoints whose time is over at `now` (ms); gives them."""
    at = Clock().now() if now is None else now
    over = [
        each
        for each in store.table(table_id).savepoints.values()
        if each.expires_at is not None and each.expires_at <= at
    ]
    if over:
        store.commit(table_id, [SavepointsExpired(at)])
    return over
