"""Savepoints with their tags in Lance, and AUTOSAVEPOINT: named by time, few kept, old ones gone."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import lance
import pytest

from deployer.errors import Conflict, NotFound
from deployer.runs.records import runs_of
from deployer.services.kinds.clean import clean_table
from deployer.services.savepoints.autosavepoint import AutosavepointResult, autosavepoint_table
from deployer.services.savepoints.savepoints import delete_savepoint, make_savepoint
from deployer.tables.evolution.rewrite.truncate import reinitialise_table
from deployer.tables.maintenance.collect.garbage import collect_garbage
from tests.tables.lakes import Lake, flights

T0 = dt.datetime(2030, 1, 1, tzinfo=dt.UTC).timestamp()
DAY = 86_400


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    lake.table()
    lake.ingest(lake.file(flights(20)))
    return lake


def tags(lake: Lake, name: str = "flights") -> dict[str, int]:
    found = lance.dataset(lake.open(name).opened.location).tags.list()
    return {tag: each["version"] for tag, each in found.items()}


def names(lake: Lake) -> list[str]:
    return sorted(lake.open().opened.state.savepoints)


def make(lake: Lake, name: str, *tables: str) -> None:
    make_savepoint(lake.store, lake.root, [lake.open(each).opened.entry for each in tables or ("flights",)], name)


def auto(lake: Lake, day: float = 0, **options: object) -> AutosavepointResult:
    return autosavepoint_table(lake.root, "flights", options, now=T0 + day * DAY)


def test_one_is_of_what_lance_has_and_its_tag_outlives_lances_own_cleaning(lake: Lake) -> None:
    lance.dataset(lake.open().opened.location).delete("carrier = 'AA'")
    make(lake, "one")
    lake.ingest(lake.file(flights(20, 20)))
    assert tags(lake) == {"deployer-savepoint-one": 3}
    dataset = lance.dataset(lake.open().opened.location)
    dataset.cleanup_old_versions(older_than=dt.timedelta(0), error_if_tagged_old_versions=False)
    assert [each["version"] for each in dataset.versions()] == [3, 4]
    assert lance.dataset(dataset.uri, version=3).count_rows() == 16
    delete_savepoint(lake.store, lake.root, [lake.open().opened.entry], "one")
    assert tags(lake) == {} and names(lake) == []


def test_one_of_all_tables_is_of_one_moment_or_of_none(lake: Lake) -> None:
    lake.table(name="others")
    make(lake, "all", "flights", "others")
    of = [lake.open(name).opened.state.savepoints["all"] for name in ("flights", "others")]
    assert of[0].at == of[1].at and tags(lake, "others") == {"deployer-savepoint-all": 1}
    delete_savepoint(lake.store, lake.root, [lake.open("others").opened.entry], "all")
    with pytest.raises(Conflict, match="there is a savepoint all already"):
        make(lake, "all", "flights", "others")
    assert tags(lake, "others") == {} and not lake.open("others").opened.state.savepoints
    with pytest.raises(NotFound, match="there is no savepoint al; there are all"):
        delete_savepoint(lake.store, lake.root, [lake.open().opened.entry], "al")


TAGGED, RECORDED, REMOVED = (
    "services.savepoint.tagged",
    "services.savepoint.recorded",
    "services.savepoint.removed",
)


@pytest.mark.parametrize("point", [TAGGED, RECORDED, REMOVED])
def test_what_a_crash_leaves_of_tags_is_settled(lake: Lake, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    entry = lake.open().opened.entry
    lance.dataset(lake.open().opened.location).tags.create("mine", 1)
    if point == REMOVED:
        make(lake, "one")

    def dies(name: str) -> None:
        if name == point:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("deployer.services.savepoints.savepoints.reached", dies)
        with pytest.raises(KeyboardInterrupt):
            if point == REMOVED:
                delete_savepoint(lake.store, lake.root, [entry], "one")
            else:
                make(lake, "one")
    there = point == RECORDED
    assert names(lake) == (["one"] if there else []) and "deployer-savepoint-one" in tags(lake)
    collect_garbage(lake.store, lake.root, entry.table_id)
    assert tags(lake) == ({"mine": 1, "deployer-savepoint-one": 2} if there else {"mine": 1})


def test_runs_make_savepoints_named_by_time_and_keep_so_many(lake: Lake) -> None:
    make(lake, "by-hand")
    for day in range(4):
        lake.ingest(lake.file(flights(10, 100 + 10 * day)))
        done = auto(lake, day, keep=2)
        assert done.status == "SUCCEEDED" and done.savepoint is not None
        assert done.savepoint.name == f"auto-2030010{day + 1}T000000Z"
    assert names(lake) == ["auto-20300103T000000Z", "auto-20300104T000000Z", "by-hand"]
    assert sorted(tags(lake)) == [f"deployer-savepoint-{name}" for name in names(lake)]
    assert done.removed == ("auto-20300102T000000Z",)
    state = lake.open().opened.state
    rows = [lake.open().opened.dataset(state.savepoints[name].lance_version).count_rows() for name in names(lake)]
    assert rows == [50, 60, 20]
    [run, *_] = runs_of(state, "AUTOSAVEPOINT")
    assert (run.status, run.figures.before, run.figures.after) == ("SUCCEEDED", {"savepoints": 3}, {"savepoints": 3})


def test_a_table_that_nothing_changed_is_skipped_and_its_old_savepoints_expire(lake: Lake) -> None:
    assert auto(lake, 0, expires_after="2d").status == "SUCCEEDED"
    second = auto(lake, 1, expires_after="2d")
    assert (second.status, second.why) == ("SKIPPED", "nothing changed since savepoint auto-20300101T000000Z")
    third = auto(lake, 2, expires_after="2d")
    assert third.status == "SUCCEEDED" and third.removed == ("auto-20300101T000000Z",)
    assert names(lake) == ["auto-20300103T000000Z"] and sorted(tags(lake)) == [f"deployer-savepoint-{names(lake)[0]}"]


def test_an_expired_savepoint_keeps_nothing_though_it_has_a_tag(lake: Lake) -> None:
    auto(lake, 0)
    lake.ingest(lake.file(flights(20, 20)))
    for dry_run in (True, False):
        done = clean_table(lake.root, "flights", {"dry_run": dry_run}, now=T0 + 29 * DAY)
        assert (done.removed.versions, done.removed.savepoints) == (1, ())
    for dry_run in (True, False):
        done = clean_table(lake.root, "flights", {"dry_run": dry_run}, now=T0 + 31 * DAY)
        assert (done.removed.versions, done.removed.savepoints) == (1, ("auto-20300101T000000Z",))
    assert tags(lake) == {} and len(lance.dataset(lake.open().opened.location).versions()) == 1


def test_tags_of_a_replaced_dataset_go_with_their_savepoints(lake: Lake) -> None:
    old = lake.open().opened
    make(lake, "full")
    reinitialise_table(lake.store, lake.root, old.entry.table_id, allow_destroy=True)
    make(lake, "empty")
    assert list(lance.dataset(old.location).tags.list()) == ["deployer-savepoint-full"]
    assert list(tags(lake)) == ["deployer-savepoint-empty"]
    delete_savepoint(lake.store, lake.root, [lake.open().opened.entry], "full")
    assert lance.dataset(old.location).tags.list() == {}
