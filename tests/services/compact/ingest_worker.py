"""A process that appends rows to a table until it has done so many: `ingest_worker.py ROOT NUMBER COUNT ROWS`."""

from __future__ import annotations

import sys
from contextlib import closing

from deployer.tables.append import open_appender
from tests.tables.lakes import flights


def main(root: str, number: int, count: int, rows: int) -> None:
    with closing(open_appender(root, "air.flights")) as appender:
        for each in range(count):
            appender.append(flights(rows, rows * (number * count + each)), job_id=f"{number}-{each}")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
