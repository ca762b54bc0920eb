"""The job that copies a table's rows into its next dataset with Spark, for tables too large for one process."""

from __future__ import annotations

from deployer.compute.local import LocalCluster, local_session
from deployer.tables.ingest.loading import Loaded, LoadPlan
from deployer.tables.progress import OnProgress
from spark_jobs.ingest import load_with_spark


def copy_with_spark(plan: LoadPlan, on_progress: OnProgress, cluster: LocalCluster | None = None) -> Loaded:
    """Runs one round of a rewrite on this process's session, started in the cluster's sizes if there is none."""
    return load_with_spark(local_session(cluster), plan, on_progress)
