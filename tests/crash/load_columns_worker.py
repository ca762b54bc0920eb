"""Loads columns in a process of its own, a fragment a commit, and saves each batch.

`load_columns_worker.py ROOT SOURCE JOB [ENGINE]`.
"""

from __future__ import annotations

import sys

from deployer.table import connect

if __name__ == "__main__":
    root, source, job, *engine = sys.argv[1:]
    with connect(root) as connection:
        table = connection.open_table("flights")
        print(
            table.load_columns(
                source,
                "id",
                ["embedding", "label"],
                job_id=job,
                commit_granularity=1,
                concurrency=1,
                checkpoint_size=4,
                checkpoint_interval_seconds=0,
                engine=engine[0] if engine else "driver",
            )
        )
