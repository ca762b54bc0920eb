"""A process that changes the rows of a table in several jobs, and prints those that were acknowledged.

`rows_worker.py ROOT`: each job has an id of its own, so that it is done once however often this runs.
"""

from __future__ import annotations

import sys

from deployer.tables.open_table import open_to_change
from deployer.tables.rows.delete import delete_rows

#: Jobs by their id, and the condition that each deletes by.
DELETIONS = {
    "rows-0": "flight < 200",
    "rows-1": "carrier = 'AA'",
    "rows-2": "delay > 250",
}


def main(root: str) -> None:
    table = open_to_change(root, "air.flights")
    for job_id, where in DELETIONS.items():
        delete_rows(table, where, job_id=job_id)
        print(job_id, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
