"""The job that rewrites a table with other keys, split points or another file format, for `deployer up`.

As a Spark application: `spark-submit spark_jobs/rewrite.py --root ROOT --job-id ID`. The description of the work is
below the root (see `deployer.compute.running.remote_rewrite`), because a table's declaration may be longer than a
command line.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from deployer.compute.running.remote_rewrite import RewriteRequest, rewrite_request
from deployer.compute.spark.local import LocalCluster, job_session, local_session
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.platform.system.signals import raising_terminated
from deployer.state import open_store
from deployer.tables.evolution.rewrite.lock import Holder
from deployer.tables.evolution.rewrite.rewrite import rewrite_table
from deployer.tables.ingest.loading import LoadedFragments, LoadPlan
from spark_jobs.ingest import load_with_spark
from spark_jobs.program import run_program


def copy_with_spark(plan: LoadPlan, on_progress: OnProgress, cluster: LocalCluster | None = None) -> LoadedFragments:
    """Runs one round of a rewrite on this process's session. If there is none, one with the cluster's sizes is
    started."""
    return load_with_spark(local_session(cluster), plan, on_progress)


def run(
    root: str, wanted: RewriteRequest, attempt: str = "", on_progress: OnProgress = no_progress
) -> Mapping[str, Any]:
    """Rewrites the table, or continues where an earlier attempt ended; returns the table's name and its dataset
    afterwards.

    `attempt` names this attempt for later ones. Raises as `rewrite_table` does.
    """

    def with_spark(plan: LoadPlan, progress: OnProgress) -> LoadedFragments:
        return load_with_spark(job_session(LocalCluster), plan, progress)

    with closing(open_store(root)) as store, raising_terminated():
        holder = Holder(attempt, wanted.over)
        rewrite_table(store, root, wanted.table_id, wanted.spec, with_spark, on_progress, holder)
        return {
            "table": store.instance().tables[wanted.table_id].full_name,
            "dataset": store.table(wanted.table_id).dataset,
        }


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line of the job. Prints its result as JSON, or an error message; returns the exit code."""
    parser = argparse.ArgumentParser(prog="rewrite", description="Rewrite a table as its declaration asks for.")
    parser.add_argument("--root", required=True, help="the instance's root")
    parser.add_argument("--job-id", required=True, help="id of the job that describes the work")
    parser.add_argument(
        "--tell", help="name of this attempt, under which progress and outcome are stored below the root"
    )
    given = parser.parse_args(argv)

    def work(on_progress: OnProgress) -> Mapping[str, Any]:
        return run(given.root, rewrite_request(given.root, given.job_id), given.tell or "", on_progress)

    return run_program(given.root, given.tell, work)


if __name__ == "__main__":
    sys.exit(main())
