"""Backfills as tasks of Spark: the same values, errors and checkpoints as in threads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from deployer.columns.backfill.backfill import BackfillJob, backfill
from deployer.columns.backfill.request import checked_backfill
from deployer.columns.backfill.resolve import definition_of
from deployer.columns.fill.spark_tasks import OnSpark
from deployer.errors import FunctionFailed
from deployer.functions.model import UDF
from deployer.table import Table
from tests.columns.backfill import functions
from tests.columns.backfill.functions import FORMS, picky, strict
from tests.columns.rows import values

pytestmark = pytest.mark.full


@pytest.fixture(autouse=True)
def _sent_to_workers() -> Iterator[None]:
    """The functions of the tests go to Spark's workers with the tasks, as the workers do not find the tests."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(functions)  # type: ignore[no-untyped-call]
    yield
    cloudpickle.unregister_pickle_by_value(functions)  # type: ignore[no-untyped-call]


def run(table: Table, udf: UDF | None, spark: Any, column: str = "score", **given: Any) -> Any:
    request = checked_backfill(column, **given)
    job = BackfillJob(table._newest(), request, "monday", executor=OnSpark(lambda: spark))

    def define(opened: Any) -> Any:
        return definition_of(opened, column, udf, lambda *_: sys.exit("the definition is not looked up"))

    return backfill(job, define)


@pytest.mark.parametrize("form", ["scalar", "arrow", "class"])
def test_values(form: str, table: Table, spark: Any) -> None:
    done = run(table, FORMS[form], spark)
    assert values(table, "score") == {i: i * 2 + 1.0 for i in range(30)} and done.rows == 30


def test_sql_and_a_condition(table: Table, spark: Any) -> None:
    run(table, None, spark, "km", where="id >= 5 and id < 15")
    found = values(table, "km")
    assert [i for i, each in found.items() if each is not None] == [*range(5, 15)] and found[10] == 16.09344


def test_errors_are_recorded_by_tasks(table: Table, spark: Any) -> None:
    assert run(table, picky, spark).errors == 4
    assert [each.row_key for each in table.get_errors("monday")] == [{"id": i} for i in (3, 10, 17, 24)]


def test_a_failure_ends_the_run(table: Table, spark: Any) -> None:
    with pytest.raises(FunctionFailed, match="the row id 13"):
        run(table, strict, spark)
