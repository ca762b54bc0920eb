"""Upkeep by programs: files are merged, indexes brought up to date, and versions that something needs stay."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import lance
import pytest

from deployer.errors import InvalidInput
from deployer.runs.records import runs_of
from deployer.services.savepoints.read_lease import leased
from deployer.services.savepoints.savepoints import take_savepoint
from deployer.specs.model import IndexSpec
from deployer.state.log.updates import CommitAbandoned, CommitStarted
from deployer.table import Table
from deployer.tables.layout.indexes.build import build_index, index_infos
from tests.tables.lakes import Lake, flights, sorted_rows

NOW = dt.timedelta(0)


def loaded(lake: Lake, table: Table) -> str:
    """Five loads, with an index, as versions 1 to 7; gives the table's id."""
    table_id = lake.open().opened.entry.table_id
    build_index(lake.store, lake.root, table_id, IndexSpec("delays", ("delay",), "btree"))
    for i in range(5):
        table.add(flights(20, 20 * i))
    return table_id


def versions(lake: Lake) -> list[int]:
    return [each["version"] for each in lance.dataset(lake.open().opened.location).versions()]


def test_one_call_runs_compact_indexes_and_clean(lake: Lake, table: Table) -> None:
    table_id = loaded(lake, table)
    done = table.optimize(cleanup_older_than=NOW)
    assert done.compacted.status == done.cleaned.run.status == "SUCCEEDED" and not done.indexes.failure
    assert done.cleaned.old_versions > 0 and done.cleaned.bytes_removed > 0 and done.cleaned.kept == ()
    assert versions(lake) == [table.version]
    [index] = index_infos(lake.open().opened)
    assert index.unindexed_rows == 0 and lake.open().opened.state.files.count < 20
    assert sorted_rows(table.to_arrow()) == sorted_rows(flights(100))
    state = lake.store.table(table_id)
    assert [runs_of(state, kind)[0].status for kind in ("COMPACT", "CLEAN")] == ["SUCCEEDED"] * 2


def test_versions_stay_for_seven_days_unless_less_is_asked_for(lake: Lake, table: Table) -> None:
    loaded(lake, table)
    before = versions(lake)
    done = table.cleanup_old_versions()
    assert versions(lake) == before and done.old_versions == 0
    assert {each.version for each in done.kept} == {*before[:-1]}
    assert {each.why for each in done.kept} == {"younger than 7 days"}


def test_what_something_needs_stays_and_is_reported(lake: Lake, table: Table) -> None:
    table_id = loaded(lake, table)
    newest = table.version
    take_savepoint(lake.store, [table_id], "before")
    dataset = lance.dataset(lake.open().opened.location)
    dataset.tags.create("mine", 2)
    dataset.create_branch("side", 3)
    table.add(flights(20, 100))
    table.add(flights(20, 120))
    lake.store.commit(table_id, [CommitStarted("slow", "ingest", newest + 1)])
    done = table.cleanup_old_versions(NOW)
    assert {each.version: each.why for each in done.kept} == {
        2: "tag mine",
        3: "a branch begins at it",
        newest: "savepoint before",
        newest + 1: "work in progress may need it",
    }
    assert {*versions(lake)} == {2, 3, newest, newest + 1, newest + 2}


@pytest.mark.parametrize("call", ["optimize", "cleanup_old_versions"])
def test_the_version_of_a_reader_stays(lake: Lake, table: Table, call: str) -> None:
    loaded(lake, table)
    with leased(lake.root, "flights") as reader:
        held = reader.opened.state.lance_version
        table.add(flights(20, 100))
        done = table.optimize(cleanup_older_than=NOW, delete_unverified=True).cleaned if call == "optimize" else None
        done = done or table.cleanup_old_versions(NOW, delete_unverified=True)
        [kept] = [each for each in done.kept if each.version == held]
        assert "reader-" in kept.why and held in versions(lake)
        assert reader.scan().to_table().num_rows == 100


@pytest.mark.parametrize("age", [5, "7d", dt.timedelta(days=-1), True])
def test_what_is_no_age_is_refused(lake: Lake, table: Table, age: Any) -> None:
    loaded(lake, table)
    before = versions(lake)
    with pytest.raises(InvalidInput, match="is not an age of versions"):
        table.cleanup_old_versions(age)
    with pytest.raises(InvalidInput, match="`cleanup_older_than` is"):
        table.optimize(cleanup_older_than=age)
    assert versions(lake) == before


def test_unverified_files_go_only_when_no_work_is_in_progress(lake: Lake, table: Table) -> None:
    table_id = loaded(lake, table)
    stray = Path(lake.open().opened.location) / "data" / "stray.lance"
    stray.write_bytes(b"left by a load that was killed")
    assert table.cleanup_old_versions(NOW).kept_files == 1 and stray.exists()
    lake.store.commit(table_id, [CommitStarted("slow", "ingest", table.version)])
    done = table.cleanup_old_versions(NOW, delete_unverified=True)
    assert stray.exists() and done.kept_files == 1 and done.why_files == "in progress: commit of job slow"
    assert "slow" in lake.store.table(table_id).intents
    lake.store.commit(table_id, [CommitAbandoned("slow")])
    done = table.cleanup_old_versions(NOW, delete_unverified=True)
    assert not stray.exists() and (done.kept_files, done.why_files) == (0, "")
    assert sorted_rows(table.to_arrow()) == sorted_rows(flights(100))


def test_rows_are_erased_by_a_call(lake: Lake, table: Table) -> None:
    loaded(lake, table)
    done = table.erase("carrier = 'UA'")
    assert done.rows == 20 and done.is_proven and table.count_rows("carrier = 'UA'") == 0
