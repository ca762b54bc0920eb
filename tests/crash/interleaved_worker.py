"""A process that computes a column, a fragment a commit: `interleaved_worker.py ROOT JOB ENGINE PLACE`.

PLACE is where the function runs: `here`, in a thread or task, or `child`, a process of its own.
"""

from __future__ import annotations

import sys

from deployer.compute.spark.local import stop_session
from deployer.errors import DeployerError
from deployer.table import connect
from tests.columns.backfill.functions import mortal

STOPPED = 7  #: the exit code of a backfill that an error ended; it can be resumed

if __name__ == "__main__":
    root, job, engine, place = sys.argv[1:]
    try:
        with connect(root) as connection:
            connection.open_table("flights").backfill(
                "score",
                udf=mortal(timeout=60.0 if place == "child" else None),
                job_id=job,
                engine=engine,
                commit_granularity=1,
                concurrency=2 if engine == "spark" else 1,
                task_size=60,
                checkpoint_size=10,
                batch_checkpoint_flush_interval_seconds=0,
                _admission_check=False,
            )
    except DeployerError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(STOPPED)
    finally:
        stop_session()
