"""Changes of rows whose parts Spark's tasks do: the same rows, files by leaf, and one commit."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deployer.errors import Interrupted, InvalidInput, Refused
from deployer.platform.system.progress import Progress, no_progress
from deployer.runs.rewriting.row_tasks import run_with_spark, tasks_by
from deployer.specs.model import Storage
from deployer.tables.rows.delete import delete_rows
from deployer.tables.rows.merging import merge, source_parts
from deployer.tables.rows.merging.merge import merge_rows
from deployer.tables.rows.tasks import RowsDone, tasks_of
from deployer.tables.rows.update import update_rows
from tests.tables.lakes import Lake, flights, sorted_rows
from tests.tables.rows.test_delete import differences, filled, opened
from tests.tables.rows.test_merge import KEY, RULES, merged

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


@pytest.mark.parametrize("options", [{}, {"row_keys": ()}, {"storage": Storage(stable_row_ids=True)}])
@pytest.mark.parametrize("case", ["upsert", "delete matched, insert others", "replace a part"])
def test_rows_are_merged_in_parts(
    lake: Lake, spark: Any, case: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_parts, "PART_ROWS", 16)
    monkeypatch.setattr(merge, "ROWS_ELSEWHERE", 60)
    table, rules = filled(lake, 200, **options), RULES[case]
    source = flights(60, 170).select(["delay", "flight", "carrier"])
    on = KEY if not table.row_keys else None
    foreseen = merge_rows(table, source, on, rules, dry_run=True, run_tasks=with_(spark))
    change = merge_rows(table, source, on, rules, run_tasks=with_(spark), job_id="m")
    assert sorted_rows(lake.open().scan().to_table()) == merged(flights(200).to_pylist(), source.to_pylist(), rules)
    assert change.counts == foreseen.counts and differences(lake) == []
    assert lake.open().opened.state.lance_version == table.state.lance_version + 1


def test_a_merge_that_cannot_be_changes_nothing(lake: Lake, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_parts, "PART_ROWS", 16)
    table, files = filled(lake, 50), lake.data_files()
    twice = pa.concat_tables([flights(100), flights(12)])
    with pytest.raises(Refused, match=r"12 keys are in more than one of the rows \(first: \(carrier="):
        merge_rows(table, twice, run_tasks=with_(spark))
    with pytest.raises(InvalidInput, match="'carrier' is missing, and the table needs it"):
        merge_rows(table, flights(40, 40).drop(["carrier"]), "flight", run_tasks=with_(spark))
    assert lake.open().opened.state == table.state and lake.data_files() == files


@dataclass(frozen=True)
class Waiting:
    """A task that ends when there is a file."""

    location: str
    version: int
    released: Path
    rows: int = 0

    def done(self, _: Any) -> RowsDone:
        while not self.released.exists():
            time.sleep(0.05)
        return RowsDone({})


def test_a_job_is_cancelled(lake: Lake, spark: Any, tmp_path: Path) -> None:
    table = filled(lake, 50)

    def stop(_: Progress) -> None:
        raise Interrupted("stopped")

    waiting = Waiting(table.location, table.state.lance_version, tmp_path / "released")
    try:
        with pytest.raises(Interrupted, match="stopped"):
            run_with_spark(spark, [waiting], stop)
    finally:
        waiting.released.touch()


def test_little_is_done_in_this_process(lake: Lake) -> None:
    def never() -> Any:
        raise AssertionError("Spark is not needed")

    assert delete_rows(filled(lake), "delay > 200", run_tasks=tasks_by("auto", never)).rows
