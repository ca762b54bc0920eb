"""Refreshes: what they read, what they write, and what the view is afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.errors import Conflict, DeployerError, InvalidInput, NotFound, Refused
from deployer.live.reader import live_table
from deployer.runs.records import begin_runs, runs_of
from deployer.services.kinds.clean import clean_table
from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.compact import compact_table
from deployer.services.restore import RESTORE
from deployer.services.savepoints.savepoints import make_savepoint
from deployer.specs.model import Storage
from deployer.state.log.updates import RenameTable, SetTableProperties
from deployer.state.model.entities import INSTANCE_LOG
from deployer.tables.admin.deletion import delete_table
from deployer.tables.admin.tables import update_table
from deployer.tables.rows.delete import delete_rows
from deployer.tables.rows.merging.merge import merge_rows
from deployer.tables.rows.update import update_rows
from deployer.views.refresh.results import NoStableRowIds
from tests.views.refresh.conftest import COUNTS, SCHEMA, Views, rows


def test_first_refresh_is_full_and_the_next_ones_take_changes_over(views: Views) -> None:
    views.view()
    assert views.plan().mode == "full"
    done = views.refresh()
    assert (done.mode, done.rows_inserted) == ("full", len(views.expected()))
    assert views.rows() == views.expected()
    views.add(rows(300, 310))
    plan = views.plan()
    assert (plan.mode, plan.rows, plan.fragments, plan.commits) == ("incremental", 10, 1, 1)
    done = views.refresh()
    assert (done.mode, done.rows_read, done.reason) == ("incremental", 10, "")
    assert views.rows() == views.expected()
    assert views.plan().mode == "none"
    skipped = views.refresh()
    assert (skipped.status, skipped.why) == ("SKIPPED", "no row of a source has changed")


def update(views: Views) -> None:
    update_rows(views.open(), "id % 7 = 0", values_sql={"delay": "delay + 5"})


def delete(views: Views) -> None:
    delete_rows(views.open(), "id BETWEEN 20 AND 40")


def delete_files(views: Views) -> None:
    delete_rows(views.open(), "id < 100")


def merge(views: Views) -> None:
    merge_rows(views.open(), rows(90, 120, delay=3))


def compact(views: Views) -> None:
    compact_table(views.lake.root, "flights", {"min_files": 2})


def cluster(views: Views) -> None:
    cluster_table(views.lake.root, "flights", {"columns": ["delay"]})


def foreign_append(views: Views) -> None:
    lance.write_dataset(rows(500, 505), views.open().location, mode="append")


def foreign_delete(views: Views) -> None:
    lance.dataset(views.open().location).delete("id > 250")


def foreign_overwrite(views: Views) -> None:
    lance.write_dataset(rows(0, 50, delay=1), views.open().location, mode="overwrite")


#: What changes the source, and how many rows of it a refresh then reads (net); None: it is a full one.
CHANGES: dict[str, tuple[Callable[[Views], Any], int]] = {
    "update": (update, 2 * 43),
    "delete": (delete, 21),
    "delete of files": (delete_files, 100),
    "merge": (merge, 60),
    "compact": (compact, 0),
    "cluster": (cluster, 0),
    "foreign append": (foreign_append, 5),
    "foreign delete": (foreign_delete, 49),
}


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_taken_over(views: Views, name: str) -> None:
    change, read = CHANGES[name]
    views.view()
    views.view(COUNTS, "counts")
    views.refresh()
    views.refresh("counts")
    change(views)
    done = views.refresh()
    counted = views.refresh("counts")
    assert (done.mode, counted.mode) == (("incremental",) * 2 if read else ("none",) * 2), done.reason
    assert read <= done.rows_read <= 2 * read  # rows of keys that need not be unique are looked up again
    assert views.rows() == views.expected()
    views.refresh("counts", full=True)
    by_changes = views.rows("counts")
    assert by_changes == views.rows("counts")
    assert views.refresh().why == "no row of a source has changed"


def test_a_few_deleted_and_updated_rows_of_each_file_are_taken_over(views: Views) -> None:
    views.add(rows(300, 150_000))
    views.view()
    views.refresh()
    delete_rows(views.open(), "id % 1000 = 7")
    plan = views.plan()
    assert (plan.mode, plan.rows, plan.fragments) == ("incremental", 150, 2)
    assert plan.bytes < sum(file.bytes for file in views.open().state.files) / 100
    assert views.refresh().rows_read == 150
    update_rows(views.open(), "id % 1000 = 11", values_sql={"delay": "delay + 100"})
    assert (views.plan().mode, views.plan().rows) == ("incremental", 300)
    assert views.refresh().mode == "incremental" and views.rows() == views.expected()


def test_groups_equal_those_of_all_rows(views: Views) -> None:
    views.view(COUNTS, "counts")
    views.refresh("counts")
    for change in (update, delete, merge, compact, delete_files):
        change(views)
        done = views.refresh("counts")
        assert done.mode in ("incremental", "none")
        found = views.rows("counts")
        views.refresh("counts", full=True)
        assert found == views.rows("counts")


def test_groups_that_change_come_and_go_are_counted(views: Views) -> None:
    views.view("SELECT carrier, min(delay) AS least, count(*) AS n FROM air.flights GROUP BY carrier", "least")
    views.refresh("least")

    def counted() -> tuple[int, int, int]:
        done = views.refresh("least")
        assert done.mode == "incremental", done.reason
        return done.rows_inserted, done.rows_updated, done.rows_deleted

    views.add(rows(300, 304))
    assert counted() == (0, 4, 0)
    delete_rows(views.open(), "carrier = 'DL'")  # no row is left to compute its minimum of
    assert counted() == (0, 0, 1)
    delete_rows(views.open(), "carrier = 'UA'")
    views.add(rows(303, 304))
    assert counted() == (1, 0, 1)
    found = views.rows("least")
    views.refresh("least", full=True)
    assert found == views.rows("least")


def test_an_overwrite_by_others_is_a_full_refresh(views: Views) -> None:
    views.view()
    views.refresh()
    foreign_overwrite(views)
    assert views.refresh().mode in ("full", "incremental")
    assert views.rows() == views.expected()


def test_a_row_that_comes_and_goes_is_not_read(views: Views) -> None:
    views.view()
    views.refresh()
    views.add(rows(300, 320))
    delete_rows(views.open(), "id >= 300")
    before = views.open("late").state.lance_version
    done = views.refresh()
    assert (done.mode, done.rows_read, done.rows_inserted) == ("incremental", 0, 0)
    assert views.open("late").state.lance_version == before  # no commit to Lance
    assert views.refresh().status == "SKIPPED"


def test_a_job_id_is_done_once(views: Views) -> None:
    views.view()
    views.refresh(job_id="monday")
    views.add(rows(300, 310))
    again = views.refresh(job_id="monday")
    assert again.already_done and views.plan().mode == "incremental"
    [run] = runs_of(views.open("late").state, "REFRESH")
    assert (run.job, run.status, run.figures.after["mode"]) == ("monday", "SUCCEEDED", "full")


def test_one_point_in_time_is_recorded(views: Views) -> None:
    views.view()
    done = views.refresh()
    state = views.open().state
    assert done.sources == {"air.flights": f"1:{state.lance_version}"}
    assert not [name for name in state.savepoints if name.startswith("reader-")]  # the lease is released


def test_src_version(views: Views) -> None:
    views.view()
    then = views.open().state.lance_version
    expected = views.expected()
    views.add(rows(300, 310))
    done = views.refresh(src_version=then)
    assert done.sources == {"air.flights": f"1:{then}"} and views.rows() == expected
    assert views.refresh().mode == "incremental" and views.rows() == views.expected()
    whole = views.plan(src_version=then)
    assert (whole.mode, whole.fragments, whole.rows) == ("full", 3, 300) and whole.bytes > 0
    back = views.refresh(src_version=then)
    assert back.mode == "full" and "is before" in back.reason and views.rows() == expected
    with pytest.raises(NotFound, match=r"there is no version 99"):
        views.refresh(src_version=99)


def test_src_version_that_was_cleaned_up(views: Views) -> None:
    views.view()
    views.refresh()
    then = views.open().state.lance_version
    views.add(rows(300, 310))
    views.add(rows(310, 320))
    clean_table(views.lake.root, "flights", {"older_than": "0d"})
    with pytest.raises(NotFound, match=r"has no version 5 any more"):
        views.refresh(src_version=then + 1)
    done = views.refresh()
    assert done.mode == "full" and "not kept" in done.reason
    assert views.rows() == views.expected()


def test_rows_without_keys_and_ids(views: Views) -> None:
    views.lake.table(SCHEMA, (), name="loose", storage=Storage(stable_row_ids=False))
    views.add(rows(0, 50), "loose")
    views.view("SELECT id, delay FROM air.loose", "late")
    views.refresh()
    views.add(rows(50, 60), "loose")
    assert views.refresh().mode == "incremental"
    delete_rows(views.open("loose"), "id = 3")
    done = views.refresh()
    assert (done.mode, done.reason) == (
        "full",
        "air.loose has neither row keys nor stable row ids, so rows of the view cannot be identified again",
    )
    assert len(views.rows()) == 59
    views.add(rows(60, 61), "loose")
    with pytest.raises(RuntimeError, match=r"neither row keys nor stable row ids") as failure:
        views.refresh(src_version=3)
    assert isinstance(failure.value, NoStableRowIds)


def test_stable_row_ids(views: Views) -> None:
    views.lake.table(SCHEMA, (), name="loose")
    views.add(rows(0, 500), "loose")
    views.view("SELECT id, delay FROM air.loose", "late")
    views.refresh()
    delete_rows(views.open("loose"), "id = 3")
    update_rows(views.open("loose"), "id = 5", {"delay": 77})
    compact_table(views.lake.root, "loose", {"max_deleted_share": 0.001})
    done = views.refresh()
    assert (done.mode, done.rows_read) == ("incremental", 3)
    found = {row["id"]: row["delay"] for row in views.rows()}
    assert len(found) == 499 and found[5] == 77


def test_where_computes_rows_again(views: Views) -> None:
    views.view()
    views.refresh()
    expected = views.rows()
    views.add(rows(300, 310))
    done = views.refresh(where="carrier = 'AA'")
    assert done.rows_updated == sum(row["carrier"] == "AA" for row in expected) and views.rows() == expected
    assert views.plan().mode == "incremental"
    with pytest.raises(InvalidInput, match=r"`where` and `src_version`"):
        views.refresh(where="true", src_version=1)
    with pytest.raises(InvalidInput, match=r"nothing|column"):
        views.refresh(where="nothing = 1")


def test_files_of_a_view_are_limited(views: Views) -> None:
    views.view()
    views.refresh(max_rows_per_fragment=50)
    assert max(file.rows for file in views.open("late").state.files) <= 50
    with pytest.raises(InvalidInput, match=r"max_rows_per_fragment is 0"):
        views.refresh(max_rows_per_fragment=0)


def test_only_refreshes_write_a_view(views: Views) -> None:
    late = views.view()
    views.refresh()
    file = views.lake.file(pa.table({"id": [1], "carrier": ["x"], "delay": [99], "n": [1]}))
    writes: dict[str, Callable[[], Any]] = {
        "append": lambda: views.add(rows(1, 2), "late"),
        "delete": lambda: delete_rows(views.open("late"), "true"),
        "update": lambda: update_rows(views.open("late"), "true", {"delay": 1}),
        "merge": lambda: merge_rows(views.open("late"), rows(1, 2), "id"),
        "load": lambda: views.lake.ingest(file, table="late"),
        "overwrite": lambda: views.lake.ingest(file, table="late", mode="overwrite"),
    }
    for name, write in writes.items():
        with pytest.raises(Refused, match=r"air.late is a view.*\n?.*deployer view refresh air.late"):
            write()
        assert views.rows() == views.expected(), name
    assert late.entry.full_name == "air.late"


def test_a_view_that_others_changed_is_computed_again(views: Views) -> None:
    views.view()
    views.refresh()
    lance.dataset(views.open("late").location).delete("delay > 40")
    assert "another program changed rows of the view" in views.plan().reason
    assert views.refresh().mode == "full" and views.rows() == views.expected()
    lance.dataset(views.open("late").location).optimize.compact_files()
    assert views.refresh().mode in ("full", "none") and views.rows() == views.expected()


def test_services_of_a_view_cost_nothing(views: Views) -> None:
    views.view()
    for start in (300, 310, 320):
        views.refresh()
        views.add(rows(start, start + 10))
    views.refresh()
    compact_table(views.lake.root, "late", {"min_files": 2})
    cluster_table(views.lake.root, "late", {"columns": ["delay"]})
    clean_table(views.lake.root, "late", {"older_than": "0d"})
    assert views.plan().mode == "none", views.plan().reason
    views.add(rows(330, 340))
    assert views.refresh().mode == "incremental" and views.rows() == views.expected()


def test_restore_of_the_source(views: Views) -> None:
    views.view()
    views.refresh()
    make_savepoint(views.store, views.lake.root, [views.open().entry], "before")
    views.add(rows(300, 310))
    update(views)
    views.refresh()
    RESTORE.run(views.lake.root, "flights")
    done = views.refresh()
    assert done.mode in ("incremental", "full") and views.rows() == views.expected()


def test_restore_of_the_view(views: Views) -> None:
    views.view()
    views.refresh()
    then = views.rows()
    make_savepoint(views.store, views.lake.root, [views.open("late").entry], "before")
    views.add(rows(320, 340))
    views.refresh()
    RESTORE.run(views.lake.root, "late")
    assert views.rows() == then and views.plan().mode == "incremental"
    assert views.refresh().mode == "incremental" and views.rows() == views.expected()


@pytest.mark.parametrize(("keys", "sort", "mode"), [(("id",), ("delay",), "none"), ((), (), "full")])
def test_key_rewrite_of_the_source(views: Views, keys: tuple[str, ...], sort: tuple[str, ...], mode: str) -> None:
    views.view()
    views.refresh()
    opened = views.open()
    spec = replace(live_table(opened.entry, opened.state).spec, row_keys=keys, sort_keys=sort)
    update_table(views.store, views.lake.root, opened.entry.table_id, spec)
    assert views.open().state.dataset == 2
    assert views.refresh().mode == mode and views.rows() == views.expected()
    views.add(rows(300, 340))
    done = views.refresh()
    if keys:
        assert done.mode == "incremental"
    else:
        assert "its sources have other keys than when the view was created" in done.reason
    assert views.rows() == views.expected()


def test_keys_for_a_source_that_had_none(views: Views) -> None:
    views.lake.table(SCHEMA, (), name="loose")
    views.add(rows(0, 50), "loose")
    views.view("SELECT id, delay FROM air.loose")
    views.refresh()
    opened = views.open("loose")
    spec = replace(live_table(opened.entry, opened.state).spec, row_keys=("id",))
    update_table(views.store, views.lake.root, opened.entry.table_id, spec)
    for start in (50, 60):
        views.add(rows(start, start + 10), "loose")
        views.refresh()
        assert sorted((row["id"] for row in views.rows()), key=str) == sorted(range(start + 10), key=str)


def test_a_run_excludes_others(views: Views) -> None:
    table_id = views.view().entry.table_id
    for kind in ("REFRESH", "RESTORE"):
        [held] = begin_runs(views.store, [table_id], kind, cause="a test")
        with pytest.raises(Conflict, match=f"of {kind} is RUNNING"):
            views.refresh()
        held.finish()


def rename(views: Views) -> None:
    table_id = views.open().entry.table_id
    views.store.commit(INSTANCE_LOG, [RenameTable(table_id, "air", "trips")])


def drop(views: Views) -> None:
    delete_table(views.store, views.lake.root, views.open().entry.table_id, allow_destroy=True)


def go_offline(views: Views, name: str = "flights") -> None:
    views.store.commit(views.open(name).entry.table_id, [SetTableProperties({"online": False})])


def drop_column(views: Views) -> None:
    from deployer.columns.definitions.drop import drop_columns

    drop_columns(views.open(), ["carrier"])


REFUSED: dict[str, tuple[Callable[[Views], Any], type[DeployerError], str]] = {
    "renamed source": (rename, Refused, "air.flights, which the view reads, was renamed to air.trips"),
    "dropped source": (drop, NotFound, "there is no table air.flights, which the view reads"),
    "dropped column": (
        drop_column,
        Refused,
        "does not fit its sources any more: there is no column 'carrier'",
    ),
    "offline source": (go_offline, Refused, "air.flights, which the view reads, is offline"),
    "offline view": (lambda views: go_offline(views, "late"), Refused, "the view is offline"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_refreshed_is_refused(views: Views, name: str) -> None:
    change, kind, words = REFUSED[name]
    views.view()
    views.refresh()
    then = views.rows()
    change(views)
    with pytest.raises(kind, match=words):
        views.refresh()
    assert views.rows() == then


def test_another_table_under_the_name(views: Views) -> None:
    views.view()
    views.refresh()
    drop(views)
    views.lake.table(SCHEMA, ("id",), splits=())
    views.add(rows(7, 30))
    assert views.plan().reason == "another table has the name air.flights now"
    assert views.refresh().mode == "full" and views.rows() == views.expected()


def test_a_table_is_not_a_view(views: Views) -> None:
    with pytest.raises(InvalidInput, match=r"air.flights is a table and not a view"):
        views.refresh("flights")


def test_views_over_views_and_cycles(views: Views) -> None:
    views.view()
    views.refresh()
    views.view(COUNTS.replace("flights GROUP", "late GROUP"), "counts")
    views.refresh("counts")
    views.add(rows(300, 330))
    views.refresh()
    assert views.refresh("counts").mode == "incremental"
    found = views.rows("counts")
    views.refresh("counts", full=True)
    assert found == views.rows("counts")
    drop(views)
    with pytest.raises(InvalidInput, match=r"would read itself: air.flights → air.counts → air.late → air.flights"):
        views.view("SELECT carrier FROM air.counts", "flights")
