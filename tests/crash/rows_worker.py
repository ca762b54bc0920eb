"""A process that changes the rows of a table in several jobs, and prints those that were acknowledged.

`rows_worker.py ROOT`: each job has an id of its own, so that it is done once however often this runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from deployer.table import Table, connect
from tests.tables.lakes import flights

Rows = list[dict[str, Any]]
MERGED = 40


def source() -> Rows:
    """Half of these rows are in the table, with other delays."""
    return [row | {"delay": 299} for row in flights(MERGED, 280).to_pylist()]


def merged(rows: Rows) -> Rows:
    mine = {(row["carrier"], row["flight"]): row for row in source()}
    found = [row | mine.get((row["carrier"], row["flight"]), {}) for row in rows]
    keys = {(row["carrier"], row["flight"]) for row in rows}
    return found + [row for key, row in mine.items() if key not in keys]


#: Jobs by their id: the change, and what it makes of the rows.
JOBS: Mapping[str, tuple[Callable[[Table, str], object], Callable[[Rows], Rows]]] = {
    "rows-0": (
        lambda table, job: table.delete("flight < 200", job_id=job),
        lambda rows: [row for row in rows if row["flight"] >= 200],
    ),
    "rows-1": (
        lambda table, job: table.update("carrier = 'AA'", {"carrier": "ZZ", "delay": 1}, job_id=job),
        lambda rows: [row | {"carrier": "ZZ", "delay": 1} if row["carrier"] == "AA" else row for row in rows],
    ),
    "rows-2": (lambda table, job: table.merge(source(), job_id=job), merged),
}


def main(root: str) -> None:
    with connect(root) as connection:
        table = connection.open_table("air.flights")
        for job_id, (change, _) in JOBS.items():
            change(table, job_id)
            print(job_id, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
