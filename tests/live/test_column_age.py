"""Since when a table has a column: told from the log of its changes, followed through renames."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

import pytest

from deployer.live.column_age import Since, column_since
from deployer.platform.system.clock import Clock
from deployer.specs.types.arrow import arrow_schema
from deployer.specs.types.types import Column, Scalar, Struct
from deployer.state.log.updates import CreateTable, RegisterTable, SetSchema, SetTableProperties, TableUpdate
from deployer.state.model.entities import INSTANCE_LOG, TableProperties
from deployer.state.snapshots.retention import SnapshotPolicy
from deployer.state.store import StateStore
from tests.state.samples import NEVER, TABLE, entry, store_at

FIRST = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
INT = Scalar("int32")


@dataclass
class Days:
    """A clock that stands still until the test turns it on."""

    day: int = 0

    def now(self) -> int:
        return int((FIRST + dt.timedelta(days=self.day)).timestamp() * 1000)


def schema(*names: str | Column) -> bytes:
    columns = tuple(Column(name, INT) if isinstance(name, str) else name for name in names)
    return bytes(arrow_schema(columns).serialize())


def struct(name: str, *fields: str) -> Column:
    return Column(name, Struct(tuple(Column(field, INT) for field in fields)))


def history(root: Path, *states: bytes, policy: SnapshotPolicy = NEVER) -> StateStore:
    """A table that got one of these schemas each day; the first of them when it was created."""
    days = Days()
    store = store_at(root, Clock(now=days.now), policy)
    store.commit(INSTANCE_LOG, [RegisterTable(entry())])
    for number, state in enumerate(states):
        days.day = number
        update: TableUpdate = SetSchema(state, number + 1) if number else CreateTable(TableProperties(), state, 1)
        store.commit(TABLE, [update])
    return store


# name: (schemas by day, path, the day since which it is there)
CASES: dict[str, tuple[list[bytes], tuple[str, ...], int | None]] = {
    "created": ([schema("a", "b"), schema("a", "b", "c")], ("a",), 0),
    "added": ([schema("a"), schema("a", "b"), schema("a", "b", "c")], ("b",), 1),
    "added_between": ([schema("a", "c"), schema("a", "b", "c")], ("b",), 1),
    "renamed": ([schema("a", "b"), schema("a", "c"), schema("a", "c", "d")], ("c",), 0),
    "renamed_twice": ([schema("a"), schema("a", "b"), schema("a", "c"), schema("a", "d")], ("d",), 1),
    "reordered": ([schema("a", "b"), schema("b", "a")], ("a",), 0),
    "renamed_after_reordering": ([schema("a", "b"), schema("b", "a"), schema("b", "c")], ("c",), 0),
    "dropped_and_added_again": ([schema("a", "b"), schema("a"), schema("a", "b")], ("b",), 2),
    "another_dropped": ([schema("a", "b"), schema("b")], ("b",), 0),
    "dropped_while_another_was_added": ([schema("a", "b"), schema("a", "x", "y")], ("y",), 1),
    "another_type": ([schema("a", struct("b", "c")), schema("a", "b")], ("b",), 0),
    "field": ([schema(struct("s", "a")), schema(struct("s", "a", "b"))], ("s", "b"), 1),
    "field_of_a_renamed_column": ([schema(struct("s", "a")), schema(struct("t", "a"))], ("t", "a"), 0),
    "renamed_field": ([schema(struct("s", "a", "b")), schema(struct("s", "a", "c"))], ("s", "c"), 0),
    "field_of_a_new_column": ([schema("a"), schema("a", struct("s", "b"))], ("s", "b"), 1),
    "not_there": ([schema("a")], ("b",), None),
    "not_there_any_more": ([schema("a", "b"), schema("a")], ("b",), None),
    "no_field": ([schema("a")], ("a", "b"), None),
}


@pytest.mark.parametrize("name", CASES)
def test_a_column_is_there_since_the_commit_that_added_it(name: str, tmp_path: Path) -> None:
    states, path, day = CASES[name]
    since = column_since(history(tmp_path, *states), TABLE, path)
    assert since == (None if day is None else Since(FIRST + dt.timedelta(days=day)))


def test_a_log_that_is_not_kept_whole_gives_a_bound(tmp_path: Path) -> None:
    history(tmp_path, schema("a"), schema("a", "b")).close()
    days = Days()
    store = store_at(tmp_path, Clock(now=days.now), SnapshotPolicy(entries=5, keep=1, keep_for=0))
    for days.day in range(2, 32):
        store.commit(TABLE, [SetTableProperties({"description": str(days.day)})])
    store.commit(TABLE, [SetSchema(schema("a", "b", "c"), 3)])
    [first] = store.log(TABLE, limit=1)
    assert first.version > 2  # what added `b` is not told any more
    kept_since = dt.datetime.fromtimestamp(first.at / 1000, dt.UTC)
    assert column_since(store, TABLE, ("b",)) == Since(kept_since, at_least=True)
    assert column_since(store, TABLE, ("c",)) == Since(FIRST + dt.timedelta(days=31))
