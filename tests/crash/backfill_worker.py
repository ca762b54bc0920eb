"""A process that computes a column, a fragment a commit, and saves each batch: `backfill_worker.py ROOT JOB`."""

from __future__ import annotations

import sys

from deployer.table import connect
from tests.columns.backfill.functions import counted

if __name__ == "__main__":
    root, job = sys.argv[1:]
    with connect(root) as connection:
        done = connection.open_table("flights").backfill(
            "score",
            udf=counted,
            job_id=job,
            commit_granularity=1,
            concurrency=1,
            checkpoint_size=4,
            batch_checkpoint_flush_interval_seconds=0,
        )
        print(done)
