"""Measures warm look-ups by row key in a table that stays open, in milliseconds.

    python -m benchmarks.lookup [--copies 10] [--n 50]

The table is that of `benchmarks/ingest.py`, loaded once in this process.
"""

from __future__ import annotations

import argparse
import datetime as dt
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.ingest import KEYS, flights
from deployer.specs.model import TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.state import create_store
from deployer.tables.admin.tables import create_table
from deployer.tables.ingest.request import IngestRequest
from deployer.tables.read.key_values import Interval
from deployer.tables.read.table import Rows, open_table
from spark_jobs.ingest import run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--n", type=int, default=50)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="deployer-bench-"))
    try:
        measure(folder, given.copies, given.n)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(folder: Path, copies: int, count: int) -> None:
    rows = flights(copies)
    root = str(folder / "lake")
    pq.write_table(rows, folder / "flights.parquet")
    hours = np.sort(rows["time_hour"].cast(pa.int64()).to_numpy())
    points = tuple((int(point),) for point in sorted({hours[len(hours) * i // 16] for i in range(1, 16)}))
    schema = pa.schema([field.with_nullable(field.name not in KEYS) for field in rows.schema])
    create_table(
        create_store(root), root, TableSpec("bench", "keyed", columns_of(schema), KEYS, split_points=points), "bench"
    )
    run(root, "keyed", IngestRequest((str(folder / "flights.parquet"),), engine="driver"))
    table = open_table(root, "keyed")
    chosen = random.Random(7).sample(range(rows.num_rows), count)  # noqa: S311 (no secret)
    keys = [tuple(rows[name][row].as_py() for name in KEYS) for row in chosen]
    hour = dt.timedelta(hours=1)
    looks: dict[str, Callable[[tuple[object, ...]], Rows]] = {
        "full key": lambda key: table.keys(key),
        "key prefix (hour)": lambda key: table.keys(key[:1]),
        "range (2 hours)": lambda key: table.range({"time_hour": Interval(key[0], key[0] + hour)}),  # type: ignore[operator]
    }
    fragments = table.keys(keys[0]).total
    print(f"{rows.num_rows:,} rows x {rows.num_columns} columns in {fragments} fragments, {count} look-ups")
    for label, look in looks.items():
        times, found, opened = [], 0, 0
        for key in keys[:3] + keys:
            started = time.perf_counter()
            result = look(key)
            found, opened = result.to_table().num_rows, result.opened
            times.append((time.perf_counter() - started) * 1000)
        times = sorted(times[3:])
        print(
            f"{label}: median {statistics.median(times):.1f} ms, 95% {times[int(len(times) * 0.95)]:.1f} ms"
            f" (last: {found} rows from {opened} fragments)"
        )


if __name__ == "__main__":
    main()
