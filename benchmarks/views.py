"""Views: `python -m benchmarks.views [--rows N] [--spark]`.

A Lance dataset of 3,400,000 rows (id, carrier, dest, day, distance, delay) is the source. For a row view and for group
views, from 16 groups to 600,000: a full build that is written to Lance, and the change of the view for 10,000 new rows
and for 1% new rows, computed and written, with the rows of the view read from Lance. Times are the least of several
runs; CPU seconds count all threads. With `--spark`, Spark writes the same queries to Parquet in the same run.
"""
# ruff: noqa: S608 (the queries are put together from texts of this module)

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from benchmarks.report import print_heading, print_table
from deployer.views.query.build import build
from deployer.views.query.delta import delta
from deployer.views.query.model import SourceSchema, ViewQuery
from deployer.views.query.parsing.parse import parse_view

SOURCE = "nyc.flights"
LOAD = 10_000
AGGREGATES = "count(*) AS n, sum(distance) AS far, avg(delay) AS mean, min(delay) AS least, max(delay) AS most"
QUERIES = {
    "rows": f"SELECT id, upper(carrier) AS carrier, distance * 1.6 AS km, delay FROM {SOURCE} WHERE distance > 500",
    "16 groups": f"SELECT carrier, {AGGREGATES} FROM {SOURCE} GROUP BY carrier",
    "600,000 groups": f"SELECT carrier, dest, day, {AGGREGATES} FROM {SOURCE} GROUP BY carrier, dest, day",
    "sketches": f"SELECT carrier, approx_distinct(id) AS n FROM {SOURCE} GROUP BY carrier",
}


def flights(rows: int, first: int) -> pa.Table:
    """Returns rows with ids from `first` on."""
    values = np.random.default_rng(first)
    carriers = np.array([f"C{number:02}" for number in range(16)])
    airports = np.array([f"A{number:03}" for number in range(105)])
    day = pa.array(values.integers(15706, 16071, rows).astype(np.int32)).cast(pa.date32())
    return pa.table(
        {
            "id": np.arange(first, first + rows),
            "carrier": carriers[values.integers(0, 16, rows)],
            "dest": airports[values.integers(0, 105, rows)],
            "day": day,
            "distance": values.integers(50, 5000, rows),
            "delay": values.normal(5, 20, rows),
        }
    )


class Source:
    """The dataset as a query reads it."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def read(self, table: str, columns: Sequence[str], where: str) -> Iterator[pa.RecordBatch]:
        yield from self.dataset.to_batches(columns=list(columns), filter=where or None)


class Inserted:
    """New rows of the source."""

    tables = (SOURCE,)

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows

    def before(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return iter(())

    def after(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from self.rows.select(list(columns)).to_batches(max_chunksize=8192)


class Written:
    """The view's rows in Lance."""

    def __init__(self, location: str) -> None:
        self.dataset = lance.dataset(location)

    def rows(self, identities: pa.Table) -> Iterator[pa.RecordBatch]:
        yield from self.dataset.to_batches()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=3_400_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--spark", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="deployer-views-") as folder:
        source = flights(given.rows, 0)
        dataset = lance.write_dataset(source, f"{folder}/source")
        fields = [each.with_nullable(each.name != "id") for each in source.schema]
        schema = SourceSchema(SOURCE, pa.schema(fields), ("id",), unique=True)
        print_heading(f"Views of {given.rows:,} rows")
        rows = list[Sequence[str]]()
        for name, text in QUERIES.items():
            view = parse_view(text, lambda _: schema)
            rows.append(measured(name, view, Source(dataset), Path(folder), given.rows, given.repeat))
        header = ("view", "build", "CPU", f"{LOAD:,} new rows", "CPU", "1% new rows", "CPU", "1% of a build")
        print_table(header, rows)
        if given.spark:
            print_heading("The same queries, built and written, beside Spark writing Parquet")
            print_table(
                ("view", "deployer", "Spark"), beside_spark(source, Source(dataset), schema, folder, given.repeat)
            )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"Peak memory of this process: {peak:,.0f} MB")


def measured(name: str, view: ViewQuery, source: Source, folder: Path, rows: int, repeat: int) -> Sequence[str]:
    location = str(folder / "view")

    def write() -> None:
        reader = pa.RecordBatchReader.from_batches(view.stored_schema, build(view, source))
        lance.write_dataset(reader, location, mode="overwrite")

    full = least(write, repeat)
    small, large = flights(LOAD, rows), flights(rows // 100, rows)

    def change(added: pa.Table) -> Callable[[], None]:
        def run() -> None:
            found = delta(view, Inserted(added), source, Written(location))
            for _ in found.removed:
                pass
            batches = pa.RecordBatchReader.from_batches(view.stored_schema, found.added)
            lance.write_dataset(batches, str(folder / "added"), mode="overwrite")

        return run

    few, many = least(change(small), repeat), least(change(large), repeat)
    times = [f"{each:.3f} s" for pair in (full, few, many) for each in pair]
    return (name, *times, f"{many[0] / full[0]:.1%}, CPU {many[1] / full[1]:.1%}")


def least(run: Callable[[], None], repeat: int) -> tuple[float, float]:
    """Returns the least seconds and CPU seconds of several runs."""
    found = list[tuple[float, float]]()
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        found.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(wall for wall, _ in found), min(cpu for _, cpu in found)


def beside_spark(
    source: pa.Table, reader: Source, schema: SourceSchema, folder: str, repeat: int
) -> list[Sequence[str]]:
    """Returns the seconds of builds by us and by Spark, which reads the same rows from Parquet, in alternating runs."""
    import pyarrow.parquet as pq
    from pyspark.sql import SparkSession

    pq.write_table(source, f"{folder}/source.parquet")
    spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.read.parquet(f"{folder}/source.parquet").createOrReplaceTempView("flights")
    found = list[Sequence[str]]()
    for name, text in QUERIES.items():
        view = parse_view(text, lambda _: schema)
        by_spark = text.replace(SOURCE, "flights").replace("approx_distinct(", "approx_count_distinct(")

        def ours(view: ViewQuery = view) -> None:
            batches = pa.RecordBatchReader.from_batches(view.stored_schema, build(view, reader))
            lance.write_dataset(batches, f"{folder}/ours", mode="overwrite")

        def theirs(query: str = by_spark) -> None:
            spark.sql(query).write.mode("overwrite").parquet(f"{folder}/theirs")

        theirs()  # compiled once
        pairs = [(least(ours, 1)[0], least(theirs, 1)[0]) for _ in range(repeat)]
        found.append((name, f"{min(own for own, _ in pairs):.2f} s", f"{min(other for _, other in pairs):.2f} s"))
    spark.stop()
    return found


if __name__ == "__main__":
    main()
