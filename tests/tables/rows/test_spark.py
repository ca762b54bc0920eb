"""Deletions and updates whose parts Spark's tasks do: the same rows, files by leaf, and one commit."""

from __future__ import annotations

from typing import Any

import pytest

from deployer.compute.spark.local import LocalCluster
from deployer.errors import InvalidInput, Refused
from deployer.platform.system.progress import no_progress
from deployer.tables.rows.delete import delete_rows
from deployer.tables.rows.tasks import tasks_of
from deployer.tables.rows.update import update_rows
from spark_jobs.rows import run_with_spark, tasks_by
from tests.tables.lakes import Lake, flights, sorted_rows
from tests.tables.rows.test_delete import differences, filled, opened

pytestmark = pytest.mark.spark


def with_(session: Any) -> Any:
    return lambda _, tasks: run_with_spark(session, tasks, no_progress)


def test_rows_are_deleted_and_updated_by_leaf(lake: Lake, spark: Any) -> None:
    table = filled(lake)
    assert len(tasks_of(table, table.dataset(), "delay > 100", in_parts=True)) == 4
    deleted = delete_rows(table, "delay > 200", run_tasks=with_(spark), job_id="d")
    change = update_rows(
        opened(lake),
        "delay > 100",
        {"at": None},
        values_sql={"carrier": "'ZZ'", "delay": "delay + 1"},
        run_tasks=with_(spark),
        job_id="u",
    )
    rows = [row for row in flights(300).to_pylist() if row["delay"] is None or row["delay"] <= 200]
    expected = [
        row | {"at": None, "carrier": "ZZ", "delay": row["delay"] + 1} if (row["delay"] or 0) > 100 else row
        for row in rows
    ]
    assert sorted_rows(lake.open().scan().to_table()) == sorted(expected, key=repr)
    assert deleted.counts.deleted == 300 - len(rows) and change.counts.updated == 86 and differences(lake) == []
    assert lake.open().opened.state.lance_version == table.state.lance_version + 2
    assert all(file.sorted and file.partition for file in lake.open().opened.state.files)


def test_what_cannot_be_changes_nothing(lake: Lake, spark: Any) -> None:
    table, files = filled(lake, 50), lake.data_files()
    with pytest.raises(InvalidInput, match="no column 'dely'; did you mean 'delay'"):
        delete_rows(table, "dely > 3", run_tasks=with_(spark))
    with pytest.raises(Refused, match="rows cannot be updated, so nothing was"):
        update_rows(table, "flight > 0", {"carrier": None}, run_tasks=with_(spark))
    assert lake.open().opened.state == table.state and lake.data_files() == files


def test_little_is_done_in_this_process(lake: Lake) -> None:
    def never() -> LocalCluster:
        raise AssertionError("Spark is not needed")

    assert delete_rows(filled(lake), "delay > 200", run_tasks=tasks_by("auto", never)).rows
