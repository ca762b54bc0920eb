"""A process that does one thing to a table until its input ends or it is killed: `mixed_worker.py ROOT WHAT NUMBER`.

`load` prints each job that is done; `read` each number of rows that it found, in whole jobs; the services each status.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import pyarrow as pa

from deployer.errors import Conflict
from deployer.runs import runner as running
from deployer.runs.records import begin_runs
from deployer.services.registry import run_service
from deployer.services.savepoints.read_lease import leased
from deployer.tables.append import open_appender
from tests.tables.lakes import flights

ROWS = 20
TABLE = "air.flights"
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "compact": {"portion_bytes": 2000},
    "cluster": {"columns": ["delay", "price"], "curve": "zorder"},
    "clean": {"older_than": "0h"},
    "backfill": {},
}


def numbers(rows: pa.Table) -> list[int]:
    """Which of all flights the rows are."""
    first: int = flights(1)["at"].cast("int64")[0].as_py()
    return [each - first for each in rows["at"].cast("int64").to_pylist()]


def load(root: str, number: int) -> Callable[[], object]:
    appender, jobs = open_appender(root, TABLE), count()

    def once() -> str:
        job = next(jobs)
        appender.append(flights(ROWS, ROWS * (number * 100_000 + job)), job_id=f"{number}-{job}")
        return str(number * 100_000 + job)

    return once


def read(root: str) -> Callable[[], object]:
    def once() -> int:
        with leased(root, TABLE) as table:
            found = numbers(table.scan(columns=["at"]).to_table())
            assert len(found) == table.count(), (len(found), table.count())
        jobs = Counter(number // ROWS for number in found)
        assert all(rows == ROWS for rows in jobs.values()), jobs
        return len(found)

    return once


def service(root: str, what: str) -> Callable[[], object]:
    vars(running)["begin_runs"] = functools.partial(begin_runs, lease=2.0)

    def once() -> str:
        try:
            return run_service(root, TABLE, what, OPTIONS[what]).status
        except Conflict as conflict:  # of a killed one's lease, or COMPACT beside CLUSTER
            return f"CONFLICT {conflict.what}"

    return once


def main(root: str, what: str, number: int) -> None:
    over = threading.Event()

    def watch() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=watch, daemon=True).start()
    once = load(root, number) if what == "load" else read(root) if what == "read" else service(root, what)
    while not over.is_set():
        print(once(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
