"""Merges rows in parts through files on disk, in a process of its own: `merge_worker.py ROOT ENGINE`.

The limits are small, so that a few hundred rows are many parts, some of which several tasks match.
"""

from __future__ import annotations

import sys
from contextlib import closing

import pyarrow as pa

from deployer.compute.spark.local import LocalCluster, local_session
from deployer.runs.rewriting.row_tasks import tasks_by
from deployer.state import open_store
from deployer.tables.open_table import find_entry, open_entry
from deployer.tables.rows.merging import merge, source_parts
from deployer.tables.rows.merging.merge import merge_rows
from deployer.tables.rows.tasks import run_here
from tests.tables.lakes import FLIGHTS, flights

ROWS, FROM, JOB = 120, 240, "merge"


def source() -> pa.Table:
    """Rows of which half are in a table of 300, with other delays."""
    return flights(ROWS, FROM).set_column(2, FLIGHTS.field(2), pa.array([99] * ROWS, pa.int16()))


def main(root: str, engine: str) -> None:
    source_parts.PART_ROWS, source_parts.BATCH_ROWS, source_parts.HELD_BYTES = 32, 16, 1_000
    merge.ROWS_HERE = merge.ROWS_ELSEWHERE = 60
    with closing(open_store(root)) as store:
        table = open_entry(store, root, find_entry(store.instance().tables.values(), "air.flights"))
        by_spark = tasks_by("spark", lambda: local_session(LocalCluster(2)))
        rows = source().to_reader(max_chunksize=16)
        merge_rows(table, rows, job_id=JOB, run_tasks=by_spark if engine == "spark" else run_here)


if __name__ == "__main__":
    main(*sys.argv[1:])
