"""`table gc`: what no version needs goes, what one needs or what is young stays, and a crash leaves nothing wrong."""

from __future__ import annotations

import datetime as dt
import os
import signal
import time
from pathlib import Path
from typing import Any

import lance
import pytest

from deployer.datasets.dataset import open_dataset
from deployer.errors import Refused
from deployer.services.savepoints.savepoints import remove_savepoint, take_savepoint
from deployer.state.log.updates import CommitStarted
from deployer.tables.admin.deletion import delete_counted
from deployer.tables.evolution.rewrite.truncate import reinitialise_table
from deployer.tables.maintenance.collect import versions as collect_versions
from deployer.tables.maintenance.collect.garbage import GarbageReport, collect_garbage
from tests.tables.administered import start
from tests.tables.lakes import Lake, flights, sorted_rows

HOUR, WEEK = dt.timedelta(hours=1), dt.timedelta(days=7)


def table_id(lake: Lake) -> str:
    return lake.open().opened.entry.table_id


def collect(lake: Lake, **options: Any) -> GarbageReport:
    return collect_garbage(lake.store, lake.root, table_id(lake), **{"grace": HOUR, **options})


def stray(lake: Lake, path: str, hours: float) -> Path:
    """A file that no version has, of that age."""
    file = Path(lake.open().opened.location) / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x" * 100)
    aged(file, hours)
    return file


def aged(file: Path, hours: float) -> None:
    then = time.time() - 3600 * hours
    os.utime(file, (then, then))


def age_all(lake: Lake, hours: float) -> None:
    for path in Path(lake.open().opened.location).rglob("*"):
        if path.is_file():
            aged(path, hours)


CASES: dict[str, tuple[str, float, bool]] = {  # path, hours of age, whether it goes
    "a data file": ("data/stray.lance", 2, True),
    "a young data file": ("data/stray.lance", 0.5, False),
    "blobs of a data file": ("data/stray/1.blob", 2, True),
    "a deletion file": ("_deletions/0-9-1.arrow", 2, True),
    "an index": ("_indices/6e4c6f9f-0000-4000-8000-000000000000/index.idx", 2, True),
    "a young index": ("_indices/6e4c6f9f-0000-4000-8000-000000000000/index.idx", 0.5, False),
    "notes of others": ("notes.txt", 99, False),
    "a transaction": ("_transactions/9-x.txn", 99, False),
}


@pytest.mark.parametrize("case", CASES)
def test_only_what_no_version_has_and_is_old_goes(case: str, lake: Lake) -> None:
    path, hours, goes = CASES[case]
    lake.table()
    lake.ingest(lake.file(flights(50)))
    age_all(lake, 1000)
    file = stray(lake, path, hours)
    tried = collect(lake, dry_run=True)
    assert file.exists()
    done = collect(lake)
    assert file.exists() != goes
    assert (done.files, done.bytes) == ((1, 100) if goes else (0, 0)) == (tried.files, tried.bytes)
    assert done.young == (hours < 1)
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(50))
    assert collect(lake).files == 0


def test_every_version_and_tag_can_be_read_afterwards(lake: Lake) -> None:
    table = lake.table()
    for i in range(3):
        lake.ingest(lake.file(flights(20, 20 * i)))
    dataset = lance.dataset(table.opened.location)
    dataset.create_scalar_index("delay", "BTREE")
    dataset.delete("carrier = 'AA'")
    dataset.optimize.compact_files()
    dataset.tags.create("before", 2)
    dataset.delete("carrier = 'UA'")
    dataset.update({"delay": "1"}, where="carrier = 'DL'")
    dataset.drop_index("delay_idx")
    rows = {v["version"]: dataset.checkout_version(v["version"]).to_table() for v in dataset.versions()}
    age_all(lake, 1000)
    strays = [stray(lake, f"data/{i}.lance", 5) for i in range(3)]
    assert collect(lake).files == 3 and not any(file.exists() for file in strays)
    again = lance.dataset(table.opened.location)
    for version, before in rows.items():
        assert again.checkout_version(version).to_table() == before
    again.validate()


def test_versions_go_only_when_asked_for_and_tags_stay(lake: Lake) -> None:
    table = lake.table()
    for i in range(3):
        lake.ingest(lake.file(flights(20, 20 * i)))
    dataset = lance.dataset(table.opened.location)
    dataset.tags.create("kept", 2)
    assert collect(lake, versions_older_than=WEEK).versions == 0
    zero = dt.timedelta()
    assert collect(lake, grace=zero, versions_older_than=zero, dry_run=True).versions == 2
    assert collect(lake, grace=zero, versions_older_than=zero).versions == 2
    assert [v["version"] for v in lance.dataset(table.opened.location).versions()] == [2, 4]
    assert lake.open().count() == 60
    lake.ingest(lake.file(flights(5, 60)))
    assert lake.open().count() == 65
    with pytest.raises(Refused, match="grace period"):
        collect(lake, versions_older_than=zero)


def test_the_version_of_a_savepoint_stays_until_its_time_is_over(lake: Lake) -> None:
    table = lake.table()
    for i in range(4):
        lake.ingest(lake.file(flights(20, 20 * i)))
        if i in (0, 2):
            take_savepoint(lake.store, [table_id(lake)], f"after-{i}", expires_at=2_000_000_000_000 if i else None)
    everything, after = {"grace": dt.timedelta(), "versions_older_than": dt.timedelta()}, 2_000_000_000

    def kept() -> list[int]:
        return [each["version"] for each in lance.dataset(table.opened.location).versions()]

    assert collect(lake, **everything, dry_run=True).versions == 2 == collect(lake, **everything).versions
    assert kept() == [2, 4, 5] and lance.dataset(table.opened.location, version=2).count_rows() == 20
    for dry_run in (True, False):
        done = collect(lake, **everything, now=after, dry_run=dry_run)
        assert (done.savepoints, done.versions) == (("after-2",), 1)
    assert kept() == [2, 5]
    remove_savepoint(lake.store, [table_id(lake)], "after-0")
    assert collect(lake, **everything).savepoints == () and kept() == [5] and lake.open().count() == 80


def test_a_savepoint_that_is_taken_while_garbage_is_collected_keeps_its_version(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.table()
    lake.ingest(lake.file(flights(20)))
    opened = open_dataset

    def later(location: str, version: int | None = None) -> lance.LanceDataset:
        if not lake.store.table(table_id(lake)).savepoints:
            take_savepoint(lake.store, [table_id(lake)], "late")
            lake.ingest(lake.file(flights(20, 20)))
        return opened(location, version)

    monkeypatch.setattr(collect_versions, "open_dataset", later)
    zero = dt.timedelta()
    assert collect(lake, grace=zero, versions_older_than=zero).versions == 1
    assert [v["version"] for v in lance.dataset(table.opened.location).versions()] == [2, 3]


def test_the_replaced_dataset_of_a_savepoint_stays(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(10)))
    old = Path(lake.open().opened.location)
    take_savepoint(lake.store, [table_id(lake)], "full")
    reinitialise_table(lake.store, lake.root, table_id(lake), allow_destroy=True)
    later = time.time() + 8 * 86_400
    for dry_run in (True, False):
        found = collect(lake, now=later, dry_run=dry_run)
        assert found.datasets == () and "savepoints need it: full" in found.kept[0] and found.bytes == 0
    assert old.exists()
    remove_savepoint(lake.store, [table_id(lake)], "full")
    assert len(collect(lake, now=later).datasets) == 1 and not old.exists()


def test_commits_that_were_never_made_are_given_up_once_they_are_old(lake: Lake) -> None:
    lake.table()
    lake.store.commit(table_id(lake), [CommitStarted("lost", "ingest", 1)])
    assert collect(lake).jobs == ()
    later = time.time() + 2 * 3600
    assert collect(lake, now=later, dry_run=True).jobs == ("lost",) == collect(lake, now=later).jobs
    assert dict(lake.open().opened.state.intents) == {} and collect(lake, now=later).jobs == ()


def test_replaced_datasets_go_when_their_time_is_over(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(10)))
    old = Path(lake.open().opened.location)
    reinitialise_table(lake.store, lake.root, table_id(lake), allow_destroy=True)
    assert collect(lake, now=time.time() + 6 * 86_400).datasets == () and old.exists()
    later = time.time() + 8 * 86_400
    tried, done = collect(lake, now=later, dry_run=True), collect(lake, now=later)
    assert tried.bytes == done.bytes > 0 and len(done.datasets) == 1 and not old.exists()
    assert lake.open().count() == 0


def test_a_table_with_branches_is_left_to_lance(lake: Lake) -> None:
    table = lake.table()
    lance.dataset(table.opened.location).create_branch("side")
    file = stray(lake, "data/stray.lance", 1000)
    assert "branches" in collect(lake).why_not and file.exists()


def test_a_load_whose_files_were_collected_is_told_so(lake: Lake) -> None:
    """It stops between its files and its commit for longer than the grace period."""
    from deployer.datasets.files.writer import write_sorted
    from deployer.errors import Conflict
    from deployer.tables.ingest.commit.append import commit_append

    table = lake.table()
    rows = flights(5).cast(table.opened.schema)
    written = write_sorted(table.opened.layout(), rows, None)
    age_all(lake, 1000)
    assert collect(lake).files == 1
    with pytest.raises(Conflict, match="removed before its commit"):
        commit_append(lake.store, lake.root, table.opened.entry, "j", "ingest", written, table.opened.state.schema)
    assert lake.open().count() == 0 and dict(lake.open().opened.state.intents) == {}


@pytest.mark.parametrize("point", ["tables.collect.removed@2", "tables.collect.abandoned", "tables.collect.versions"])
def test_a_killed_collection_goes_on(point: str, lake: Lake) -> None:
    table = lake.table()
    lake.ingest(lake.file(flights(30)))
    strays = [stray(lake, f"data/{i}.lance", 5) for i in range(4)]
    lake.store.commit(table_id(lake), [CommitStarted("lost", "ingest", 1)])
    worker = start(lake, table_id(lake), "collect", failpoint=point)
    if point.startswith("tables.collect.removed"):
        assert worker.wait(300) == -signal.SIGKILL
        assert 0 < sum(file.exists() for file in strays) < 4
    else:
        assert worker.wait(300) in (0, -signal.SIGKILL)
    collect(lake)
    assert not any(file.exists() for file in strays)
    lance.dataset(table.opened.location).validate()
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(30))


def test_loads_and_collections_at_once_lose_nothing(lake: Lake) -> None:
    lake.table()
    files = [str(lake.file(flights(20, 20 * i))) for i in range(6)]
    workers = [start(lake, table_id(lake), "load", *files)]
    workers += [start(lake, table_id(lake), "collect") for _ in range(2)]
    assert [worker.wait(300) for worker in workers] == [0, 0, 0]
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(120))


@pytest.mark.parametrize("point", ["tables.delete.marked", "tables.delete.removed", "tables.delete.forgotten", "none"])
def test_deleting_says_how_much_and_can_be_repeated(point: str, lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(50)))
    reinitialise_table(lake.store, lake.root, table_id(lake), allow_destroy=True)
    lake.ingest(lake.file(flights(20)))
    entry = lake.open().opened.entry
    if point != "none":
        assert start(lake, entry.table_id, "delete", failpoint=point).wait(300) == -signal.SIGKILL
        left = lake.store.instance().tables[entry.table_id]
        assert left.status == "deleting"
        delete_counted(lake.store, lake.root, left, allow_destroy=True)
    else:
        deleted = delete_counted(lake.store, lake.root, entry, allow_destroy=True)
        assert (deleted.table, deleted.rows) == ("air.flights", 20) and deleted.files > 4 and deleted.bytes > 1000
    assert dict(lake.store.instance().tables) == {} and list((Path(lake.root) / "air").iterdir()) == []
    lake.table()
    assert lake.open().count() == 0


def test_a_protected_table_is_kept(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(5)))
    with pytest.raises(Refused, match="protected"):
        delete_counted(lake.store, lake.root, lake.open().opened.entry, allow_destroy=False)
    assert lake.open().count() == 5
