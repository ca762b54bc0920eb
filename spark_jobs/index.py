"""The job that builds an index of a large table in parts, for `deployer up` or a program.

As a Spark application: `spark-submit spark_jobs/index.py --root ROOT --job-id ID`. The description of the work is below
the root (see `deployer.compute.running.remote_index`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from deployer.compute.running.remote_index import IndexRequest, index_request
from deployer.compute.spark.local import LocalCluster, job_session
from deployer.datasets.dataset import dataset_location
from deployer.errors import NotFound
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.platform.system.signals import raising_terminated
from deployer.runs.rewriting.index_builds import session_of
from deployer.state import open_store
from deployer.tables.layout.indexes.build import build_index
from spark_jobs.program import run_program


def run(root: str, wanted: IndexRequest, on_progress: OnProgress = no_progress) -> Mapping[str, Any]:
    """Builds the index; returns the names of the table and the index, and whether there were enough rows for it.

    Raises NotFound for a table that does not exist any more, and as `build_index` does.
    """
    with closing(open_store(root)) as store, raising_terminated():
        table_id = wanted.table_id
        entry = store.instance().tables.get(table_id)
        if entry is None or entry.status != "active":
            raise NotFound("the table does not exist any more", where=f"table {table_id}", remedy="preview again")
        rows = store.table(table_id).files.rows
        session = session_of(job_session(LocalCluster))
        plan = session.plan(dataset_location(root, entry), rows, wanted.parts, wanted.options)
        built = build_index(store, root, table_id, wanted.index, on_progress, replaced=wanted.replaced, plan=plan)
        return {"table": entry.full_name, "index": wanted.index.name, "built": built}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line of the job. Prints its result as JSON, or an error message; returns the exit code."""
    parser = argparse.ArgumentParser(prog="index", description="Build an index of a table in parts.")
    parser.add_argument("--root", required=True, help="the instance's root")
    parser.add_argument("--job-id", required=True, help="id of the job that describes the work")
    parser.add_argument(
        "--tell", help="name of this attempt, under which progress and outcome are stored below the root"
    )
    given = parser.parse_args(argv)

    def work(on_progress: OnProgress) -> Mapping[str, Any]:
        return run(given.root, index_request(given.root, given.job_id), on_progress)

    return run_program(given.root, given.tell, work)


if __name__ == "__main__":
    sys.exit(main())
