"""The job that loads columns of files into a table: small files in its driver, large ones with Spark.

As a Spark application: `spark-submit spark_jobs/columns.py --root ROOT --table DATABASE.NAME [options] SOURCE…`; it
then uses the session that spark-submit made.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from typing import Any, get_args

from deployer.columns.load.load import load_columns
from deployer.columns.load.request import LoadRequest, OnMissing, checked_request
from deployer.compute.spark.local import LocalCluster
from deployer.platform.system.progress import OnProgress
from deployer.runs.rewriting.run import Engine
from deployer.state import open_store
from deployer.tables.open_table import find_entry, open_entry
from spark_jobs.program import run_program


def arguments_of(root: str, table: str, request: LoadRequest, job_id: str) -> tuple[str, ...]:
    """Returns the command line with which `main` does the load."""
    sizes = request.checkpoints
    options = {
        "--root": root,
        "--table": table,
        "--pk": request.pk,
        "--format": request.source_format,
        "--on-missing": request.on_missing,
        "--concurrency": request.concurrency,
        "--checkpoint-size": sizes.first,
        "--min-checkpoint-size": sizes.smallest,
        "--max-checkpoint-size": sizes.largest,
        "--checkpoint-interval-seconds": sizes.seconds,
        "--commit-granularity": request.commit_granularity,
        "--engine": request.engine,
        "--job-id": job_id,
    }
    # Joined by =, so that a value may begin with a dash.
    return (
        *(f"{name}={value}" for name, value in options.items() if value is not None),
        *(f"--column={name}" for name in request.columns),
        "--",
        *request.source,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line of the job. Prints its result as JSON, or an error message; returns the exit code."""
    parser = argparse.ArgumentParser(prog="columns", description="Load columns of files into a table.")
    parser.add_argument("--root", required=True, help="the instance's root")
    parser.add_argument("--table", required=True, help="database.name")
    parser.add_argument("--pk", required=True, help="the column by which rows are matched")
    parser.add_argument("--column", required=True, action="append", help="a column to load; repeatable")
    parser.add_argument("--format", choices=["parquet", "lance", "ipc"])
    parser.add_argument("--on-missing", choices=get_args(OnMissing), default="carry")
    parser.add_argument("--concurrency", type=int, default=8, help="fragments at a time in the driver")
    parser.add_argument("--checkpoint-size", type=int)
    parser.add_argument("--min-checkpoint-size", type=int)
    parser.add_argument("--max-checkpoint-size", type=int)
    parser.add_argument("--checkpoint-interval-seconds", type=float)
    parser.add_argument("--commit-granularity", type=int)
    parser.add_argument("--engine", choices=get_args(Engine), default="auto")
    parser.add_argument("--job-id", required=True)
    parser.add_argument("--memory", default="2g", help="of a local session")
    parser.add_argument("--cores", type=int, help="of a local session")
    parser.add_argument(
        "--tell", help="name of this attempt, under which progress and outcome are stored below the root"
    )
    parser.add_argument("source", nargs="+")
    given = parser.parse_args(argv)
    request = checked_request(
        given.source,
        given.pk,
        given.column,
        source_format=given.format,
        on_missing=given.on_missing,
        concurrency=given.concurrency,
        checkpoint_size=given.checkpoint_size,
        min_checkpoint_size=given.min_checkpoint_size,
        max_checkpoint_size=given.max_checkpoint_size,
        checkpoint_interval_seconds=given.checkpoint_interval_seconds,
        commit_granularity=given.commit_granularity,
        engine=given.engine,
    )

    def work(on_progress: OnProgress) -> Mapping[str, Any]:
        sizes = LocalCluster(given.cores, given.memory)
        with closing(open_store(given.root)) as store:
            table = open_entry(store, given.root, find_entry(store.instance().tables.values(), given.table))
            done = load_columns(table, request, given.job_id, on_progress, cluster=lambda: sizes)
            return {"table": table.entry.full_name, **asdict(done)}

    return run_program(given.root, given.tell, work)


if __name__ == "__main__":
    sys.exit(main())
