"""Compares `load_columns` with DuckDB's join and COPY of the same data, each in its own process.

    python -m benchmarks.load_columns [--rows 3400000] [--width 128] [--files 8] [--repeat 3] [--order shuffled|same]
                                      [--cpu]

The table has `--rows` rows with an int64 key and two other columns, in `--files` fragments or Parquet files. The source
is Parquet with the key and a vector of `--width` float32. deployer adds the column to the table, with the recorded run,
claims and checkpoints. DuckDB joins both and copies all columns to new uncompressed Parquet files, with a memory limit
of 1.5 GB and a temporary folder. Making the inputs and importing modules are not counted; peak memory is that of the
process itself. `--cpu` measures CPU seconds and prints the least, for a machine that others use too.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

OURS, DUCKDB = "deployer load_columns", "duckdb join and COPY"
LIMIT = "1500MB"


def made(folder: Path, rows: int, width: int, files: int, order: str) -> None:
    """Makes the lake, the same rows as Parquet, and the source."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from deployer.specs.model import TableSpec
    from deployer.specs.types.arrow import columns_of
    from deployer.state import create_store
    from deployer.table import connect
    from deployer.tables.admin.tables import create_table

    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("part", pa.string()), ("value", pa.float64())])
    root = str(folder / "lake")
    spec = TableSpec("bench", "rows", columns_of(schema), ("id",))
    create_table(create_store(root, instance="bench"), root, spec, "benchmarks")
    (folder / "rows").mkdir()
    bounds = np.linspace(0, rows, files + 1).astype(int)
    with connect(root) as connection:
        table = connection.open_table("bench.rows")
        for number, (start, stop) in enumerate(pairwise(bounds)):
            ids = np.arange(start, stop, dtype=np.int64)
            parts = pa.array(["p1", "p2", "p3"]).take(pa.array(ids % 3))
            batch = pa.table([pa.array(ids), parts, pa.array(ids * 0.5)], schema=schema)
            table.add(batch)
            pq.write_table(batch, folder / "rows" / f"{number}.parquet")
    keys = np.arange(rows, dtype=np.int64)
    if order == "shuffled":
        np.random.default_rng(7).shuffle(keys)
    (folder / "source").mkdir()
    of_source = pa.schema([("id", pa.int64()), ("embedding", pa.list_(pa.float32(), width))])
    for number, (start, stop) in enumerate(pairwise(bounds)):
        path = folder / "source" / f"{number}.parquet"
        with pq.ParquetWriter(path, of_source, compression="none", use_dictionary=False) as writer:
            for first in range(start, stop, 65_536):
                writer.write_table(_source(keys[first : min(stop, first + 65_536)], width, of_source))


def _source(keys: object, width: int, schema: object) -> object:
    import numpy as np
    import pyarrow as pa

    values = (np.asarray(keys)[:, None] + np.arange(width)).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), width)
    return pa.table([pa.array(keys), vectors], schema=schema)


def ours(folder: Path, clock: Callable[[], float]) -> float:
    """Returns the seconds of one load into the table."""
    import lance  # noqa: F401 -- imports are not counted

    from deployer.columns.jobs import start_load  # noqa: F401
    from deployer.columns.load.joined import JoinedColumns  # noqa: F401
    from deployer.table import connect

    with connect(str(folder / "lake")) as connection:
        table = connection.open_table("bench.rows")
        begun = clock()
        table.load_columns(str(folder / "source"), "id", ["embedding"])
        return clock() - begun


def duckdb(folder: Path, clock: Callable[[], float]) -> float:
    """Returns the seconds of DuckDB's join and copy."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET memory_limit = '{LIMIT}'; SET temp_directory = '{folder / 'spilled'}'")
    connection.execute("SET preserve_insertion_order = false")
    begun = clock()
    joined = f"'{folder}/rows/*.parquet' r LEFT JOIN '{folder}/source/*.parquet' s USING (id)"
    options = "FORMAT parquet, COMPRESSION uncompressed, PER_THREAD_OUTPUT, OVERWRITE"
    connection.execute(f"COPY (SELECT r.*, s.embedding FROM {joined}) TO '{folder}/joined' ({options})")  # noqa: S608
    return clock() - begun


def checked(folder: Path, rows: int, width: int) -> None:
    """Ends the benchmark where a row does not have the value of its key."""
    import numpy as np

    from deployer.tables.read.table import open_table

    seen = 0
    for batch in open_table(str(folder / "lake"), "bench.rows").scan(columns=["id", "embedding"]).batches:
        ids = batch["id"].to_numpy().astype(np.float32)
        values = batch["embedding"].flatten().to_numpy().reshape(len(ids), width)
        if not (np.array_equal(values[:, 0], ids) and np.array_equal(values[:, -1], ids + np.float32(width - 1))):
            sys.exit("a value is not that of its key")
        seen += len(ids)
    if seen != rows:
        sys.exit(f"{seen:,} of {rows:,} rows have values")


def measured(arguments: argparse.Namespace, folder: Path) -> Iterator[tuple[str, float, float]]:
    """Yields the name, the seconds and the peak MiB of each run. The ways take turns."""
    from benchmarks.processes import run

    names = [OURS, *([DUCKDB] if find_spec("duckdb") else [])]
    for _ in range(arguments.repeat):
        for name in names:
            own = ["--run", name, "--folder", str(folder), *(["--cpu"] if arguments.cpu else [])]
            ran = run(sys.executable, "-m", "benchmarks.load_columns", *own, cwd=Path.cwd())
            yield name, float(ran.output.split()[-1]), ran.peak


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_400_000)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--order", choices=["shuffled", "same"], default="shuffled")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--run", choices=[OURS, DUCKDB, "make", "check"])
    arguments = parser.parse_args()
    match arguments.run:
        case "make":
            made(arguments.folder, arguments.rows, arguments.width, arguments.files, arguments.order)
        case "check":
            checked(arguments.folder, arguments.rows, arguments.width)
        case None:
            _compare(arguments)
        case name:
            clock = time.process_time if arguments.cpu else time.perf_counter
            print((ours if name == OURS else duckdb)(arguments.folder, clock))


def _compare(arguments: argparse.Namespace) -> None:
    from benchmarks.processes import run
    from benchmarks.report import print_figure, print_heading, print_ratio, print_table

    with tempfile.TemporaryDirectory() as temporary:
        own = ["--folder", temporary, "--rows", str(arguments.rows), "--width", str(arguments.width)]
        own += ["--files", str(arguments.files), "--order", arguments.order]
        this = [sys.executable, "-m", "benchmarks.load_columns"]
        run(*this, "--run", "make", *own, cwd=Path.cwd())
        found = list(measured(arguments, Path(temporary)))
        run(*this, "--run", "check", *own, cwd=Path.cwd())
    names = list(dict.fromkeys(name for name, _, _ in found))
    seconds = {name: [each for of, each, _ in found if of == name] for name in names}
    peaks = {name: [each for of, _, each in found if of == name] for name in names}
    print_heading(f"{arguments.rows:,} rows, {arguments.width} float32 each, source {arguments.order}")
    rows = [
        [name, f"{len(seconds[name])}", f"{statistics.median(seconds[name]):.2f}", f"{min(seconds[name]):.2f}",
         f"{max(seconds[name]):.2f}", f"{max(peaks[name]):,.0f}"]
        for name in names
    ]  # fmt: skip
    print_table(["", "runs", "median s", "least s", "most s", "peak MiB"], rows)
    medians = {name: (min if arguments.cpu else statistics.median)(seconds[name]) for name in names}
    most = 1.0 if arguments.rows >= 3_400_000 else None
    print_ratio(f"{OURS} over {DUCKDB}", medians, OURS, DUCKDB, most=most)
    print_figure(f"{OURS}: peak memory", max(peaks[OURS]), "MiB", 1_430 if most else None)


if __name__ == "__main__":
    main()
