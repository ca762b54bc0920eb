"""The job that computes a column of a table: few rows in its driver, many rows with Spark.

As a Spark application: `spark-submit spark_jobs/backfill.py --root ROOT --table DATABASE.NAME --column NAME [options]`;
it then uses the session that spark-submit made.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from typing import Any, get_args

from deployer.columns.backfill.admission import admit
from deployer.columns.backfill.backfill import BackfillJob, backfill
from deployer.columns.backfill.definition import Definition
from deployer.columns.backfill.request import BackfillRequest, checked_backfill
from deployer.columns.backfill.resolve import definition_of, finder
from deployer.compute.spark.local import LocalCluster
from deployer.platform.isolation.trusted_functions import TrustedFunctions
from deployer.platform.system.progress import OnProgress
from deployer.runs.rewriting.run import Engine
from deployer.state import open_store
from deployer.tables.open_table import ReadTable, find_entry, open_entry
from spark_jobs.program import run_program


def arguments_of(
    root: str, table: str, request: BackfillRequest, trusted: TrustedFunctions, job_id: str, cluster: str
) -> tuple[str, ...]:
    """Returns the command line with which `main` does the backfill on the cluster of that name."""
    options = {
        "--root": root,
        "--table": table,
        "--column": request.column,
        "--where": request.where,
        "--read-version": request.read_version,
        "--num-frags": request.num_frags,
        "--skip-frags": request.skip_frags,
        "--task-size": request.task_size,
        "--concurrency": request.concurrency,
        "--commit-granularity": request.commit_granularity or 0,
        "--engine": request.engine,
        "--job-id": job_id,
        "--cluster": cluster,
    }
    # Joined by =, so that a value may begin with a dash.
    return (
        *(f"{name}={value}" for name, value in options.items() if value is not None),
        *(f"--trust-function={name}" for name in sorted(trusted.names)),
        *(f"--trust-author={name}" for name in sorted(trusted.authors)),
        *(["--trust-udfs"] if trusted.all_packages else []),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line of the job. Prints its result as JSON, or an error message; returns the exit code."""
    parser = argparse.ArgumentParser(prog="backfill", description="Compute a column of a table.")
    parser.add_argument("--root", required=True, help="the instance's root")
    parser.add_argument("--table", required=True, help="database.name")
    parser.add_argument("--column", required=True)
    parser.add_argument("--where", help="SQL condition on the rows to compute")
    parser.add_argument("--read-version", type=int)
    parser.add_argument("--num-frags", type=int)
    parser.add_argument("--skip-frags", type=int, default=0)
    parser.add_argument("--task-size", type=int, help="rows of a task")
    parser.add_argument("--concurrency", type=int, default=8, help="tasks at the same time")
    parser.add_argument("--commit-granularity", type=int, default=64, help="fragments of a commit; 0: all")
    parser.add_argument("--engine", choices=get_args(Engine), default="auto")
    parser.add_argument("--trust-function", action="append", default=[], help="a function that may run; repeatable")
    parser.add_argument("--trust-author", action="append", default=[], help="whose functions may run; repeatable")
    parser.add_argument("--trust-udfs", action="store_true", help="all packaged functions may run")
    parser.add_argument("--job-id", required=True)
    parser.add_argument("--cluster", help="name of the cluster that this runs on")
    parser.add_argument("--memory", default="2g", help="of a local session")
    parser.add_argument("--cores", type=int, help="of a local session")
    parser.add_argument(
        "--tell", help="name of this attempt, under which progress and outcome are stored below the root"
    )
    given = parser.parse_args(argv)
    request = checked_backfill(
        given.column,
        where=given.where,
        read_version=given.read_version,
        num_frags=given.num_frags,
        skip_frags=given.skip_frags,
        task_size=given.task_size,
        concurrency=given.concurrency,
        commit_granularity=given.commit_granularity or None,
        engine=given.engine,
    )
    find = finder(
        TrustedFunctions.allowed(given.trust_function, authors=given.trust_author, all_packages=given.trust_udfs)
    )

    def define(table: ReadTable) -> Definition:
        return definition_of(table, request.column, None, find)

    def work(on_progress: OnProgress) -> Mapping[str, Any]:
        sizes = LocalCluster(given.cores, given.memory)
        with closing(open_store(given.root)) as store:
            table = open_entry(store, given.root, find_entry(store.instance().tables.values(), given.table))
            if given.job_id not in table.state.jobs:
                admit(table, define(table), None, None, cluster=given.cluster)
            job = BackfillJob(table, request, given.job_id, cluster=lambda: sizes)
            return {"table": table.entry.full_name, **asdict(backfill(job, define, on_progress))}

    return run_program(given.root, given.tell, work)


if __name__ == "__main__":
    sys.exit(main())
