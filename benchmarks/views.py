"""Measures refreshes of materialized views.

    python -m benchmarks.views [--rows N] [--fragments N] [--repeat N] [--spark] [--cpu]

A table of 3,400,000 rows (id, carrier, dest, day, distance, delay) with a unique row key is the source of a row view
and of group views with 16 to 600,000 groups. Each view is refreshed by `Table.refresh`, with its run, lease and
commits: in full, after a load of 10,000 rows, and after a load of 1% new rows. The loads are not counted.

A table of 10,000 fragments is the source of a view that calls a function for each row. The view is refreshed after 100
new fragments, and after rows of 100 fragments were deleted; the time within the function is printed separately.

Times are medians, with the maximum beside them. With `--cpu`, they are this process's CPU seconds, for a machine that
others use too. With `--spark`, Spark writes the results of the same queries to Parquet, in turn with full refreshes;
these times are wall-clock seconds.
"""
# ruff: noqa: S608 (the queries consist of texts in this module)

from __future__ import annotations

import argparse
import gc
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from benchmarks.report import print_figure, print_heading, print_table
from deployer.specs.model import Storage, TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.state import create_store
from deployer.table import Connection, Table, connect, udf
from deployer.tables.admin.tables import create_table
from deployer.tables.read.table import open_table

Clock = Callable[[], float]  #: returns seconds

SOURCE = "nyc.flights"
SIZE = 3_400_000
FRAGMENTS = 10_000
CHANGED = 100  #: fragments
LOAD = 10_000
AGGREGATES = "count(*) AS n, sum(distance) AS far, avg(delay) AS mean, min(delay) AS least, max(delay) AS most"
QUERIES = {
    "rows": f"SELECT id, upper(carrier) AS carrier, distance * 1.6 AS km, delay FROM {SOURCE} WHERE distance > 500",
    "16 groups": f"SELECT carrier, {AGGREGATES} FROM {SOURCE} GROUP BY carrier",
    "600,000 groups": f"SELECT carrier, dest, day, {AGGREGATES} FROM {SOURCE} GROUP BY carrier, dest, day",
    "sketches": f"SELECT carrier, approx_distinct(id) AS n FROM {SOURCE} GROUP BY carrier",
}
FIELDS = [("id", pa.int64()), ("carrier", pa.string()), ("dest", pa.string()), ("day", pa.date32())]
FIELDS += [("distance", pa.int64()), ("delay", pa.float64())]
SCHEMA = pa.schema([pa.field(name, kind, nullable=name != "id") for name, kind in FIELDS])


def flights(rows: int, first: int) -> pa.Table:
    """Returns rows with ids from `first` on."""
    values = np.random.default_rng(first)
    carriers = np.array([f"C{number:02}" for number in range(16)])
    airports = np.array([f"A{number:03}" for number in range(105)])
    columns = [
        np.arange(first, first + rows),
        carriers[values.integers(0, 16, rows)],
        airports[values.integers(0, 105, rows)],
        pa.array(values.integers(15706, 16071, rows).astype(np.int32)).cast(pa.date32()),
        values.integers(50, 5000, rows),
        values.normal(5, 20, rows),
    ]
    return pa.table([pa.array(each) for each in columns], schema=SCHEMA)


def made(root: str, storage: Storage | None = None) -> Connection:
    """Creates a lake with the empty source at `root`, and connects to it."""
    spec = TableSpec("nyc", "flights", columns_of(SCHEMA), ("id",), unique=True, storage=storage or Storage())
    store = create_store(root, instance="")
    create_table(store, root, spec, "benchmarks")
    store.close()
    return connect(root, trust_udfs=True)


def timed(run: Callable[[], Any], clock: Clock = time.perf_counter) -> float:
    """Returns the seconds of a call, by the clock `clock`."""
    gc.collect()
    begun = clock()
    run()
    return clock() - begun


class Loads:
    """The loads of new rows into the source. Each load has new ids."""

    def __init__(self, source: Table, clock: Clock) -> None:
        self.source, self.clock, self.next = source, clock, 0

    def add(self, rows: int) -> None:
        self.source.add(flights(rows, self.next))
        self.next += rows

    def refreshes(self, view: Table, rows: int, repeat: int) -> list[float]:
        """Returns the seconds of `repeat` refreshes, each after a load of `rows` rows."""
        found = []
        for _ in range(repeat + 1):
            self.add(rows)
            found.append(timed(lambda: incremental(view), self.clock))
        return found[1:]  # the first one imports modules


def incremental(view: Table) -> None:
    done = view.refresh()
    assert done.mode == "incremental", done.reason


def of_loads(folder: str, rows: int, repeat: int, clock: Clock) -> None:
    """Prints the times of refreshes after loads."""
    print_heading(f"Refreshes of views of {rows:,} rows")
    with made(f"{folder}/loads") as lake:
        loads = Loads(lake.open_table(SOURCE), clock)
        for first in range(0, rows, SIZE):
            loads.add(min(SIZE, rows - first))
        table, figures = list[Sequence[str]](), list[tuple[str, float, str, float]]()
        for number, (name, query) in enumerate(QUERIES.items()):
            view = lake.create_materialized_view(f"nyc.view{number}", query)
            view.refresh()
            whole = statistics.median(timed(partial(view.refresh, full=True), clock) for _ in range(repeat))
            few, many = loads.refreshes(view, LOAD, 2 * repeat), loads.refreshes(view, rows // 100, repeat)
            shares = f"{statistics.median(many) / whole:.1%}"
            table.append((name, f"{whole:.3f} s", cells(few), cells(many), shares))
            figures.append((f"1% new rows, view of {name}", statistics.median(many) / whole * 100, "%", 3))
            if name != "rows":
                figures.append((f"{LOAD:,} new rows, view of {name}", statistics.median(few), "s", 0.3))
        print_table(("view", "full", f"{LOAD:,} new rows (most)", "1% new rows (most)", "1% of a full one"), table)
    for name, value, unit, target in figures:
        print_figure(name, value, unit, target if rows == SIZE or (unit == "%" and rows > SIZE) else None)


def cells(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.3f} s ({max(seconds):.3f})"


def of_fragments(folder: str, rows: int, fragments: int, repeat: int, clock: Clock) -> None:
    """Prints the times of refreshes from a table of many fragments, with and without the time of the view's
    function."""
    print_heading(f"Refreshes of a view of {fragments:,} fragments that calls a function")
    spent, size = Path(folder, "spent"), max(1, rows // fragments)

    def kilometres(distance: pa.Array) -> pa.Array:
        begun = time.perf_counter()
        found = pa.array([each * 1.609 for each in distance.to_pylist()], pa.float64())
        with Path(noted).open("a") as file:
            file.write(f"{time.perf_counter() - begun}\n")
        return found

    noted = str(spent)
    with made(f"{folder}/fragments") as lake:
        source = lake.open_table(SOURCE)
        source.add(flights(size, 0))
        location = open_table(f"{folder}/fragments", SOURCE).opened.location
        add_files(location, flights(size * (fragments - 1), size), size)
        function = udf(data_type=pa.float64())(kilometres)
        view = lake.create_materialized_view(
            "nyc.far", f"SELECT id, carrier, kilometres(distance) AS km FROM {SOURCE}", {"kilometres": function}
        )
        view.refresh()
        print(f"the source has {len(lance.dataset(location).get_fragments()):,} files of {size} rows\n")
        ids = size * fragments
        table = list[Sequence[str]]()
        for change in ("new", "with deleted rows"):
            seconds, within = list[float](), list[float]()
            for number in range(repeat + 1):
                if change == "new":
                    add_files(location, flights(size * CHANGED, ids), size)
                    ids += size * CHANGED
                else:
                    kept = size * CHANGED * number
                    source.delete(f"id >= {kept} AND id < {kept + size * CHANGED} AND id % {size} = 0")
                spent.write_text("")
                seconds.append(timed(lambda: incremental(view), clock))
                within.append(sum(map(float, spent.read_text().split())))
            whole, own = statistics.median(seconds[1:]), statistics.median(within[1:])
            table.append((f"{CHANGED} fragments {change}", cells(seconds[1:]), f"{own:.3f} s", f"{whole - own:.3f} s"))
        print_table(("change", "refresh (most)", "in the function", "without it"), table)
    print(f"To reach at {FRAGMENTS:,} fragments: at most 1 s without the function")


def add_files(location: str, rows: pa.Table, size: int) -> None:
    """Adds rows to the source as files of `size` rows, by one commit of plain Lance."""
    lance.write_dataset(rows, location, mode="append", max_rows_per_file=size)


def beside_spark(folder: str, rows: int, repeat: int) -> None:
    """Prints the times of full refreshes, in turn with Spark, which reads the same rows from Parquet and writes
    Parquet."""
    import pyarrow.parquet as pq
    from pyspark.sql import SparkSession

    print_heading(f"Full refreshes of {rows:,} rows, beside Spark writing Parquet")
    everything = flights(rows, 0)
    pq.write_table(everything, f"{folder}/source.parquet")
    cores = os.cpu_count()
    spark = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.read.parquet(f"{folder}/source.parquet").createOrReplaceTempView("flights")
    table = list[Sequence[str]]()
    with made(f"{folder}/spark") as lake:
        lake.open_table(SOURCE).add(everything)
        for number, (name, query) in enumerate(QUERIES.items()):
            view = lake.create_materialized_view(f"nyc.view{number}", query)
            by_spark = query.replace(SOURCE, "flights").replace("approx_distinct(", "approx_count_distinct(")

            def theirs(query: str = by_spark) -> None:
                spark.sql(query).write.mode("overwrite").parquet(f"{folder}/theirs")

            view.refresh()
            theirs()  # compiled once
            own, other = list[float](), list[float]()
            for _ in range(repeat):
                own.append(timed(partial(view.refresh, full=True)))
                other.append(timed(theirs))
            ratio = statistics.median(own) / statistics.median(other)
            table.append((name, cells(own), cells(other), f"{ratio:.2f}"))
    spark.stop()
    print_table(("view", "deployer (most)", "Spark (most)", "times"), table)
    print("To reach: at most 1 times")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=SIZE)
    parser.add_argument("--fragments", type=int, default=FRAGMENTS, help="0 leaves them out")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--cpu", action="store_true", help="CPU seconds, but beside Spark")
    parser.add_argument("--no-loads", action="store_true", help="leave out refreshes after loads")
    given = parser.parse_args()
    clock = time.process_time if given.cpu else time.perf_counter
    with tempfile.TemporaryDirectory(prefix="deployer-views-") as folder:
        if not given.no_loads:
            of_loads(folder, given.rows, given.repeat, clock)
        if given.fragments:
            of_fragments(folder, given.rows, given.fragments, given.repeat, clock)
        if given.spark:
            beside_spark(folder, given.rows, given.repeat)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"Peak memory of this process: {peak:,.0f} MB; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
