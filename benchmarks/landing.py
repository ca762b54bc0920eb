"""Compares INGEST of many small files with INGEST of one large file with the same rows, in turn.

    python -m benchmarks.landing [--files 10000] [--rows 340] [--runs 3]

The files are Parquet on a local disk, with 20 columns and a key in random order. Each run loads into its own table, in
its own process, so that its peak memory can be measured. The time of making the files is not counted. All small files
must become one commit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.processes import run
from benchmarks.report import print_heading, print_ratio, print_table
from deployer.specs.model import TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.state import create_store
from deployer.tables.admin.tables import create_table

ONE, MANY = "one file", "many files"


def rows(count: int) -> pa.Table:
    """Returns rows with twenty columns of numbers and texts; `id` is the key."""
    rng = np.random.default_rng(7)
    texts = np.array([f"text {number}" for number in range(500)])
    columns: dict[str, object] = {"id": rng.permutation(count)}
    columns |= {f"amount_{i}": rng.random(count) for i in range(10)}
    columns |= {f"count_{i}": rng.integers(0, 1000, count) for i in range(5)}
    columns |= {f"name_{i}": texts[rng.integers(0, len(texts), count)] for i in range(4)}
    made = pa.table(columns)
    return made.cast(pa.schema([each.with_nullable(each.name != "id") for each in made.schema]))


def make(folder: Path, files: int, each: int) -> dict[str, Path]:
    """Writes the rows as one file and as `files` files; returns the folders."""
    table = rows(files * each)
    places = {ONE: folder / "one", MANY: folder / "many"}
    for place in places.values():
        place.mkdir()
    pq.write_table(table, places[ONE] / "all.parquet")
    for number in range(files):
        pq.write_table(table.slice(number * each, each), places[MANY] / f"{number:06d}.parquet")
    (folder / "schema").write_bytes(table.schema.serialize().to_pybytes())
    return places


def load(root: str, schema: str, files: str) -> None:
    """Runs INGEST once into a new table, in the measured process, and prints its result."""
    from deployer.services.kinds.ingest import ingest_files

    store = create_store(root)
    columns = columns_of(pa.ipc.read_schema(pa.py_buffer(Path(schema).read_bytes())))
    create_table(store, root, TableSpec("bench", "landed", columns, ("id",), (), ()), "bench/dev")
    done = ingest_files(root, "landed", {"files": files}, engine="driver")
    sys.stdout.write(json.dumps({"rows": done.rows, "seconds": done.seconds, "commits": done.commits}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=340, help="rows of a small file")
    parser.add_argument("--runs", type=int, default=3, help="of each; the median counts")
    parser.add_argument("--load", nargs=3, metavar=("ROOT", "SCHEMA", "FILES"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.load:
        load(*given.load)
        return
    print_heading(f"{given.files:,} files of {given.rows} rows, and one file with the same rows")
    taken: dict[str, list[float]] = {ONE: [], MANY: []}
    table = []
    with tempfile.TemporaryDirectory(prefix="deployer-bench-") as name:
        folder = Path(name)
        places = make(folder, given.files, given.rows)
        for number in range(given.runs):
            for what, place in places.items():
                root = folder / f"lake-{number}-{place.name}"
                asked = ("--load", str(root), str(folder / "schema"), f"{place}/*.parquet")
                ran = run(sys.executable, "-m", "benchmarks.landing", *asked, cwd=Path.cwd())
                done = json.loads(ran.output.splitlines()[-1])
                if done["rows"] != given.files * given.rows or done["commits"] != 1:
                    sys.exit(f"{what}: {done['rows']} rows in {done['commits']} commits")
                taken[what].append(done["seconds"])
                rate = done["rows"] / done["seconds"]
                cells = (
                    f"{done['seconds']:.1f}",
                    f"{ran.cpu:.1f}",
                    f"{rate:,.0f}",
                    f"{ran.peak:,.0f}",
                    f"{ran.load:.1f}",
                )
                table.append((what, *cells))
    print_table(("", "seconds", "CPU seconds", "rows/s", "peak MiB", "load"), table)
    rates = {what: given.files * given.rows / statistics.median(each) for what, each in taken.items()}
    print_ratio("the rate of many files, of that of one", rates, MANY, ONE, least=0.5)


if __name__ == "__main__":
    main()
