"""Compares a full read of a table while COMPACT rewrites it with the same read alone.

    python -m benchmarks.reader [--copies 10] [--files 100] [--repeat 5]

The table is that of `benchmarks/compact.py`, without and with keys. One process makes all reads; a read has all columns
of all rows, at the version before the compaction. COMPACT runs each time on a fresh copy, in a process as
`run_service_in_table` and the agent start it. A read counts only if COMPACT rewrites from its first row to its last.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from benchmarks.compact import KEYS, make_table, parts_of_flights
from benchmarks.report import print_heading, print_ratio, print_table

ALONE, BESIDE = "alone", "beside COMPACT"


def read_on_demand() -> None:
    """Reads `bench.TABLE` of each ROOT on standard input, in the reader process, and prints the seconds of each
    read."""
    from deployer.services.savepoints.read_lease import leased

    for line in sys.stdin:
        root, table = line.split()
        with leased(root, f"bench.{table}") as opened:
            print("ready", flush=True)
            sys.stdin.readline()
            started = time.perf_counter()
            rows = sum(batch.num_rows for batch in opened.scan().batches)
            seconds = time.perf_counter() - started
            assert rows == opened.count()
        print(seconds, flush=True)


class Reader:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _heard(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def open(self, root: str, table: str) -> None:
        self._say(f"{root} {table}")
        assert self._heard() == "ready"

    def read(self) -> float:
        self._say("go")
        return float(self._heard())


@contextmanager
def reader() -> Iterator[Reader]:
    command = [sys.executable, "-m", "benchmarks.reader", "--reader"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Reader(process)
        assert process.stdin is not None
        process.stdin.close()


def beside(source: Path, copy: Path, table: str, by: Reader) -> float | None:
    """Returns the seconds of one read while COMPACT rewrites; None when COMPACT ended before the read."""
    from deployer.datasets.dataset import dataset_location
    from deployer.runs.processes import start_local_run
    from deployer.runs.records import queue_run
    from deployer.state import open_store
    from deployer.tables.open_table import find_entry

    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy)
    root = str(copy)
    by.open(root, table)
    with closing(open_store(root)) as store:
        entry = find_entry(store.instance().tables.values(), f"bench.{table}")
        data = Path(dataset_location(root, entry), "data")
        before = set(data.iterdir())
        run = queue_run(store, entry.table_id, "COMPACT", cause="benchmark", needs_service=False)
        with closing(start_local_run(store, root, entry, run)) as local:
            while set(data.iterdir()) == before and local.process.poll() is None:
                time.sleep(0.005)  # waits until COMPACT has begun to write
            seconds = by.read()
            during = local.process.poll() is None and not store.table(entry.table_id).runs[run.run_id].figures.rows_out
            assert local.process.wait() == 0, local.last_error()
    return seconds if during else None


def measure(folder: Path, table: str, repeat: int, by: Reader) -> None:
    source = folder / "lake"
    found: dict[str, list[float]] = {ALONE: [], BESIDE: []}
    over, load = 0, 0.0
    by.open(str(source), table)
    by.read()  # later reads find the files in the system's cache, and all modules imported
    for _ in range(repeat):
        load = max(load, os.getloadavg()[0])
        by.open(str(source), table)
        found[ALONE].append(by.read())
        seconds = beside(source, folder / "copy", table, by)
        if seconds is None:
            over += 1
        else:
            found[BESIDE].append(seconds)
    rows = [
        [
            name,
            str(len(runs)),
            *(f"{each:.2f}" for each in (statistics.median(runs), min(runs), max(runs))),
            f"{load:.1f}",
        ]
        for name, runs in found.items()
        if runs
    ]
    print(f"bench.{table}\n")
    print_table(["reading", "runs", "median s", "least s", "most s", "load"], rows)
    if over:
        print(f"{over} readings were not over before COMPACT was, and are left out")
    if found[BESIDE]:
        medians = {name: statistics.median(runs) for name, runs in found.items()}
        print_ratio(f"{table}: a reading beside COMPACT, of one alone", medians, BESIDE, ALONE, most=1.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=10, help="of 336,776 flights")
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--reader", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.reader:
        read_on_demand()
        return
    from deployer.state import create_store

    folder = Path(tempfile.mkdtemp(prefix="deployer-bench-"))
    try:
        parts = parts_of_flights(given.copies, given.files)
        root = str(folder / "lake")
        store = create_store(root)
        tables = {"keyless": (), "keyed": KEYS}
        for name, keys in tables.items():
            make_table(store, root, name, keys, parts)
        print_heading("Reading beside COMPACT")
        print(f"{sum(part.num_rows for part in parts):,} rows x 19 columns in {given.files} files\n")
        del parts
        with reader() as by:
            for name in tables:
                measure(folder, name, given.repeat, by)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
