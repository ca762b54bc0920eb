"""Backfills as tasks of Spark: the same values, errors and checkpoints as in threads."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deployer.columns.backfill.backfill import BackfillJob, backfill
from deployer.columns.backfill.request import checked_backfill
from deployer.columns.backfill.resolve import definition_of
from deployer.columns.fill.spark_tasks import OnSpark, TaskSizes
from deployer.errors import FunctionFailed
from deployer.functions import stop_above, udf
from deployer.functions.model import UDF
from deployer.table import Table
from tests.columns.backfill.conftest import with_computed
from tests.columns.backfill.functions import FORMS, of_sevens, picky, strict
from tests.columns.rows import rows, values
from tests.tables.lakes import Lake

pytestmark = pytest.mark.full


def run(
    table: Table, function: UDF | None, spark: Any, column: str = "score", sizes: TaskSizes | None = None, **given: Any
) -> Any:
    """Backfills on Spark, whose workers do not find the modules of the tests."""
    request = checked_backfill(column, **given)
    job = BackfillJob(table._newest(), request, "monday", executor=OnSpark(lambda: spark, sizes))

    def define(opened: Any) -> Any:
        return definition_of(opened, column, function, lambda *_: sys.exit("the definition is not looked up"))

    return backfill(job, define)


@pytest.mark.parametrize("form", ["scalar", "arrow", "class"])
def test_values(form: str, table: Table, spark: Any) -> None:
    done = run(table, FORMS[form], spark)
    assert values(table, "score") == {i: i * 2 + 1.0 for i in range(30)} and done.rows == 30


def test_sql_and_a_condition(table: Table, spark: Any) -> None:
    run(table, None, spark, "km", where="id >= 5 and id < 15")
    found = values(table, "km")
    assert [i for i, each in found.items() if each is not None] == [*range(5, 15)] and found[10] == 16.09344


@pytest.mark.parametrize("sizes", [TaskSizes(8, 3, 30), TaskSizes(1, 3, 30), TaskSizes(8, 25, 30)])
def test_tasks_of_a_size(sizes: TaskSizes, table: Table, lake: Lake, spark: Any, tmp_path: Path) -> None:
    """Fragments that are split, in fewer tasks than the cluster has slots, and several fragments in a task."""
    path = str(tmp_path / "calls")  # in the function, as workers keep the environment that the session began in

    @udf(version="1")
    def counted(id: int, rating: float) -> float:
        with Path(path).open("a") as file:
            file.write(f"{id}\n")
        return rating * 2 + 1

    done = run(table, counted, spark, sizes=sizes)
    assert values(table, "score") == {i: i * 2 + 1.0 for i in range(30)}
    assert sorted(map(int, Path(path).read_text().split())) == [*range(30)] and done.stats.fragments == 3
    assert not [each for each in (Path(lake.root) / "_work").rglob("*") if each.is_file()]


def test_errors_are_recorded_by_tasks(table: Table, spark: Any) -> None:
    assert run(table, picky, spark).errors == 4
    assert [each.row_key for each in table.get_errors("monday")] == [{"id": i} for i in (3, 10, 17, 24)]


@pytest.mark.parametrize("sizes", [None, TaskSizes(8, 3, 30)])
def test_the_share_of_failed_rows_is_that_of_all_tasks(table: Table, spark: Any, sizes: TaskSizes | None) -> None:
    def limited(share: float) -> UDF:
        return udf(data_type=pa.float64(), on_error=stop_above(share, after_rows=30), version="1")(of_sevens)

    with pytest.raises(FunctionFailed, match=r"4 of 30 rows failed, more than 10%"):
        run(table, limited(0.1), spark, sizes=sizes)
    assert values(table, "score") == dict.fromkeys(range(30))
    with pytest.raises(FunctionFailed, match=r"4 of 30 rows failed, more than 10%"):
        run(table, limited(0.1), spark, sizes=sizes)


def test_a_share_of_failed_rows_that_one_task_alone_has_is_no_reason_to_stop(table: Table, spark: Any) -> None:
    limited = udf(data_type=pa.float64(), on_error=stop_above(0.15, after_rows=30), version="1")(of_sevens)
    assert run(table, limited, spark).errors == 4  # two of them in one task of ten rows


def test_a_failure_ends_the_run(table: Table, spark: Any) -> None:
    with pytest.raises(FunctionFailed, match="the row id 13"):
        run(table, strict, spark)


def test_a_class_is_set_up_once_for_each_worker(table: Table, spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "set-up")

    class Announced:
        def setup(self) -> None:
            with Path(path).open("a") as file:
                file.write(f"{os.getpid()}\n")

        def __call__(self, rating: float) -> float:
            return rating

    for start in range(30, 80, 10):
        table.add(with_computed(rows(start, start + 10)))
    run(table, udf(data_type=pa.float64())(Announced), spark)
    workers = (tmp_path / "set-up").read_text().split()
    assert values(table, "score") == {i: float(i) for i in range(80)}
    assert len(workers) == len(set(workers)) < 8 and str(os.getpid()) not in workers
