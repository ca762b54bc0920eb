"""RESTORE of several tables: all of them, or none, whoever comes in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lance
import pytest

from deployer.datasets.recovery.restored import commit_restore
from deployer.errors import Conflict, Refused
from deployer.runs.records import cancel_run, queue_run, runs_of, start_run
from deployer.runs.runner import RunCancelled
from deployer.services.restore import restore_tables, restoring
from deployer.services.restore.planning import Undoing, preview_restore
from deployer.services.restore.restoring import Restored
from deployer.services.savepoints.savepoints import make_savepoint
from deployer.state.backends.dynamodb.backend import DynamoBackend
from deployer.state.log.updates import TableRestored
from deployer.tables.admin.naming import set_online
from deployer.tables.maintenance.verify.verify import verify
from deployer.tables.open_table import open_entry
from tests.tables.lakes import Lake, flights, sorted_rows

NAMES = ("first", "second")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two tables of 20 rows at savepoint `then`, and of 30 now."""
    lake = Lake(tmp_path)
    for name in NAMES:
        lake.table(name=name)
        lake.ingest(lake.file(flights(20)), table=name)
    make_savepoint(lake.store, lake.root, [entry(lake, name) for name in NAMES], "then")
    for name in NAMES:
        lake.ingest(lake.file(flights(10, 20)), table=name)
    return lake


def entry(lake: Lake, name: str) -> Any:
    return lake.open(name).opened.entry


def state(lake: Lake, name: str) -> Any:
    return lake.store.table(entry(lake, name).table_id)


def planned(lake: Lake) -> Sequence[Undoing]:
    return preview_restore(lake.store, lake.root, [entry(lake, name) for name in NAMES], "then")


def restore(lake: Lake, plan: Sequence[Undoing], **options: Any) -> list[Restored]:
    return restore_tables(lake.store, lake.root, plan, **options)[1]


def append(lake: Lake, name: str) -> None:
    dataset = lance.dataset(lake.open(name).opened.location)
    lance.write_dataset(flights(5, 900).cast(dataset.schema), dataset.uri, mode="append")


def counts(lake: Lake) -> list[int]:
    """The rows of the tables, of which nothing is running any more."""
    assert not any(state(lake, name).intents for name in NAMES)
    assert not any(run.is_open for name in NAMES for run in runs_of(state(lake, name)))
    assert [str(one) for each in verify(lake.store, lake.root, full=True) for one in each.differences] == []
    return [lake.open(name).count() for name in NAMES]


def test_one_transaction_records_all_under_one_run(lake: Lake) -> None:
    done = restore(lake, planned(lake))
    assert [each.status for each in done] == ["SUCCEEDED", "SUCCEEDED"] and len({each.run_id for each in done}) == 1
    recorded = [
        each.txn_id
        for name in NAMES
        for each in lake.store.log(entry(lake, name).table_id)
        if any(isinstance(update, TableRestored) for update in each.updates)
    ]
    assert len(recorded) == 2 and len(set(recorded)) == 1
    assert counts(lake) == [20, 20]
    assert [sorted_rows(lake.open(name).scan().to_table()) for name in NAMES] == 2 * [sorted_rows(flights(20))]


def test_a_table_that_was_changed_since_the_preview_keeps_all_as_they_are(lake: Lake) -> None:
    plan = planned(lake)
    append(lake, "second")
    with pytest.raises(Conflict, match=r"table/air.second: .*nothing was restored"):
        restore(lake, plan)
    assert counts(lake) == [30, 35]
    assert [each.status for each in restore(lake, plan, force=True)] == ["SUCCEEDED", "SUCCEEDED"]
    assert counts(lake) == [20, 20]


def test_a_run_on_one_table_keeps_all_as_they_are(lake: Lake) -> None:
    table_id = entry(lake, "second").table_id
    run = queue_run(lake.store, table_id, "COMPACT", cause="test", needs_service=False)
    held = start_run(lake.store, table_id, run.run_id)
    with pytest.raises(Conflict, match="of COMPACT is RUNNING"):
        restore(lake, planned(lake))
    held.finish("SKIPPED")
    assert counts(lake) == [30, 30] and not runs_of(state(lake, "first"), "RESTORE")


def before_commit_to_second(monkeypatch: pytest.MonkeyPatch, act: Callable[[str], None]) -> None:
    """Does something when the first table has its commit in Lance, and the second is about to get its own."""
    seen = []

    def late(location: str, *arguments: Any) -> None:
        seen.append(location)
        if len(seen) == 2:
            act(location)
        commit_restore(location, *arguments)

    monkeypatch.setattr(restoring, "commit_restore", late)


@pytest.mark.parametrize("changed", ["rows by plain Lance", "a setting"])
def test_a_table_that_others_change_in_between_keeps_all_as_they_are(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    def act(_: str) -> None:
        if changed == "a setting":
            set_online(lake.store, entry(lake, "second").table_id, online=False)
        else:
            append(lake, "second")

    before_commit_to_second(monkeypatch, act)
    with pytest.raises(Conflict, match=r"table/air.second: the table was changed since the preview"):
        restore(lake, planned(lake))
    assert counts(lake) == [30, 30 if changed == "a setting" else 35]
    assert state(lake, "second").properties.online is (changed != "a setting")
    assert [runs_of(state(lake, name), "RESTORE")[0].status for name in NAMES] == ["FAILED", "FAILED"]


def test_what_stops_it_in_between_keeps_all_as_they_are(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def act(_: str) -> None:
        raise KeyboardInterrupt

    before_commit_to_second(monkeypatch, act)
    with pytest.raises(KeyboardInterrupt):
        restore(lake, planned(lake))
    assert counts(lake) == [30, 30]
    assert [runs_of(state(lake, name), "RESTORE")[0].status for name in NAMES] == ["CANCELLED", "CANCELLED"]


def test_who_reads_in_between_sees_all_tables_as_before_and_who_loads_is_kept_off(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def act(_: str) -> None:
        seen.extend(lake.open(name).count() for name in NAMES)
        for name in NAMES:
            with pytest.raises(Conflict, match="being restored"):
                lake.ingest(lake.file(flights(5, 30)), table=name)

    before_commit_to_second(monkeypatch, act)
    restore(lake, planned(lake))
    assert seen == [30, 30] and counts(lake) == [20, 20]


def test_who_cancels_the_run_of_one_table_cancels_all(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def cancelled(*arguments: Any) -> Any:
        run = runs_of(state(lake, "second"), "RESTORE")[0]
        cancel_run(lake.store, entry(lake, "second").table_id, run.run_id)
        return open_entry(*arguments)

    plan = planned(lake)
    monkeypatch.setattr("deployer.runs.records.LOOK", 0.0)
    monkeypatch.setattr(restoring, "open_entry", cancelled)
    with pytest.raises(RunCancelled):
        restore(lake, plan)
    assert counts(lake) == [30, 30]


def test_more_tables_than_a_transaction_has_are_refused(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    assert DynamoBackend.transaction_logs == 49
    monkeypatch.setattr("deployer.state.backends.sqlite.backend.SqliteBackend.transaction_logs", 1)
    versions = [state(lake, name).version for name in NAMES]
    with pytest.raises(Refused, match=r"2 tables cannot be restored together: .* at most 1"):
        restore(lake, planned(lake))
    assert [state(lake, name).version for name in NAMES] == versions
