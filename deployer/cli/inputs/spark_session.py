"""The Spark session that a command starts where it needs one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession


def session_of(project: Path | None, stack: str, specs: Path | None) -> Callable[[], SparkSession]:
    """Returns a function that starts Spark with the sizes of the declared local cluster."""

    def session() -> SparkSession:
        from deployer.app.workspace import open_workspace
        from deployer.compute.clusters import local_cluster
        from deployer.compute.spark.local import job_session

        instance = open_workspace(project, stack, specs).lake().instance
        return job_session(lambda: local_cluster(instance.clusters, None, instance.address))

    return session
