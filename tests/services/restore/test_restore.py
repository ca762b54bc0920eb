"""RESTORE: rows, columns, partitions, keys and services as they were, as a new version that can be undone."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.datasets.dataset import latest_version
from deployer.datasets.recovery import restored
from deployer.datasets.recovery.restored import commit_restore
from deployer.datasets.recovery.rollforward import refresh
from deployer.datasets.storage.places import erase_dataset
from deployer.errors import Conflict, InvalidInput, NotFound, Refused
from deployer.runs.records import queue_run, runs_of, start_run
from deployer.services.api.attachments import alter_service, create_service
from deployer.services.kinds.clean import clean_table
from deployer.services.kinds.compact import compact_table
from deployer.services.registry import run_service
from deployer.services.restore import restore_tables, restoring
from deployer.services.restore.planning import Undoing, preview_restore, preview_restore_at
from deployer.services.restore.restoring import Restored
from deployer.services.savepoints.savepoints import make_savepoint
from deployer.state.model.services import Service
from deployer.tables.admin.naming import set_online
from deployer.tables.evolution.rewrite.truncate import reinitialise_table
from deployer.tables.ingest.commit import append as commit
from deployer.tables.inspect.versions import dataset_at
from deployer.tables.layout.partitions.split import split_leaves
from deployer.tables.maintenance.verify.verify import verify
from tests.tables.lakes import Lake, filled_lake, flights, sorted_rows


@pytest.fixture(params=[("carrier", "flight"), ()], ids=["keyed", "keyless"])
def lake(tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    """A table of 60 rows, with a savepoint `then`."""
    return filled_lake(tmp_path, load_and_save, request.param)


def load_and_save(lake: Lake, row_keys: tuple[str, ...]) -> None:
    lake.table(row_keys=row_keys)
    lake.ingest(lake.file(flights(60)), job_id="first")
    save(lake, "then")


def entry(lake: Lake) -> Any:
    return lake.open().opened.entry


def save(lake: Lake, name: str) -> None:
    make_savepoint(lake.store, lake.root, [entry(lake)], name)


def preview(lake: Lake, name: str = "then") -> Undoing:
    [found] = preview_restore(lake.store, lake.root, [entry(lake)], name)
    return found


def restore(lake: Lake, name: str = "then", planned: Undoing | None = None, **options: Any) -> tuple[str, Restored]:
    saved, [done] = restore_tables(lake.store, lake.root, [planned or preview(lake, name)], **options)
    return saved, done


def rows(lake: Lake) -> Any:
    return sorted_rows(lake.open().scan().to_table())


def clean(lake: Lake) -> None:
    found = verify(lake.store, lake.root, full=True)
    assert [str(one) for each in found for one in each.differences] == []


def content(lake: Lake) -> Any:
    state = lake.open().opened.state
    properties = replace(state.properties, generation=0)
    return set(state.files), state.schema, properties, dict(state.partitions), dict(state.services)


def test_rows_are_those_of_then_in_a_new_version_and_it_can_be_undone(lake: Lake) -> None:
    before = content(lake)
    lake.ingest(lake.file(flights(40, 60)), job_id="second")
    lance.dataset(lake.open().opened.location).delete("carrier = 'AA'")
    now = rows(lake)
    undone = preview(lake)
    assert (undone.rows, undone.versions, undone.changes) == ((80, 60), 2, ())
    assert [job.job_id for job in undone.jobs] == ["second"]
    assert preview(lake) == undone and rows(lake) == now
    saved, done = restore(lake)
    assert done.status == "SUCCEEDED" and done.lance_version == 5 == lake.open().opened.state.lance_version
    assert rows(lake) == sorted_rows(flights(60)) and content(lake) == before
    assert saved.startswith("before-restore-")
    clean(lake)
    restore(lake, saved)
    assert rows(lake) == now and lake.open().opened.state.lance_version == 6
    clean(lake)
    [second, first] = runs_of(lake.open().opened.state, "RESTORE")
    assert (first.status, first.figures.before["rows"], first.figures.after["rows"]) == ("SUCCEEDED", 80, 60)
    assert second.cause == f"restore {saved}"
    assert [each.kind for each in lake.open().history()][:2] == ["restore", "restore"]


def test_a_job_that_was_undone_can_be_run_again_and_one_that_was_not_adds_nothing(lake: Lake) -> None:
    file = lake.file(flights(40, 60))
    lake.ingest(file, job_id="second")
    restore(lake)
    assert set(lake.open().opened.state.jobs) - {each.run_id for each in runs_of(lake.open().opened.state)} == {"first"}
    assert lake.ingest(file, job_id="second").rows == 40
    lake.ingest(lake.file(flights(60)), job_id="first")
    assert rows(lake) == sorted_rows(flights(100))
    clean(lake)


def test_a_compaction_is_undone_too_and_nothing_that_is_needed_was_cleaned(lake: Lake) -> None:
    before = content(lake)
    for i in range(3):
        lake.ingest(lake.file(flights(20, 60 + 20 * i)))
    compact_table(lake.root, "flights")
    clean_table(lake.root, "flights", now=4e9)
    restore(lake)
    assert rows(lake) == sorted_rows(flights(60)) and content(lake) == before
    clean(lake)
    compact_table(lake.root, "flights")
    lake.ingest(lake.file(flights(20, 60)))
    assert rows(lake) == sorted_rows(flights(80))
    clean(lake)


def test_columns_settings_and_services_are_those_of_then(lake: Lake) -> None:
    table_id = entry(lake).table_id
    create_service(lake.store, table_id, Service("COMPACT", options={"min_files": 7}))
    save(lake, "served")
    before = content(lake)
    lance.dataset(lake.open().opened.location).add_columns({"twice": "delay * 2"})
    lance.dataset(lake.open().opened.location).drop_columns(["price"])
    set_online(lake.store, table_id, online=False)
    service = lake.open().opened.state.services["COMPACT"]
    alter_service(lake.store, table_id, service, replace(service, options={"min_files": 9}))
    create_service(lake.store, table_id, Service("CLEAN"))
    text = " ".join(preview(lake, "served").changes)
    assert all(word in text for word in ("twice", "price", "online", "min_files", "clean"))
    saved, _ = restore(lake, "served")
    assert content(lake) == before and rows(lake) == sorted_rows(flights(60))
    clean(lake)
    restore(lake, saved)
    assert {"twice"} <= set(lake.open().scan().to_table().column_names) and "CLEAN" in lake.open().opened.state.services
    clean(lake)


def test_what_a_rewrite_replaced_comes_back_and_goes_again(lake: Lake) -> None:
    before, old = content(lake), entry(lake).location
    reinitialise_table(lake.store, lake.root, entry(lake).table_id, allow_destroy=True)
    lake.ingest(lake.file(flights(10, 500)), job_id="later")
    undone = preview(lake)
    assert (undone.versions, undone.rows) == (None, (10, 60))
    saved, done = restore(lake)
    assert done.status == "SUCCEEDED" and entry(lake).location == old and entry(lake).dataset == 1
    assert rows(lake) == sorted_rows(flights(60)) and content(lake) == before
    clean(lake)
    lake.ingest(lake.file(flights(5, 60)))
    assert rows(lake) == sorted_rows(flights(65))
    restore(lake, saved)
    assert rows(lake) == sorted_rows(flights(10, 500)) and entry(lake).dataset == 2
    clean(lake)
    reinitialise_table(lake.store, lake.root, entry(lake).table_id, allow_destroy=True)
    assert rows(lake) == []
    restore(lake)
    assert rows(lake) == sorted_rows(flights(60))
    clean(lake)


def test_a_dataset_or_version_that_others_removed_is_told_and_nothing_changes(lake: Lake) -> None:
    old = entry(lake).location
    dataset = lance.dataset(lake.open().opened.location)
    reinitialise_table(lake.store, lake.root, entry(lake).table_id, allow_destroy=True)
    erase_dataset(lake.root, old)
    state = lake.open().opened.state
    with pytest.raises(Refused, match="savepoint then is of version 2 of dataset 1, which another program removed"):
        preview(lake)
    assert lake.open().opened.state == state
    del dataset


def test_what_is_committed_after_the_preview_is_refused_unless_forced(lake: Lake) -> None:
    planned = preview(lake)
    lake.ingest(lake.file(flights(40, 60)), job_id="meanwhile")
    with pytest.raises(Conflict, match="changed since the preview"):
        restore(lake, planned=replace(planned, nothing=False))
    assert rows(lake) == sorted_rows(flights(100))
    run = runs_of(lake.open().opened.state, "RESTORE")[0]
    assert run.status == "FAILED" and not lake.open().opened.state.intents
    saved, _ = restore(lake, planned=replace(planned, nothing=False), force=True)
    assert rows(lake) == sorted_rows(flights(60))
    restore(lake, saved)
    assert rows(lake) == sorted_rows(flights(100))
    clean(lake)


def test_others_who_commit_at_that_very_moment_keep_what_they_wrote(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lance takes the restore on top of theirs, which it would undo: it is taken back."""
    lake.ingest(lake.file(flights(20, 60)))
    real = commit_restore

    def late(location: str, *arguments: Any) -> None:
        batch = flights(5, 900)
        lance.write_dataset(batch.cast(lance.dataset(location).schema), location, mode="append")
        real(location, *arguments)

    monkeypatch.setattr(restoring, "commit_restore", late)
    with pytest.raises(Conflict, match="changed since the preview"):
        restore(lake)
    both = pa.concat_tables([flights(80), flights(5, 900)])
    assert rows(lake) == sorted_rows(both)
    clean(lake)
    assert not lake.open().opened.state.intents


def test_a_load_that_is_recorded_at_that_very_moment_keeps_its_rows(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load began before the restore, so it is not refused, and the log has it before Lance has the restore."""
    lake.ingest(lake.file(flights(20, 60)))
    real, prepared, recorded = commit_restore, Event(), Event()
    threads: list[Future[Any]] = []

    def late(*arguments: Any) -> None:
        prepared.set()
        assert recorded.wait(300)
        real(*arguments)

    def beside(point: str) -> None:
        if point == "tables.commit.before-lance":
            threads.append(pool.submit(restore, lake))
            assert prepared.wait(300)

    monkeypatch.setattr(restoring, "commit_restore", late)
    monkeypatch.setattr(commit, "reached", beside)
    with ThreadPoolExecutor(1) as pool:
        lake.ingest(lake.file(flights(20, 80)), job_id="beside")
        recorded.set()
        with pytest.raises(Conflict, match="changed since the preview"):
            threads[0].result()
    assert rows(lake) == sorted_rows(flights(100)) and "beside" in lake.open().opened.state.jobs
    clean(lake)
    assert not lake.open().opened.state.intents


def test_a_restore_that_two_processes_take_back_loses_no_row_that_came_after_the_first(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one looks before the first one commits, and commits after a load came on top of that."""
    lake.ingest(lake.file(flights(20, 60)))
    real, late = latest_version, flights(5, 900)

    def commit_late(location: str, *arguments: Any) -> None:
        lance.write_dataset(late.cast(lance.dataset(location).schema), location, mode="append")
        commit_restore(location, *arguments)

    def overtaken(location: str) -> int:
        version = real(location)
        monkeypatch.setattr(restored, "latest_version", real)
        lake.ingest(lake.file(flights(20, 80)), job_id="after")
        return version

    monkeypatch.setattr(restoring, "commit_restore", commit_late)
    monkeypatch.setattr(restored, "latest_version", overtaken)
    with pytest.raises(Conflict, match="changed since the preview"):
        restore(lake)
    assert rows(lake) == sorted_rows(pa.concat_tables([flights(100), late]))
    clean(lake)
    assert not lake.open().opened.state.intents


def test_a_load_that_comes_between_intent_and_commit_is_told_and_can_be_repeated(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.ingest(lake.file(flights(20, 60)))
    file = lake.file(flights(20, 80))
    refused = []

    def between(point: str) -> None:
        if point == "services.restore.before-lance":
            with pytest.raises(Conflict, match="being restored"):
                lake.ingest(file, job_id="between")
            refused.append(point)

    monkeypatch.setattr(restoring, "reached", between)
    restore(lake)
    assert refused and rows(lake) == sorted_rows(flights(60))
    lake.ingest(file, job_id="between")
    assert rows(lake) == sorted_rows(pa.concat_tables([flights(60), flights(20, 80)]))
    clean(lake)


def test_it_does_not_run_beside_a_compaction(lake: Lake) -> None:
    lake.ingest(lake.file(flights(20, 60)))
    run = queue_run(lake.store, entry(lake).table_id, "COMPACT", cause="test", needs_service=False)
    start_run(lake.store, entry(lake).table_id, run.run_id, lease=1000)
    with pytest.raises(Conflict, match="of COMPACT is RUNNING"):
        restore(lake)
    assert rows(lake) == sorted_rows(flights(80))


def test_a_table_that_is_as_it_was_is_skipped_and_no_savepoint_is_made(lake: Lake) -> None:
    saved, done = restore(lake)
    assert (saved, done.status, done.why) == ("", "SKIPPED", "the same as at savepoint then")
    with pytest.raises(NotFound, match="there is no savepoint other; there are then"):
        preview(lake, "other")


def test_a_split_is_undone_and_later_loads_go_to_the_leaves_there_are(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.table()
    lake.ingest(lake.file(flights(60)))
    save(lake, "then")
    before = content(lake)
    split_leaves(lake.store, lake.root, entry(lake).table_id, max_rows=5)
    assert preview(lake).leaves[0] > preview(lake).leaves[1]
    restore(lake)
    assert content(lake) == before
    lake.ingest(lake.file(flights(40, 60)))
    assert rows(lake) == sorted_rows(flights(100))
    assert all(file.partition in lake.open().opened.state.partitions for file in lake.open().opened.state.files)
    clean(lake)


def test_restores_and_loads_at_once_lose_no_row_of_a_job_that_is_done(tmp_path: Path) -> None:
    """Whatever was restored in between: the rows are exactly those of the jobs that are known to be done."""
    lake = Lake(tmp_path)
    lake.table()
    lake.ingest(lake.file(flights(10)), job_id="0")
    save(lake, "then")
    files = {str(number): lake.file(flights(10, 10 * number)) for number in range(1, 25)}

    def load(worker: int) -> None:
        for job_id in sorted(files, key=int)[worker::2]:
            for _ in range(10_000):
                with suppress(Conflict):
                    lake.ingest(files[job_id], job_id=job_id)
                    break
                time.sleep(0.01)
            else:
                raise AssertionError(f"load {job_id} was refused again and again")

    with ThreadPoolExecutor(2) as pool:
        loads = [pool.submit(load, worker) for worker in range(2)]
        restored = 0
        while not all(each.done() for each in loads) or not restored:
            with suppress(Conflict):
                _, done = restore(lake, force=True, save_first=False)
                restored += done.status == "SUCCEEDED"
            time.sleep(0.01)
        for each in loads:
            each.result()
    state = lake.open().opened.state
    numbers = sorted(int(job) for job in state.jobs if job.isdecimal())
    assert rows(lake) == sorted_rows(pa.concat_tables([flights(10, 10 * number) for number in numbers]))
    assert not state.intents and restored
    clean(lake)


def test_a_load_that_is_undone_before_it_is_told_of_its_commit_was_done(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lance has its rows, the restore records them and undoes them, and only then the load goes on."""
    file = lake.file(flights(20, 80))

    def undo(point: str) -> None:
        if point == "tables.commit.after-lance":
            monkeypatch.undo()
            _, undone = restore(lake, force=True)
            assert [job.job_id for job in undone.undone.jobs] == ["undone"]

    monkeypatch.setattr(commit, "reached", undo)
    assert lake.ingest(file, job_id="undone").rows == 20
    assert rows(lake) == sorted_rows(flights(60)) and "undone" not in lake.open().opened.state.jobs
    assert not lake.ingest(file, job_id="undone").already_done
    assert rows(lake) == sorted_rows(pa.concat_tables([flights(60), flights(20, 80)]))
    clean(lake)


def test_a_run_without_a_name_goes_back_to_the_newest_savepoint_of_people(lake: Lake) -> None:
    lake.ingest(lake.file(flights(20, 60)))
    save(lake, "newer")
    lake.ingest(lake.file(flights(20, 80)))
    done = run_service(lake.root, "flights", "RESTORE")
    assert isinstance(done, Restored) and done.undone.point.name == "newer"
    assert rows(lake) == sorted_rows(flights(80))
    assert run_service(lake.root, "flights", "RESTORE").status == "SKIPPED"
    [saved] = [name for name in lake.open().opened.state.savepoints if name.startswith("before-restore-")]
    restore(lake, saved)
    assert rows(lake) == sorted_rows(flights(100))
    lake.table(name="others")
    with pytest.raises(NotFound, match="no savepoint to go back to"):
        run_service(lake.root, "others", "RESTORE")
    clean(lake)


def test_times_of_before_and_after_a_restore_across_a_rewrite_are_found(lake: Lake) -> None:
    def moment() -> dt.datetime:
        time.sleep(0.02)
        now = dt.datetime.now(dt.UTC)
        time.sleep(0.02)
        return now

    first = moment()
    reinitialise_table(lake.store, lake.root, entry(lake).table_id, allow_destroy=True)
    lake.ingest(lake.file(flights(10)))
    second = moment()
    saved, _ = restore(lake)
    lake.ingest(lake.file(flights(5, 60)))
    third = moment()
    restore(lake, saved)
    fourth = moment()
    found = [dataset_at(lake.open().opened, at) for at in (first, second, third, fourth)]
    assert [number for number, _, _ in found] == [1, 2, 1, 2]
    counts = [old.checkout_version(version).count_rows() for _, old, version in found]
    assert counts == [60, 10, 65, 10]


def restore_at(lake: Lake, at: str) -> tuple[str, Restored]:
    saved, [done] = restore_tables(lake.store, lake.root, [preview_restore_at(lake.store, lake.root, entry(lake), at)])
    return saved, done


def test_a_version_without_a_savepoint_comes_back_and_can_be_undone(lake: Lake) -> None:
    lake.ingest(lake.file(flights(40, 60)), job_id="second")
    lake.ingest(lake.file(flights(10, 100)), job_id="third")
    now = rows(lake)
    undone = preview_restore_at(lake.store, lake.root, entry(lake), "3")
    assert (undone.rows, undone.versions, undone.point.label) == ((110, 100), 1, "version 3")
    assert [job.job_id for job in undone.jobs] == ["third"] and rows(lake) == now
    saved, done = restore_at(lake, "3")
    assert done.status == "SUCCEEDED" and rows(lake) == sorted_rows(flights(100))
    clean(lake)
    assert lake.ingest(lake.file(flights(40, 60)), job_id="second").already_done
    restore(lake, saved)
    assert rows(lake) == now
    assert restore_at(lake, str(lake.open().opened.state.lance_version))[1].status == "SKIPPED"
    assert restore_at(lake, "1")[1].status == "SUCCEEDED" and rows(lake) == []
    clean(lake)


def test_a_version_from_before_a_rewrite_comes_back_by_its_dataset(lake: Lake) -> None:
    before = content(lake)
    reinitialise_table(lake.store, lake.root, entry(lake).table_id, allow_destroy=True)
    lake.ingest(lake.file(flights(10, 500)))
    saved, done = restore_at(lake, "1:2")
    assert done.undone.point.label == "version 1:2" and content(lake) == before
    clean(lake)
    restore(lake, saved)
    assert rows(lake) == sorted_rows(flights(10, 500))
    clean(lake)


def test_a_time_brings_back_the_settings_of_that_time(lake: Lake) -> None:
    set_online(lake.store, entry(lake).table_id, online=False)
    time.sleep(0.05)
    then = dt.datetime.now(dt.UTC).isoformat()
    before = content(lake)
    time.sleep(0.05)
    set_online(lake.store, entry(lake).table_id, online=True)  # the version of the dataset stays the same
    lake.ingest(lake.file(flights(10, 60)))
    restore_at(lake, then)
    assert content(lake) == before and rows(lake) == sorted_rows(flights(60))
    clean(lake)


def plain(lake: Lake) -> lance.LanceDataset:
    return lance.dataset(lake.open().opened.location)


BY_PLAIN_LANCE: dict[str, Callable[[lance.LanceDataset], Any]] = {
    "append": lambda dataset: dataset.insert(flights(20, 60)),
    "delete": lambda dataset: dataset.delete("flight < 200"),
    "update": lambda dataset: dataset.update({"delay": "7"}, where="flight < 200"),
    "add a column": lambda dataset: dataset.add_columns({"twice": "flight * 2"}),
    "drop a column": lambda dataset: dataset.drop_columns(["delay"]),
    "compact": lambda dataset: dataset.optimize.compact_files(),
}


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("case", BY_PLAIN_LANCE)
def test_a_version_that_was_recorded_only_with_a_later_one_comes_back(lake: Lake, case: str) -> None:
    plain(lake).insert(flights(20, 200))
    lake.open()
    dataset = plain(lake)
    BY_PLAIN_LANCE[case](dataset)
    wanted = dataset.version
    then = sorted_rows(dataset.to_table())
    lance.dataset(dataset.uri).delete("flight = 919")  # deployer records both as one version
    set_online(lake.store, entry(lake).table_id, online=False)
    now = rows(lake)
    undone = preview_restore_at(lake.store, lake.root, entry(lake), str(wanted))
    assert undone.rows == (len(now), len(then)) and undone.versions == 1
    saved, done = restore_at(lake, str(wanted))
    assert done.status == "SUCCEEDED" and rows(lake) == then
    clean(lake)
    restore(lake, saved)
    assert rows(lake) == now
    clean(lake)


def test_such_a_restore_whose_record_was_lost_is_recorded_by_the_next_command(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = plain(lake)
    for flight in (919, 838):
        dataset.delete(f"flight = {flight}")
    then = sorted_rows(dataset.checkout_version(3).to_table())

    def stop(point: str) -> None:
        if point == "services.restore.after-lance":
            raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(restoring, "reached", stop)
        with pytest.raises(SystemExit):
            restore_at(lake, "3")
    assert rows(lake) == then
    assert refresh(lake.store, lake.root, entry(lake).table_id).lance_version == 5
    assert rows(lake) == then
    clean(lake)


def test_such_a_version_of_a_dataset_from_before_a_rewrite_comes_back(lake: Lake) -> None:
    dataset = plain(lake)
    for flight in (919, 838):
        dataset.delete(f"flight = {flight}")
    then = sorted_rows(dataset.checkout_version(3).to_table())
    reinitialise_table(lake.store, lake.root, entry(lake).table_id, allow_destroy=True)
    lake.ingest(lake.file(flights(10, 500)))
    saved, _ = restore_at(lake, "1:3")
    assert rows(lake) == then
    clean(lake)
    restore(lake, saved)
    assert rows(lake) == sorted_rows(flights(10, 500))
    clean(lake)


def test_versions_that_cannot_be_restored_are_refused(lake: Lake) -> None:
    for at, error in (("9", NotFound), ("7:1", NotFound), ("soon", InvalidInput), ("2001-01-01", NotFound)):
        with pytest.raises(error):
            preview_restore_at(lake.store, lake.root, entry(lake), at)
