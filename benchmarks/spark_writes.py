"""Compares a keyed write from Spark with `ingest --engine spark` of the same file, and measures batches of a stream.

    python -m benchmarks.spark_writes [--copies 10] [--repeat 3] [--leaves 16] [--batches 1000] [--batch-rows 1000]
        [--memory 3g] [--wide]

The rows are those of `benchmarks.ingest`. Java uses the optimizing compiler, as in users' own sessions and on clusters.
With `--memory 2g` it does not, as in the session of `ingest --engine spark` on one machine. `narrow_rows` of `register`
is on unless `--wide` is given. Batches are written by both halves of the stream's writer, without Spark's own part. The
table's COMPACT runs every 20 commits and its CLEAN every 50 (with `--keep-versions`, CLEAN does not run). COMPACT
merges files of about the same size, as docs/spark.md recommends; with `--strategy size` it rewrites all rows each time
until a file has its size. The first tenth of the batches is compared with the last.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext

from benchmarks.ingest import KEYS, flights
from benchmarks.processes import seconds_of
from benchmarks.spark_source import MEMORY
from deployer.compute.spark.local import DEFAULT_MEMORY, LocalCluster, local_session, stop_session
from deployer.services.api.attachments import create_service
from deployer.spark import arranged, register
from deployer.spark.type_mapping import spark_schema
from deployer.spark.writing.writers import BATCH, QUERY, stream_writer
from deployer.specs.model import TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.state import create_store
from deployer.state.model.services import Service
from deployer.tables.admin.tables import create_table
from deployer.tables.ingest.request import IngestRequest
from deployer.tables.read.table import open_table
from spark_jobs.ingest import run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--leaves", type=int, default=16)
    parser.add_argument("--batches", type=int, default=1000)
    parser.add_argument("--batch-rows", type=int, default=1000)
    parser.add_argument("--keep-versions", action="store_true", help="no CLEAN")
    parser.add_argument("--strategy", choices=("size", "tiered", "leveled"), default="tiered", help="of COMPACT")
    parser.add_argument("--memory", default=MEMORY, help=f"of Spark; with {DEFAULT_MEMORY} Java does not optimise")
    parser.add_argument("--wide", action="store_true", help="without `narrow_rows` of `register`")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="deployer-bench-"))
    try:
        if given.batches:
            measure_batches(folder, given.batches, given.batch_rows, given.strategy, clean=not given.keep_versions)
        if given.copies:
            measure_writes(folder, given.copies, given.repeat, given.leaves, given.memory, narrow=not given.wide)
    finally:
        stop_session()
        shutil.rmtree(folder, ignore_errors=True)


def measure_writes(folder: Path, copies: int, repeat: int, leaves: int, memory: str, *, narrow: bool) -> None:
    """Prints the seconds and the CPU seconds of one keyed load by each way."""
    rows = flights(copies)
    source, root = folder / "flights.parquet", str(folder / "lake")
    pq.write_table(rows, source, row_group_size=131_072)
    hours = np.sort(rows["time_hour"].cast(pa.int64()).to_numpy())
    points = sorted({int(hours[len(hours) * i // leaves]) for i in range(1, leaves)})
    schema = pa.schema([field.with_nullable(field.name not in KEYS) for field in rows.schema])
    store = create_store(root)
    for name in ("ingest", "write", "arranged"):
        splits = tuple((point,) for point in points)
        create_table(store, root, TableSpec("bench", name, columns_of(schema), KEYS, split_points=splits), "bench")
    session = local_session(LocalCluster(memory=memory))
    register(session, narrow_rows=narrow)
    frame = session.read.parquet(str(source))

    def write(table: str) -> Callable[[], object]:
        found = arranged(frame, root, f"bench.{table}", leaves) if table == "arranged" else frame
        options = {"root": root, "services": "false"}
        return lambda: found.write.format("deployer").options(**options).mode("append").save(f"bench.{table}")

    print(f"{rows.num_rows:,} rows x {rows.num_columns} columns into {len(points) + 1} leaves, best of {repeat}")
    ways: dict[str, Callable[[], object]] = {
        "ingest --engine spark": lambda: run(root, "bench.ingest", IngestRequest((str(source),), engine="spark")),
        "df.write": write("write"),
        "arranged(df).write": write("arranged"),
        "Spark gives the rows to Python, which counts them": lambda: frame.mapInArrow(_count, "rows long").collect(),
    }
    tables = dict(zip(ways, ("ingest", "write", "arranged"), strict=False))
    taken: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for _ in range(repeat):  # the ways take turns, so that all run under the same load
        for way, work in ways.items():
            taken[way].append(seconds_of(work))
    base = [min(each) for each in zip(*taken["ingest --engine spark"], strict=True)]
    print("| way | s | rows/s | of ingest | CPU s | of ingest | files a load |")
    print("|---|---|---|---|---|---|---|")
    for way, each in taken.items():
        seconds, cpu = (min(found) for found in zip(*each, strict=True))
        files = open_table(root, f"bench.{tables[way]}").opened.state.files.count // repeat if way in tables else ""
        rate = f"{rows.num_rows / seconds:,.0f}"
        ratios = seconds / base[0], cpu / base[1]
        print(f"| {way} | {seconds:.2f} | {rate} | {ratios[0]:.2f} | {cpu:.2f} | {ratios[1]:.2f} | {files} |")


def _count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"rows": [sum(each.num_rows for each in batches)]})


def measure_batches(folder: Path, batches: int, rows: int, strategy: str, *, clean: bool) -> None:
    """Prints the seconds of the first and of the last batches."""
    root = str(folder / "stream")
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("value", pa.float64())])
    store = create_store(root)
    create_table(store, root, TableSpec("bench", "stream", columns_of(schema), ("id",)), "bench")
    table_id = open_table(root, "bench.stream").opened.entry.table_id
    create_service(store, table_id, Service("COMPACT", "AUTOMATIC", {"commits": 20}, {"strategy": strategy}))
    if clean:
        create_service(store, table_id, Service("CLEAN", "AUTOMATIC", {"commits": 50}, {"older_than": "0h"}))
    options, columns = {"root": root, "path": "bench.stream"}, spark_schema(columns_of(schema))
    times, cpu = list[float](), list[float]()
    for batch in range(batches):
        ids = np.arange(batch * rows, (batch + 1) * rows)
        data = pa.RecordBatch.from_arrays([pa.array(ids), pa.array(ids / 7)], schema=schema)
        started, before = time.perf_counter(), time.process_time()
        with patch.object(TaskContext, "get", _Context(batch)):
            message = stream_writer(options, columns, overwrite=False).write(iter([data]))
        stream_writer(options, columns, overwrite=False).commit([message], batch)
        times.append(time.perf_counter() - started)
        cpu.append(time.process_time() - before)
    share = max(1, batches // 10)
    state = open_table(root, "bench.stream").opened.state
    runs = Counter(run.service for run in state.runs.values() if run.status == "SUCCEEDED")
    ran = ", ".join(f"{kind} {runs[kind]} times" for kind in state.services)
    print(f"{batches:,} batches of {rows:,} rows: {state.files.rows:,} rows in {state.files.count} files; ran {ran}")
    print("| ms a batch | first tenth | last tenth | last / first |")
    print("|---|---|---|---|")
    for name, values in (("time", times), ("processor time", cpu)):
        for kind, average in (("mean", statistics.fmean), ("median", statistics.median)):
            first, last = average(values[:share]) * 1000, average(values[-share:]) * 1000
            print(f"| {name}, {kind} | {first:.1f} | {last:.1f} | {last / first:.2f} |")


class _Context:
    """The task context of Spark for the only task of a batch."""

    def __init__(self, batch: int) -> None:
        self._of_stream = {QUERY: "bench", BATCH: str(batch)}

    def __call__(self) -> _Context:
        return self

    def partitionId(self) -> int:  # noqa: N802 (Spark's name)
        return 0

    def getLocalProperty(self, name: str) -> str:  # noqa: N802 (Spark's name)
        return self._of_stream[name]


if __name__ == "__main__":
    main()
