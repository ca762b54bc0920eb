"""Measures opening the state of a very large table, and finding the files of a key range in it.

The benchmark makes a table of --files files (16-byte keys, 1,000 partitions), takes a snapshot, and adds a log of --log
entries. A new process opens the table. The figures are the seconds to the newest state, the memory in MB above that of
the imports, the ms for the files of one key range (the first look-up and the median of 100), by fragment id and by
partition, and the ms for one more commit. The benchmark also opens --tables small tables in one request.

    python -m benchmarks.state_open [--files 1000000] [--log 100] [--tables 1000]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet  # imported here, so that it does not count as opening

from benchmarks.report import print_figure, print_heading
from benchmarks.small_commits import TABLE
from deployer.state import create_store, open_store
from deployer.state.log.updates import CreateTable, FilesAdded
from deployer.state.model.entities import File, TableProperties


def _key(number: int, last: int = 0) -> bytes:
    return b"carrier\x00" + (2 * number + last).to_bytes(8, "big")


def _file(number: int, files: int) -> File:
    low, high = _key(number), _key(number, last=1)
    return File(number, f"p{number * 1000 // files}", 100_000, 10_000_000, low, high, (low,), (high,), sorted=True)


def prepare(folder: Path, files: int, entries: int, tables: int) -> None:
    store = create_store(folder)
    store.commit(TABLE, [CreateTable(TableProperties(row_keys=("id",)), b"schema", 1)])
    for start in range(0, files, 50_000):
        batch = tuple(_file(number, files) for number in range(start, min(start + 50_000, files)))
        store.commit(TABLE, [FilesAdded(batch, 2)])
    store.snapshot(TABLE)
    for number in range(files, files + entries):
        store.commit(TABLE, [FilesAdded((_file(number, files),), number, f"job-{number}", 10)])
    for number in range(tables):
        store.commit(f"t{number:031}", [CreateTable(TableProperties(row_keys=("id",)), b"schema", 1)])
    store.close()


def _timed(action: Callable[[], object]) -> float:
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


def _memory() -> float:
    """Returns the peak memory of this process in MB (getrusage would count the parent's memory too)."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def measure(folder: Path, files: int, tables: int) -> None:
    pa.table({"warm": np.arange(3)}).sort_by("warm")
    before = _memory()
    store = open_store(folder)
    opened = _timed(lambda: store.table(TABLE))
    peak = _memory() - before
    state = store.table(TABLE)
    middle = files // 2
    first = _timed(lambda: state.files.overlapping(_key(middle), _key(middle + 10)))
    assert len(state.files.overlapping(_key(middle), _key(middle + 10))) == 10
    rng = np.random.default_rng(1)
    places = [int(place) for place in rng.integers(0, files - 10, 100)]
    ranges = [_timed(lambda at=at: state.files.overlapping(_key(at), _key(at + 10))) for at in places]  # type: ignore[misc]
    again = [_timed(lambda: store.table(TABLE)) for _ in range(20)]
    commits = [
        _timed(lambda n=n: store.commit(TABLE, [FilesAdded((_file(2 * files + n, files),), n)]))  # type: ignore[misc]
        for n in range(50)
    ]
    ids = [f"t{number:031}" for number in range(tables)]
    found = {
        "files of a partition": _timed(lambda: state.files.for_partition("p7")),
        "a file by its id": _timed(lambda: state.files.get(middle)),
        "the newest state once more, median": statistics.median(again),
        "a commit, median": statistics.median(commits),
        f"open {tables:,} small tables at once": _timed(lambda: open_store(folder).tables(ids)),
    }
    whole = files >= 1_000_000
    print_figure(f"open {files:,} files", opened, "s", 1 if whole else None)
    print_figure("memory of that above the imports, peak", peak, "MB", 500 if whole else None)
    print_figure("files of a key range, first look-up", 1000 * first, "ms", 10 if whole else None)
    print_figure("files of a key range, median", 1000 * statistics.median(ranges), "ms", 10 if whole else None)
    for name, seconds in found.items():
        print_figure(name, 1000 * seconds, "ms", None)
    print_figure("load", os.getloadavg()[0], "processes", None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--log", type=int, default=100, help="entries after the snapshot")
    parser.add_argument("--tables", type=int, default=1_000)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(args.measure, args.files, args.tables)
        return
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), args.files, args.log, args.tables)
        sizes = ["--files", str(args.files), "--tables", str(args.tables)]
        print_heading(f"A table of {args.files:,} files, a snapshot and {args.log} entries")
        sys.stdout.flush()
        subprocess.run([sys.executable, "-m", "benchmarks.state_open", "--measure", folder, *sizes], check=True)


if __name__ == "__main__":
    main()
