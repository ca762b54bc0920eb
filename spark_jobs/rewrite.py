"""The job that copies a table's rows into its next dataset with Spark, for tables too large for one process."""

from __future__ import annotations

from deployer.compute.local import local_session
from deployer.tables.ingest.loading import Loaded, LoadPlan
from deployer.tables.progress import OnProgress
from spark_jobs.ingest import load_with_spark


def copy_with_spark(plan: LoadPlan, on_progress: OnProgress) -> Loaded:
    """Runs one round of a rewrite on this process's session, which is started when there is none."""
    return load_with_spark(local_session(), plan, on_progress)
