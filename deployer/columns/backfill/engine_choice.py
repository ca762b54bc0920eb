"""Chooses whether a backfill runs in this process or with Spark, and what writes its fragments there."""

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

SMALL_ROWS = 20_000_000  #: rows up to here are computed in this process, as changes of rows are

Sizes = Callable[[], LocalCluster]  #: returns the sizes of a local session


def choose_engine(wanted: Engine, rows: int) -> tuple[str, str]:
    """Returns the engine of a backfill of so many rows, and the reason for it."""
    amount = f"up to {rows:,} rows"
    if wanted != "auto":
        return wanted, f"as asked for ({amount})"
    if rows > SMALL_ROWS:
        return "spark", f"{amount}: more than {SMALL_ROWS:,}"
    return "driver", f"{amount}: this process finishes before Spark would start"


def executor_of(engine: str, table: OpenTable, request: BackfillRequest, cluster: Sizes | None) -> Executor:
    """Returns what writes the fragments. `cluster` is asked for the sizes of a local session; None: those of the
    declared local cluster."""
    rows = table.state.files.rows
    if engine != "spark":
        workers = slots_of(request.concurrency)
        return InThreads(request.concurrency, task_rows(request.task_size, rows, workers))
    sizes = cluster or partial(declared_cluster, table.store.instance(), table.address)
    return OnSpark(partial(job_session, sizes), TaskSizes(request.concurrency, request.task_size, rows))
