"""CLUSTER while others load, delete, compact and cancel, and when it is killed: nothing is lost or doubled."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest

from deployer.errors import Conflict
from deployer.runs.records import cancel_run, fail_dead_runs, queue_run, start_run
from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.compact import compact_table
from tests.crash.test_kill_compact import clean, end_dead_run, work
from tests.services.compact.test_beside_others import before_commit, last_run
from tests.services.compact.test_compact import append, differences
from tests.tables.lakes import Lake, flights, sorted_rows

pytestmark = pytest.mark.full

OPTIONS = {"columns": ["flight", "delay"], "curve": "zorder", "target_file_bytes": 4_000}
BOTH = pytest.mark.parametrize("row_keys", [(), ("carrier", "flight")], ids=["keyless", "keyed"])


@BOTH
def test_a_load_meanwhile_stays_and_is_clustered_too(
    lake: Lake, row_keys: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.table(row_keys=row_keys)
    append(lake, flights(1000), 6)
    before_commit(monkeypatch, lambda: append(lake, flights(100, 1000), 1))
    done = cluster_table(lake.root, "flights", OPTIONS)
    assert (done.status, done.work.conflicts) == ("SUCCEEDED", 0)
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(1100))
    assert all(file.clustering for file in lake.open().opened.state.files)
    assert differences(lake.root) == []


@BOTH
def test_deletions_meanwhile_stand_and_the_portion_is_planned_again(
    lake: Lake, row_keys: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.table(row_keys=row_keys)
    append(lake, flights(600), 6)
    location = lake.open().opened.location
    before_commit(monkeypatch, lambda: lance.dataset(location).delete("carrier = 'UA'"))
    done = cluster_table(lake.root, "flights", {**OPTIONS, "incremental": False})
    assert (done.status, done.work.conflicts) == ("SUCCEEDED", 1)
    expected = [row for row in sorted_rows(flights(600)) if row["carrier"] != "UA"]
    assert sorted_rows(lake.open().scan().to_table()) == expected
    assert not lake.open().opened.state.intents
    assert differences(lake.root) == []


def test_a_cancelled_run_keeps_its_portions_and_the_next_goes_on(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table_id = lake.table().opened.entry.table_id
    append(lake, flights(1000), 5)
    before_commit(monkeypatch, lambda: cancel_run(lake.store, table_id, last_run(lake).run_id))
    monkeypatch.setattr("deployer.runs.records.LOOK", 0)
    done = cluster_table(lake.root, "flights", {**OPTIONS, "portion_bytes": 1})
    assert (done.status, done.work.portions) == ("CANCELLED", 1)
    clustered = [file for file in lake.open().opened.state.files if file.clustering]
    assert 0 < sum(file.rows for file in clustered) == done.work.rows < 1000
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(1000))
    assert differences(lake.root) == []
    again = cluster_table(lake.root, "flights", OPTIONS)
    assert again.status == "SUCCEEDED" and again.work.rows < 1000 + done.work.rows
    assert all(file.clustering for file in lake.open().opened.state.files)


def test_it_and_compact_exclude_each_other(lake: Lake) -> None:
    table_id = lake.table().opened.entry.table_id
    append(lake, flights(100), 4)
    for held, other in (("CLUSTER", compact_table), ("COMPACT", cluster_table)):
        run = queue_run(lake.store, table_id, held, cause="test", needs_service=False)  # type: ignore[arg-type]
        start_run(lake.store, table_id, run.run_id)
        with pytest.raises(Conflict, match=f"{held}"):
            other(lake.root, "flights", OPTIONS if other is cluster_table else None)
        append(lake, flights(10, 200), 1)  # a load is held up by neither
        fail_dead_runs(lake.store, table_id, 1 << 50)
    assert cluster_table(lake.root, "flights", OPTIONS).status == "SUCCEEDED"


@BOTH
@pytest.mark.parametrize("point", ["services.replace.before-lance", "services.replace.after-lance"])
def test_a_run_that_is_killed_between_portions_is_ended_by_the_next(
    tmp_path: Path, row_keys: tuple[str, ...], point: str
) -> None:
    lake = Lake(tmp_path)
    lake.table(row_keys=row_keys)
    append(lake, flights(600), 6)
    code, _ = work(lake.root, f"{point}@2", "cluster")
    assert code < 0
    clean(lake.root)
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(600))
    assert any(file.clustering for file in lake.open().opened.state.files)
    end_dead_run(lake)
    assert work(lake.root, "", "cluster")[0] == 0
    clean(lake.root)
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(600))
    assert all(file.clustering for file in lake.open().opened.state.files)
