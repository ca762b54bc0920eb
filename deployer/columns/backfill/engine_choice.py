"""Chooses whether a backfill runs in this process or with Spark, and the executor that writes its fragments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from deployer.columns.backfill.request import BackfillRequest
from deployer.columns.fill.executor import Executor, InThreads, slots_of
from deployer.columns.fill.spark_tasks import OnSpark, TaskSizes
from deployer.columns.fill.tasks import task_rows
from deployer.compute.clusters import declared_cluster
from deployer.compute.spark.local import LocalCluster, job_session
from deployer.runs.rewriting.run import Engine
from deployer.tables.open_table import OpenTable

SMALL_ROWS = 20_000_000  #: most rows that this process computes with the engine `auto`, as for changes of rows

Sizes = Callable[[], LocalCluster]  #: returns the sizes of a local session


def choose_engine(wanted: Engine, rows: int) -> tuple[str, str]:
    """Returns the engine of a backfill of `rows` rows, and the reason for the choice."""
    amount = f"up to {rows:,} rows"
    if wanted != "auto":
        return wanted, f"as asked for ({amount})"
    if rows > SMALL_ROWS:
        return "spark", f"{amount}: more than {SMALL_ROWS:,}"
    return "driver", f"{amount}: this process finishes before Spark would start"


def executor_of(engine: str, table: OpenTable, request: BackfillRequest, cluster: Sizes | None) -> Executor:
    """Returns the executor that writes the fragments. `cluster` returns the sizes of a local Spark session; None stands
    for the declared local cluster."""
    rows = table.state.files.rows
    if engine != "spark":
        workers = slots_of(request.concurrency)
        return InThreads(request.concurrency, task_rows(request.task_size, rows, workers))
    sizes = cluster or partial(declared_cluster, table.store.instance(), table.address)
    return OnSpark(partial(job_session, sizes), TaskSizes(request.concurrency, request.task_size, rows))
