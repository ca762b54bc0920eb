"""The Spark session that a job has: the one that spark-submit made for it, else a local one of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from deployer.compute.spark.local import LocalCluster, local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def was_submitted() -> bool:
    """Whether spark-submit started this process: it hands the program a gateway to the Java that it runs in."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def job_session(cluster: Callable[[], LocalCluster]) -> SparkSession:
    """The session. `cluster` is asked only when a local one is to be started."""
    if not was_submitted():
        return local_session(cluster())
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    # What the load relies on, whatever the submission said.
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
    return session
