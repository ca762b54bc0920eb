"""What one state commit costs on local disk, early and late, beside plain Lance and a bare SQLite row.

In one run, taking turns of 50 commits so that all see the same machine: `store` appends one file a commit (fsynced),
`row` inserts one fsynced row into SQLite (the least that any such store needs), `lance` appends ten rows to a dataset
(never fsynced). Prints the median ms of commits 50–150 and of the last 200, the ratio to Lance, the bytes that grew on
disk a commit, and, with --procs, the commits a second of so many processes at once.

    python benchmarks/state_commits.py --n 10000 --lance 1000 --procs 8
"""

from __future__ import annotations

import argparse
import multiprocessing
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.parquet  # what the first snapshot imports is not a commit's cost

from deployer.state import create_store, open_store
from deployer.state.model import File, TableProperties
from deployer.state.requirements import JobNotDone
from deployer.state.updates import CreateTable, FilesAdded

TABLE = "a1b2c3d4e5f60718293a4b5c6d7e8f90"
TURN = 50


def _file(number: int) -> File:
    low, high = number.to_bytes(8, "big"), (number + 1).to_bytes(8, "big")
    return File(number, "root", 10, 1000, low, high, (low,), (high,), sorted=True)


def _create(folder: Path) -> None:
    create_store(folder).commit(TABLE, [CreateTable(TableProperties(row_keys=("id",)), b"schema", 1)])


def store_commits(folder: Path) -> Callable[[int], None]:
    _create(folder)
    store = open_store(folder)

    def commit(number: int) -> None:
        job = f"job-{number}"
        store.commit(TABLE, [FilesAdded((_file(number),), number + 2, job, 10)], [JobNotDone(job)])

    return commit


def row_commits(folder: Path) -> Callable[[int], None]:
    folder.mkdir()
    database = sqlite3.connect(folder / "rows.db", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body BLOB)")
    body = b"x" * 500

    def commit(number: int) -> None:
        database.execute("INSERT INTO rows VALUES (?, ?)", (number, body))

    return commit


def lance_commits(folder: Path) -> Callable[[int], None]:
    rows = pa.table({"id": pa.array(range(10), pa.int64())})
    dataset = lance.write_dataset(rows, str(folder))

    def commit(number: int) -> None:
        nonlocal dataset
        dataset = lance.write_dataset(rows, dataset, mode="append")

    return commit


def sequential(folder: Path, count: int, lance_count: int) -> None:
    engines = {
        "row": (row_commits(folder / "row"), count),
        "store": (store_commits(folder / "store"), count),
        "lance": (lance_commits(folder / "lance"), lance_count),
    }
    times: dict[str, list[float]] = {name: [] for name in engines}
    for start in range(0, count, TURN):
        for name, (commit, limit) in engines.items():
            for number in range(start, min(start + TURN, limit)):
                begun = time.perf_counter()
                commit(number)
                times[name].append(1000 * (time.perf_counter() - begun))
    late_lance = statistics.median(times["lance"][-200:])
    print(f"{'engine':8}{'commits':>9}{'early ms':>10}{'late ms':>9}{'late/early':>12}{'p99 ms':>9}{'of lance':>10}")
    for name, taken in times.items():
        early, late = statistics.median(taken[50:150]), statistics.median(taken[-200:])
        p99 = statistics.quantiles(taken, n=100)[98]
        print(f"{name:8}{len(taken):9}{early:10.2f}{late:9.2f}{late / early:12.2f}{p99:9.2f}{late / late_lance:10.2f}")


def _race(folder: Path, writer: int, count: int, start: Barrier, end: Barrier) -> None:
    store = open_store(folder)
    store.table(TABLE)
    start.wait()
    for number in range(count):
        fragment = writer * 1_000_000 + number
        store.commit(TABLE, [FilesAdded((_file(fragment),), fragment, f"{writer}-{number}", 10)])
    end.wait()
    store.close()


def racing(folder: Path, processes: int, count: int) -> None:
    _create(folder)
    context = multiprocessing.get_context("spawn")  # Lance is not fork-safe
    start, end = context.Barrier(processes + 1), context.Barrier(processes + 1)
    workers = [context.Process(target=_race, args=(folder, writer, count, start, end)) for writer in range(processes)]
    for worker in workers:
        worker.start()
    start.wait()
    begun = time.perf_counter()
    end.wait()
    wall = time.perf_counter() - begun
    for worker in workers:
        worker.join()
    held = open_store(folder).table(TABLE).files.count
    assert held == processes * count, held
    print(f"{processes} processes x {count}: {held / wall:.0f} commits/s, none lost or doubled")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=10_000, help="commits of the store and of the bare row")
    parser.add_argument("--lance", type=int, default=1_000, help="appends of Lance, which grow dearer")
    parser.add_argument("--procs", type=int, default=8, help="processes at once; 0 leaves that out")
    parser.add_argument("--each", type=int, default=50, help="commits of each process")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sequential(Path(folder), args.n, args.lance)
        if args.procs:
            racing(Path(folder) / "race", args.procs, args.each)


if __name__ == "__main__":
    main()
