"""Builds an index of a large table in parts, as tasks of Spark, where a cluster is declared.

`up` and calls of a program send the build to a declared cluster on AWS. Services and loads build indexes that waited
for rows, in the place where they run themselves.

A part is a segment of the index over some fragments. Lance uses all cores of one machine for a single call, so parts
help only for tables that take one machine a long time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from deployer.compute.clusters import local_default
from deployer.compute.spark.local import LocalCluster, job_session, was_submitted
from deployer.live.reader import live_instance
from deployer.plan.planning import work_places
from deployer.runs.rewriting.executor import OnRows, with_spark
from deployer.tables.layout.indexes.parts import IN_ONE_PART, BuildPlan, PlanBuild

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deployer.compute.running.table_jobs import TableCluster
    from deployer.datasets.indexes.segments import SegmentJob
    from deployer.datasets.lance_types import LanceDataset
    from deployer.state.model.entities import InstanceState

SMALL_ROWS = work_places.SMALL_ROWS  #: up to this many rows, this process builds an index
PART_ROWS = 1_000_000  #: the default least number of rows of a part; a Spark task for fewer rows is not faster


@dataclass(frozen=True, slots=True)
class IndexSession:
    """A session that builds parts, `at_once` of them at a time. `start` starts it once there is an index to build."""

    start: Callable[[], SparkSession]
    at_once: int

    def plan(
        self, location: str, rows: int, parts: int | None = None, options: Mapping[str, Any] | None = None
    ) -> BuildPlan:
        """Returns the plan of an index build for the dataset with this many rows. By default, the index has one part
        for each PART_ROWS rows, and at most as many parts as run at a time."""
        by_rows = max(1, min(self.at_once, rows // PART_ROWS))
        return BuildPlan(parts or by_rows, partial(_run, self.start, location), options or {})


def session_of(spark: SparkSession) -> IndexSession:
    """Returns the session of the caller."""
    return IndexSession(lambda: spark, int(spark.sparkContext.defaultParallelism))


def declared_session(instance: InstanceState, rows: int) -> IndexSession | None:
    """Returns the session that builds indexes of a table with this many rows; None where this process builds them.

    It is the session of the cluster on which this process is a job, otherwise one on the local cluster that the
    instance declares.
    """
    if rows <= SMALL_ROWS:
        return None
    if was_submitted():
        return session_of(job_session(LocalCluster))
    live = live_instance(instance)
    cluster = None if live is None else local_default(live.clusters)
    if cluster is None:
        return None
    sizes = LocalCluster.of(cluster.options)
    return IndexSession(partial(job_session, lambda: sizes), sizes.cores or os.cpu_count() or 1)


def declared_there(instance: InstanceState, root: str, where: str, rows: int) -> TableCluster | None:
    """Returns the cluster on AWS that builds indexes of a table with this many rows: the instance's only one, or the
    one called `default`.

    None where there is none, for a small table, and in a job. Raises Refused where it is declared and not published.
    """
    if rows <= SMALL_ROWS or was_submitted() or (live := live_instance(instance)) is None:
        return None
    from deployer.compute.running.table_jobs import published  # its client of AWS takes 9 MiB of memory

    return published(root, live, "an index of the table is to be built", where)


def plans_by_size(instance: Callable[[], InstanceState]) -> PlanBuild:
    """Returns a function that plans builds of indexes by the number of rows; the instance is read only for many
    rows."""

    def plan(location: str, rows: int) -> BuildPlan:
        if rows <= SMALL_ROWS or (session := declared_session(instance(), rows)) is None:
            return IN_ONE_PART
        return session.plan(location, rows)

    return plan


def _run(
    start: Callable[[], SparkSession],
    location: str,
    dataset: LanceDataset,  # not used: tasks open the dataset themselves
    jobs: Sequence[SegmentJob],
    on_rows: OnRows,
) -> list[list[Any]]:
    return with_spark(start(), location, jobs, on_rows)
