"""A restore of several tables killed between two side effects: all tables are restored, or none is."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import lance
import pytest

from deployer.datasets.storage.options import storage_options
from deployer.services.savepoints.savepoints import make_savepoint
from deployer.state import open_reader
from deployer.tables.evolution.rewrite.truncate import reinitialise_table
from deployer.tables.maintenance.verify.verify import verify
from deployer.tables.open_table import open_to_change, read_entry
from deployer.tables.read.table import open_table
from tests import forks
from tests.tables.lakes import Lake, flights, sorted_rows

WORKER = str(Path(__file__).with_name("restore_worker.py"))
DEPLOYER = Path(__file__).resolve().parents[2]
NAMES = ("first", "second", REWRITTEN := "third")
#: Each point, and whether the tables are restored after it, once somebody opens one of them.
POINTS = {
    "services.savepoint.tagged@2": False,
    "services.restore.before-intent": False,
    "services.restore.before-lance": False,
    "services.restore.after-lance@1": False,
    "services.restore.after-lance@2": False,
    "services.restore.after-lance@3": True,
    "services.restore.after-state": True,
}
#: Those at which the next process, which settles what is left, is killed too.
SETTLING = ("live.restore.given-up@1", "live.restore.taken-back@1", "live.restore.taken-back@2")


def make_lake(folder: Path, root: str | None = None, names: Sequence[str] = NAMES) -> str:
    """Tables of 20 rows at savepoint `then`, and of 30 now; the last was emptied in between. Gives the root."""
    lake = Lake(folder, root)
    for name in names:
        lake.table(name=name)
        lake.ingest(lake.file(flights(20)), table=name, job_id="first")
    entries = [lake.open(name).opened.entry for name in names]
    make_savepoint(lake.store, lake.root, entries, "then")
    reinitialise_table(lake.store, lake.root, entries[-1].table_id, allow_destroy=True)
    lake.ingest(lake.file(flights(30)), table=REWRITTEN, job_id="second")
    for name in names[:-1]:
        lake.ingest(lake.file(flights(10, 20)), table=name, job_id="second")
    lake.store.close()
    return lake.root


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_lake(tmp_path_factory.mktemp("made"))


@pytest.fixture
def root(made: str, tmp_path: Path) -> str:
    """A lake of its own for each test."""
    return shutil.copytree(made, str(tmp_path / "lake"))


def work(root: str, *arguments: str, kill: str = "") -> str:
    done = forks.run(
        [sys.executable, WORKER, root, *arguments],
        env={**os.environ, "DEPLOYER_FAILPOINT": kill, "PYTHONPATH": str(DEPLOYER)},
        text=True,
    )
    assert done.returncode == (-signal.SIGKILL if kill else 0), done.stderr
    return str(done.stdout).strip()


def read(root: str) -> list[int]:
    """The rows of each table, as those see them who only read."""
    with closing(open_reader(root)) as store:
        tables = {each.name: read_entry(store, root, each) for each in store.instance().tables.values()}
        return [tables[name].dataset().count_rows() for name in NAMES if name in tables]


def append_by_plain_lance(root: str, name: str) -> None:
    dataset = lance.dataset(open_table(root, name).opened.location)
    lance.write_dataset(flights(5, 900).cast(dataset.schema), dataset.uri, mode="append")


def is_whole(root: str) -> None:
    with closing(open_reader(root)) as store:
        assert [str(one) for each in verify(store, root, full=True) for one in each.differences] == []


def is_restored(root: str, *, restored: bool, names: Sequence[str] = NAMES) -> None:
    rows = 20 if restored else 30
    assert read(root) == len(names) * [rows]
    for name in names:
        opened = open_table(root, name)
        assert sorted_rows(opened.scan().to_table()) == sorted_rows(flights(rows))
        assert ("second" in opened.opened.state.jobs) is not restored
        location = opened.opened.location
        assert lance.dataset(location, storage_options=storage_options(location)).count_rows() == rows
    is_whole(root)


def check(root: str, point: str, *, restored: bool, names: Sequence[str] = NAMES) -> None:
    work(root, *names, kill=point)
    assert len(set(read(root))) == 1
    if restored:
        open_to_change(root, "first")  # records it, while the process might be alive as well
        is_restored(root, restored=True, names=names)
    work(root, "--late")
    is_restored(root, restored=restored, names=names)


@pytest.mark.parametrize("point", POINTS)
def test_all_tables_are_restored_or_none(root: str, point: str) -> None:
    check(root, point, restored=POINTS[point])


@pytest.mark.parametrize("point", SETTLING)
def test_who_takes_it_back_may_be_killed_too(root: str, point: str) -> None:
    work(root, *NAMES, kill="services.restore.after-lance@2")
    work(root, "--late", kill=point)
    assert read(root) == 3 * [30]
    work(root, "--late")
    is_restored(root, restored=False)
    assert work(root, *NAMES) == "SUCCEEDED"
    is_restored(root, restored=True)


@pytest.mark.full
@pytest.mark.parametrize("restored", [False, True], ids=["none", "all"])
def test_all_tables_are_restored_or_none_on_s3(tmp_path: Path, on_s3: str, *, restored: bool) -> None:
    names = ("first", REWRITTEN)
    point = f"services.restore.after-lance@{2 if restored else 1}"
    check(make_lake(tmp_path, on_s3, names), point, restored=restored, names=names)


def test_rows_that_others_committed_on_top_stay_and_all_tables_are_restored(root: str) -> None:
    """Plain Lance appends to the first table after it was restored and before the others are."""
    work(root, *NAMES, kill="services.restore.after-lance@1")
    append_by_plain_lance(root, "first")
    assert read(root) == 3 * [30]
    work(root, "--late")
    assert read(root) == [25, 20, 20]
    is_whole(root)


def test_a_table_that_others_changed_in_between_keeps_all_as_they_were(root: str) -> None:
    work(root, *NAMES, kill="services.restore.after-lance@1")
    append_by_plain_lance(root, "second")
    work(root, "--late")
    assert read(root) == [30, 35, 30]
    is_whole(root)
