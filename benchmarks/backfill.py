"""Compares `backfill` with a bare loop that reads, computes and writes one data file for each fragment, without a
commit.

    python -m benchmarks.backfill [--rows 1000000] [--files 8] [--repeat 3] [--calls 10000] [--fragments 10000]
        [--geneva PYTHON]

Each kind of function is measured in its own process, in which the loop and the backfill take turns. The functions are a
scalar Python function, a function of Arrow arrays, and a function that takes 1 ms, over `--calls` rows. The loop has as
many threads as the backfill. Tasks of a local Spark session, which already runs, do the same work. Before the
measurement, each way writes a fragment; Spark writes as many as start all workers. The figures of the third function
are the ratios of the backfill's time to `calls × 1 ms / threads` and to the loop's time.

The time of adding a computed column includes the time of packaging its function. For a table of `--fragments`
fragments, and for one with a tenth of them, the benchmark measures the seconds of `plan_backfill` without and with a
condition (and of Lance's own count with this condition), the seconds until a new process has called a function for the
first time, and the peak memory of a backfill. Only the last two include imports. geneva computes the scalar function if
`--geneva` names a Python that has it; Ray already runs then.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

KINDS = ("scalar", "arrow", "1 ms")
LOOP, OURS, SPARK = "bare loop", "deployer backfill", "with Spark running"
THREADS = os.cpu_count() or 1


def functions() -> dict[str, Any]:
    """Returns the functions by kind."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from deployer.functions import udf

    @udf(version="1")
    def scalar(value: int) -> float:
        return value * 2.0 + 1.0

    @udf(data_type="float64", version="1")
    def arrow(value: pa.Array) -> pa.Array:
        return pc.add(pc.multiply(pc.cast(value, pa.float64()), 2.0), 1.0)

    @udf(version="1")
    def sleeping(value: int) -> float:
        end = time.perf_counter() + 0.001
        time.sleep(0.0009)  # a sleep ends up to 0.1 ms late
        while time.perf_counter() < end:
            pass
        return value * 2.0 + 1.0

    return {"scalar": scalar, "arrow": arrow, "1 ms": sleeping}


def made(folder: Path, rows: int, files: int) -> None:
    """Makes a lake with a table of int64 values in `files` fragments, and a column that is not computed yet."""
    import numpy as np
    import pyarrow as pa

    from deployer.specs.model import TableSpec
    from deployer.specs.types.arrow import columns_of
    from deployer.state import create_store
    from deployer.table import connect
    from deployer.tables.admin.tables import create_table

    schema = pa.schema([pa.field("value", pa.int64(), nullable=False), pa.field("made", pa.float64())])
    root = str(folder / "lake")
    spec = TableSpec("bench", "rows", columns_of(schema), ())
    create_table(create_store(root, instance="bench"), root, spec, "benchmarks")
    bounds = np.linspace(0, rows, files + 1).astype(int)
    with connect(root) as connection:
        table = connection.open_table("bench.rows")
        for start, stop in pairwise(bounds):
            values = pa.array(np.arange(start, stop, dtype=np.int64))
            table.add(pa.table([values, pa.nulls(len(values), pa.float64())], schema=schema))


def loop(folder: Path, kind: str) -> float:
    """Returns the seconds of reading the column, calling the plain function, and writing one data file for each
    fragment."""
    import pyarrow as pa

    from deployer.datasets.files.column_files import remove_column_files, write_column_file
    from deployer.tables.read.table import open_table

    function = functions()[kind].function
    table = open_table(str(folder / "lake"), "bench.rows").opened
    dataset, field = table.dataset(), pa.field("made", pa.float64())

    def written(fragment: Any) -> Any:
        def batches() -> Any:
            for batch in dataset.scanner(columns=["value"], fragments=[fragment], scan_in_order=True).to_batches():
                values = batch.column("value")
                found = (
                    function(values) if kind == "arrow" else pa.array([function(each) for each in values.to_pylist()])
                )
                yield pa.RecordBatch.from_arrays([found], schema=pa.schema([field]))

        return write_column_file(dataset, table.location, fragment.fragment_id, pa.schema([field]), batches())

    fragments = dataset.get_fragments()
    remove_column_files(table.location, [written(fragments[0])])  # imports modules and does the setup of the first call
    begun = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        files = list(pool.map(written, fragments))
    seconds = time.perf_counter() - begun
    remove_column_files(table.location, files)
    return seconds


def ours(folder: Path, kind: str, engine: str = "driver") -> float:
    """Returns the seconds of one backfill of all rows."""
    from deployer.table import connect

    function = functions()[kind]
    with connect(str(folder / "lake")) as connection:
        table = connection.open_table("bench.rows")
        given: dict[str, Any] = {"udf": function, "_admission_check": False, "engine": engine}
        first = 2 * THREADS if engine == "spark" else 1  # so that each worker imports its modules
        table.backfill("made", where="1=1", num_frags=first, **given)
        begun = time.perf_counter()
        table.backfill("made", where="1=1", **given)
        return time.perf_counter() - begun


def planned(folder: Path) -> tuple[float, float, float]:
    """Returns the median seconds of planning a backfill from the state, and with a condition, and of Lance's own count
    with that condition."""
    from deployer.table import connect
    from deployer.tables.read.table import open_table

    dataset, condition = open_table(str(folder / "lake"), "bench.rows").opened.dataset(), "value % 2 = 1"
    with connect(str(folder / "lake")) as connection:
        table, function = connection.open_table("bench.rows"), functions()["scalar"]
        plan, recorded = _timed(lambda: table.plan_backfill("made", udf=function))
        some, counted = _timed(lambda: table.plan_backfill("made", udf=function, where=condition))
        rows, bare = _timed(lambda: dataset.count_rows(filter=condition))
    if (plan.rows, some.rows) != (plan.total_rows, rows):
        sys.exit(f"{plan.rows:,} and {some.rows:,} of {plan.total_rows:,} rows are planned")
    return recorded, counted, bare


def added(folder: Path) -> float:
    """Returns the median seconds of adding a computed column, including the package of its function."""
    from deployer.table import connect

    with connect(str(folder / "lake")) as connection:
        table, function, names = connection.open_table("bench.rows"), functions()["scalar"], iter(range(99))
        table.add_columns({"first": function})  # imports are not counted
        return _timed(lambda: table.add_columns({f"added_{next(names)}": function}))[1]


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    found = []
    for _ in range(5):
        begun = time.perf_counter()
        result = work()
        found.append(time.perf_counter() - begun)
    return result, statistics.median(found)


def first_call(folder: Path, begun: float) -> float:
    """Returns the seconds from `begun`, the start of this process, to the first call of a function."""
    from deployer.functions import udf
    from deployer.table import connect

    calls: list[float] = []

    @udf(version="1")
    def noted(value: int) -> float:
        calls.append(time.time())
        return float(value)

    with connect(str(folder / "lake")) as connection:
        connection.open_table("bench.rows").backfill("made", udf=noted, num_frags=THREADS)
    return calls[0] - begun


def fragmented(folder: Path, fragments: int) -> None:
    """Makes a lake with a table of `fragments` fragments of one row each, by one commit of Lance."""
    import lance
    import pyarrow as pa

    from deployer.datasets.recovery.rollforward import refresh
    from deployer.state import open_store
    from deployer.tables.read.table import open_table

    made(folder, 1, 1)
    location = open_table(str(folder / "lake"), "bench.rows").opened
    rows = pa.table({"value": pa.array(range(1, fragments), pa.int64()), "made": pa.nulls(fragments - 1, pa.float64())})
    schema = location.schema
    lance.write_dataset(rows.cast(schema), location.location, mode="append", max_rows_per_file=1)
    store = open_store(str(folder / "lake"))
    refresh(store, str(folder / "lake"), location.entry.table_id)
    store.close()


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--fragments", type=int, default=10_000)
    parser.add_argument("--geneva", metavar="PYTHON", help="a Python that has geneva")
    parser.add_argument("--begun", type=float, default=0.0, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--run", choices=["make", "fragments", "plan", "first", "add", LOOP, OURS, SPARK])
    arguments = parser.parse_args()
    match arguments.run:
        case "make":
            made(arguments.folder, arguments.rows, arguments.files)
        case "fragments":
            fragmented(arguments.folder, arguments.fragments)
        case "plan":
            print(*planned(arguments.folder))
        case "add":
            print(added(arguments.folder))
        case "first":
            print(first_call(arguments.folder, arguments.begun))
        case None:
            _compare(arguments)
        case "bare loop":
            print(loop(arguments.folder, arguments.kind))
        case name:
            print(ours(arguments.folder, arguments.kind, "spark" if name == SPARK else "driver"))


def _compare(arguments: argparse.Namespace) -> None:
    from benchmarks.processes import run
    from benchmarks.report import print_figure, print_heading, print_table

    this = [sys.executable, "-m", "benchmarks.backfill"]
    lines: list[list[str]] = []
    figures: list[tuple[str, float, str]] = []
    scalar = 0.0
    with tempfile.TemporaryDirectory() as temporary:
        for kind in KINDS:
            folder = Path(temporary, kind.replace(" ", "-"))
            folder.mkdir()
            rows = arguments.calls if kind == "1 ms" else arguments.rows
            own = ["--folder", str(folder), "--kind", kind, "--rows", str(rows), "--files", str(arguments.files)]
            run(*this, "--run", "make", *own, cwd=Path.cwd())
            names = (LOOP, OURS) if kind == "1 ms" else (LOOP, OURS, SPARK)
            seconds: dict[str, list[float]] = {name: [] for name in names}
            peaks: dict[str, list[float]] = {name: [] for name in names}
            for _ in range(arguments.repeat):
                for name in names:
                    ran = run(*this, "--run", name, *own, cwd=Path.cwd())
                    seconds[name].append(float(ran.output.split()[-1]))
                    peaks[name].append(ran.peak)
            least = {name: min(found) for name, found in seconds.items()}
            lines += [
                [f"{kind}, {name}", f"{len(found)}", f"{statistics.median(found):.2f}", f"{min(found):.2f}",
                 f"{rows / statistics.median(found):,.0f}", f"{max(peaks[name]):,.0f}"]
                for name, found in seconds.items()
            ]  # fmt: skip
            if kind == "scalar":
                scalar = least[OURS]
                adding = 1000 * float(run(*this, "--run", "add", *own, cwd=Path.cwd()).output.split()[-1])
                figures.append((f"add_columns of a function, {rows:,} rows", adding, "ms"))
            if kind == "1 ms":
                share = least[OURS] / (rows * 0.001 / THREADS) - 1
                figures.append((f"{kind}: time over calls × 1 ms / {THREADS}, percent", 100 * share, ""))
                figures.append((f"{kind}: time over the bare loop, percent", 100 * (least[OURS] / least[LOOP] - 1), ""))
            else:
                figures.append((f"{kind}: rows a second of those of the bare loop", least[LOOP] / least[OURS], ""))
                figures.append((f"{kind}: with Spark, of those of the bare loop", least[LOOP] / least[SPARK], ""))
        figures += _of_fragments(this, Path(temporary), arguments.fragments)
        if arguments.geneva:
            script = str(Path(__file__).with_name("backfill_geneva.py"))
            peer = (str(Path(temporary, "geneva")), str(arguments.rows), str(arguments.files))
            took = float(run(arguments.geneva, script, *peer, cwd=Path.cwd()).output.split()[-1])
            lines.append(["scalar, geneva", "1", f"{took:.2f}", f"{took:.2f}", f"{arguments.rows / took:,.0f}", ""])
            figures.append(("scalar: rows a second of those of geneva", took / scalar, "times"))
    print_heading(f"backfill of {arguments.rows:,} rows, and of {arguments.calls:,} by 1 ms each")
    print_table(["", "runs", "median s", "least s", "rows/s", "peak MiB"], lines)
    for name, value, unit in figures:
        print_figure(name, value, unit, None)


def _of_fragments(this: list[str], temporary: Path, most: int) -> list[tuple[str, float, str]]:
    """Returns the figures of tables with many fragments."""
    from benchmarks.processes import run

    figures = []
    for number in (max(1, most // 10), most):
        folder = temporary / f"fragments-{number}"
        folder.mkdir()
        own = ["--folder", str(folder), "--fragments", str(number), "--kind", "scalar"]
        run(*this, "--run", "fragments", *own, cwd=Path.cwd())
        of = f"of {number:,} fragments"
        plan, counted, bare = map(float, run(*this, "--run", "plan", *own, cwd=Path.cwd()).output.split()[-3:])
        begun = ["--begun", str(time.time())]
        first = float(run(*this, "--run", "first", *begun, *own, cwd=Path.cwd()).output.split()[-1])
        ran = run(*this, "--run", OURS, *own, cwd=Path.cwd())
        figures += [
            (f"plan {of}", plan, "s"),
            (f"plan {of} by a condition, of Lance's count of its rows", counted / bare, ""),
            (f"first call of a new process, {of}", first, "s"),
            (f"backfill {of}", float(ran.output.split()[-1]), "s"),
            (f"backfill {of}, peak memory", ran.peak, "MiB"),
        ]
    return figures


if __name__ == "__main__":
    main()
