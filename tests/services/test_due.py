"""Which services are due by what was written, and that a load runs them at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import lance
import pytest

from deployer.platform.files.json_values import JSON
from deployer.runs.records import queue_run, start_run
from deployer.services.api.attachments import create_service, pause_service
from deployer.services.kinds.compact import compact_table
from deployer.services.triggers.after_load import run_due_services
from deployer.services.triggers.due import Due, due_services
from deployer.state.model.services import Service, ServiceKind
from deployer.tables.admin.naming import set_online
from deployer.tables.append import open_appender
from tests.tables.lakes import Lake, flights, sorted_rows


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    lake.table(splits=())
    return lake


def attach(lake: Lake, trigger: Mapping[str, JSON], kind: ServiceKind = "COMPACT") -> None:
    opened = lake.open().opened
    create_service(lake.store, opened.entry.table_id, Service(kind, "AUTOMATIC", trigger))


def append(lake: Lake, times: int, rows: int = 10) -> None:
    appender = open_appender(lake.root, "flights")
    start = lake.open().count()
    for number in range(times):
        appender.append(flights(rows, start + number * rows))
    appender.close()


def due(lake: Lake) -> list[Due]:
    return due_services(lake.open().opened)


def delete(lake: Lake) -> None:
    lance.dataset(lake.open().opened.location).delete("flight < 500")


@pytest.mark.parametrize(
    ("trigger", "before", "last", "why"),
    [
        ({"commits": 3}, 2, lambda lake: append(lake, 1), "3 commits"),
        ({"rows": 30}, 2, lambda lake: append(lake, 1), "30 rows written"),
        ({"bytes": 4500}, 2, lambda lake: append(lake, 1), "kB written"),
        ({"small_files": 3}, 2, lambda lake: append(lake, 1), "3 small files"),
        ({"deleted_share": 0.3}, 2, delete, "% deleted rows"),
        ({"commits": 100, "small_files": 3}, 2, lambda lake: append(lake, 1), "3 small files"),
    ],
    ids=lambda each: "-".join(each) if isinstance(each, dict) else "",
)
def test_a_condition_holds_once_enough_was_written_and_not_again_after_a_run(
    trigger: dict[str, JSON], before: int, last: Callable[[Lake], None], why: str, lake: Lake
) -> None:
    attach(lake, trigger)
    assert due(lake) == []
    append(lake, before)
    assert due(lake) == []
    last(lake)
    [found] = due(lake)
    assert found.service == "COMPACT" and found.why.endswith(why)
    compact_table(lake.root, "flights")
    assert due(lake) == []


def test_commits_of_others_count(lake: Lake) -> None:
    attach(lake, {"commits": 3})
    append(lake, 1)
    dataset = lance.dataset(lake.open().opened.location)
    for start in (10, 20):
        dataset = lance.write_dataset(flights(10, start), dataset, mode="append")
    assert [each.why for each in due(lake)] == ["3 commits"]


def test_nothing_is_due_while_paused_running_offline_or_on_demand(lake: Lake) -> None:
    attach(lake, {"commits": 1})
    append(lake, 2)
    table_id = lake.open().opened.entry.table_id
    assert [each.service for each in due(lake)] == ["COMPACT"]
    set_online(lake.store, table_id, False)
    assert due(lake) == []
    set_online(lake.store, table_id, True)
    run = queue_run(lake.store, table_id, "COMPACT", cause="test")
    assert due(lake) == []
    start_run(lake.store, table_id, run.run_id).finish("FAILED", reason="a test")
    assert [each.service for each in due(lake)] == ["COMPACT"]  # a failed run has done nothing for it
    pause_service(lake.store, table_id, "COMPACT")
    assert due(lake) == []


def test_a_load_runs_what_is_due(lake: Lake) -> None:
    attach(lake, {"commits": 2})
    append(lake, 1)
    assert run_due_services(lake.root, "air.flights") == []
    append(lake, 1)
    [ran] = run_due_services(lake.root, "air.flights")
    assert ran.as_json() == {"service": "COMPACT", "why": "2 commits", "status": "SUCCEEDED", "failure": ""}
    table = lake.open()
    assert table.opened.state.files.count == 1
    assert sorted_rows(table.scan().to_table()) == sorted_rows(flights(20))
    [run] = table.opened.state.runs.values()
    assert run.cause == "trigger: 2 commits"


def test_a_service_that_fails_is_told_and_leaves_the_load_done(lake: Lake) -> None:
    append(lake, 2)
    attach(lake, {"commits": 1}, "CLEAN")
    # options of another release, with which the run cannot begin
    raw = Service("COMPACT", "AUTOMATIC", {"commits": 1}, {"targets": "7"}, unsafe_raw=True)
    create_service(lake.store, lake.open().opened.entry.table_id, raw)
    found = {each.service: each for each in run_due_services(lake.root, "air.flights")}
    assert found["COMPACT"].done is None and "COMPACT has no option `targets`" in found["COMPACT"].failure
    assert found["CLEAN"].done.status == "SKIPPED"


@pytest.mark.parametrize("trigger", [{"commits": 1}, {"rows": 1}, {"bytes": 1}, {"small_files": 1}], ids=str)
def test_what_was_written_counts_once_compact_has_something_to_take(lake: Lake, trigger: dict[str, JSON]) -> None:
    attach(lake, trigger)
    append(lake, 1)
    assert due(lake) == []  # one file, with nothing to merge it with
    append(lake, 1)
    assert [each.service for each in due(lake)] == ["COMPACT"]


def test_what_was_written_counts_for_other_services_whatever_compact_would_take(lake: Lake) -> None:
    attach(lake, {"commits": 1}, "AUTOSAVEPOINT")
    append(lake, 1)
    assert [each.service for each in due(lake)] == ["AUTOSAVEPOINT"]


def test_small_files_count_where_compact_would_merge_them(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.table(splits=[("AA",), ("B6",), ("DL",), ("UA",)])
    attach(lake, {"small_files": 3})
    append(lake, 1, 60)
    assert len({file.partition for file in lake.open().opened.state.files}) == lake.open().opened.state.files.count >= 3
    assert due(lake) == []  # one small file in each leaf: there is nothing to merge
    append(lake, 1, 60)
    [found] = due(lake)
    assert found.why == f"{lake.open().opened.state.files.count} small files"
    done = compact_table(lake.root, "flights")
    assert done.status == "SUCCEEDED" and due(lake) == []


def test_small_files_of_a_table_without_keys_count(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.table(row_keys=(), splits=())
    attach(lake, {"small_files": 3})
    append(lake, 3)
    [found] = due(lake)
    assert found.why == "3 small files"


EVEN = "price >= 100 and price < 109 or price >= 200 and price < 209"  # one row in eighteen, of each file
FIRST = f"{EVEN} or price < 23"  # and more of the first: a fifth


def delete_some(lake: Lake, condition: str) -> None:
    lance.dataset(lake.open().opened.location).delete(condition)
    lake.open()


@pytest.mark.parametrize(
    ("row_keys", "share", "before", "last", "why"),
    [
        (("carrier", "flight"), 0.05, 2, EVEN, ""),  # of each file less than it rewrites for
        ((), 0.05, 2, EVEN, ""),
        (("carrier", "flight"), 0.05, 2, FIRST, "10% deleted rows"),  # one file's alone
        ((), 0.05, 2, FIRST, "12.8% deleted rows"),  # what follows is rewritten too, to keep its place
        (("carrier", "flight"), 0.12, 2, FIRST, ""),
    ],
)
def test_deleted_rows_count_where_compact_would_drop_them(
    row_keys: tuple[str, ...], share: float, before: int, last: str, why: str, tmp_path: Path
) -> None:
    """A run that is due rewrites something, and is not due again after it, nor after commits that change little."""
    lake = Lake(tmp_path)
    lake.table(row_keys=row_keys, splits=())
    options: dict[str, JSON] = {"target_rows": 160, "max_deleted_share": 0.1}
    opened = lake.open().opened
    create_service(
        lake.store, opened.entry.table_id, Service("COMPACT", "AUTOMATIC", {"deleted_share": share}, options)
    )
    append(lake, before, 160)
    delete_some(lake, last)
    found = due(lake)
    assert [each.why for each in found] == ([why] if why else [])
    done = compact_table(lake.root, "flights")
    assert not why or done.status == "SUCCEEDED"
    delete_some(lake, "price >= 210 and price < 211")
    assert due(lake) == []
