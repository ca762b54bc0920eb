"""Savepoints: of one moment across tables, and all that they are of stays."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deployer.errors import Conflict, InvalidInput
from deployer.platform.system.clock import Clock
from deployer.services.savepoints.savepoints import expire_savepoints, remove_savepoint, take_savepoint
from deployer.state.model.services import Savepoint
from deployer.state.snapshots.retention import SnapshotPolicy
from deployer.state.store import StateStore
from tests.state.samples import TABLE, added, creation, snapshot_versions, store_at

OTHER = "b" * 32


@pytest.fixture
def store(root: str) -> Iterator[StateStore]:
    store = store_at(root, Clock(now=lambda: 5_000))
    for table in (TABLE, OTHER):
        store.commit(table, [creation()])
    store.commit(TABLE, [added(1)])
    yield store
    store.close()


def test_one_of_several_tables_is_of_one_moment(store: StateStore) -> None:
    taken = take_savepoint(store, [TABLE, OTHER], "before-2026", expires_at=9_000, note="why", author="ann")
    assert taken == {
        TABLE: Savepoint("before-2026", 3, 1, 3, 5_000, 9_000, "ann", "why"),
        OTHER: Savepoint("before-2026", 1, 1, 2, 5_000, 9_000, "ann", "why"),
    }
    assert len({store.log(table)[-1].txn_id for table in taken}) == 1
    store.commit(TABLE, [added(2)])
    for table, savepoint in taken.items():
        then = store.table(table, at=savepoint.state_version)
        assert (then.lance_version, then.dataset) == (savepoint.lance_version, savepoint.dataset)


def test_one_is_of_the_table_as_it_is_when_it_is_committed(root: str, store: StateStore) -> None:
    """An append that comes between the read and the commit is in the savepoint, and is no conflict."""
    other = store_at(root)
    other.tables([TABLE, OTHER])
    store.commit(TABLE, [added(2)])
    assert take_savepoint(other, [TABLE], "one")[TABLE].lance_version == 4
    other.close()


def test_a_name_is_given_once_and_to_all_tables_or_none(store: StateStore) -> None:
    take_savepoint(store, [OTHER], "one")
    with pytest.raises(Conflict, match="the table has a savepoint one already"):
        take_savepoint(store, [TABLE, OTHER], "one")
    assert not store.table(TABLE).savepoints
    with pytest.raises(Conflict, match="the table has no savepoint one"):
        remove_savepoint(store, [TABLE, OTHER], "one")
    assert list(store.table(OTHER).savepoints) == ["one"]
    remove_savepoint(store, [OTHER], "one")
    assert not store.table(OTHER).savepoints


@pytest.mark.parametrize("name", ["", "a/b", "..", "a..b", ".hidden", "a b", "x" * 101, "Ä", "a\n", "a.", "a.lock"])
def test_a_name_that_would_be_none_of_a_tag_is_refused(store: StateStore, name: str) -> None:
    with pytest.raises(InvalidInput, match="a savepoint cannot be called"):
        take_savepoint(store, [TABLE], name)


def test_those_whose_time_is_over_are_removed(store: StateStore) -> None:
    for name, until in (("early", 6_000), ("late", 7_000), ("always", None)):
        take_savepoint(store, [TABLE], name, expires_at=until)
    assert expire_savepoints(store, TABLE, 5_999) == []
    assert [each.name for each in expire_savepoints(store, TABLE, 6_000)] == ["early"]
    assert sorted(store.table(TABLE).savepoints) == ["always", "late"]


def test_the_state_that_one_is_of_is_kept_while_it_is_there(root: str, store: StateStore) -> None:
    strict = store_at(root, policy=SnapshotPolicy(entries=10, keep=1, keep_for=0))
    for number in range(10, 24):
        strict.commit(TABLE, [added(number)])
    then = strict.table(TABLE)
    savepoint = take_savepoint(strict, [TABLE], "kept")[TABLE]
    for number in range(30, 60):
        strict.commit(TABLE, [added(number)])
    held = store_at(root).table(TABLE, at=savepoint.state_version)
    assert (held.files, held.lance_version) == (then.files, savepoint.lance_version)
    assert snapshot_versions(root)[0] <= savepoint.state_version < snapshot_versions(root)[1]
    remove_savepoint(strict, [TABLE], "kept")
    strict.remove_old(TABLE)
    assert len(snapshot_versions(root)) == 1
    strict.close()


def test_one_that_is_taken_while_old_state_is_removed_keeps_its_own(root: str, store: StateStore) -> None:
    """Who removes knows of no savepoint; one is taken, and newer snapshots, before it looks which there are."""
    remover = store_at(root, policy=SnapshotPolicy(entries=1_000_000, keep=1, keep_for=0))
    remover.table(TABLE)
    listed = remover._retention._backend.snapshots

    def with_more(log: str) -> object:
        if "late" not in store.table(TABLE).savepoints:
            store.snapshot(TABLE)
            take_savepoint(store, [TABLE], "late")
            for number in range(100, 103):
                store.commit(TABLE, [added(number)])
                store.snapshot(TABLE)
        return listed(log)

    remover._retention._backend.snapshots = with_more  # type: ignore[method-assign,assignment]
    remover.remove_old(TABLE)
    savepoint = store.table(TABLE).savepoints["late"]
    assert store_at(root).table(TABLE, at=savepoint.state_version).lance_version == savepoint.lance_version
    remover.close()
