"""Compares the catalog with Rerun's own server, in one run.

    make rerun-client
    python -m benchmarks.catalog [--part tables|recordings|many|search] [--recordings FOLDER] [--repeat 3]

Each figure is printed beside its peer and its target. One program with Rerun's client (`make rerun-client` makes its
environment) calls both servers in turn: `rerun.server.Server` of the same wheel, and `deployer.catalog.local`, a child
process, with an external table and with a table of the instance. Times are the least of several, and ratios are to
Rerun's time. The start of the child process is measured by itself.

Each section about tables has a client program, which prints a JSON object of figures with the seconds of both servers.
`benchmarks.recordings` measures datasets of recordings. Their recordings take ten minutes to write; a folder given by
`--recordings` keeps them for the next run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from benchmarks.recordings.measured import COLUMNS as FIGURES
from benchmarks.recordings.measured import PYTHON, Figure, Sizes, comparison, of_many, of_search
from benchmarks.report import print_heading, print_table
from deployer.catalog import local
from deployer.specs.model import TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.state import create_store
from deployer.tables.admin.tables import create_table

PARTS = ("tables", "recordings", "many", "search")
COLUMNS = pa.schema(
    [pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.float64()), pa.field("text", pa.string())]
)

#: The beginning of all programs: the two clients, and `both`, which times a call of both servers in turn.
COMMON = """
import json, sys, time
import numpy as np, pyarrow as pa
from rerun.catalog import CatalogClient
from rerun.server import Server

url, folder, rows, repeat = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
server = Server(address="127.0.0.1")
clients = {"rerun": server.client(), "deployer": CatalogClient(url)}
figures = {}

def both(name, calls, times=repeat):
    least = dict.fromkeys(calls, float("inf"))
    for _ in range(times):
        for kind, call in calls.items():
            begun = time.perf_counter()
            call()
            least[kind] = min(least[kind], time.perf_counter() - begun)
    figures[name] = least
"""

TABLES = (
    COMMON
    + """
INDEX = {"rerun:is_table_index": "true"}
key = pa.field("k", pa.int64(), nullable=False, metadata=INDEX)
schema = pa.schema([key, ("v", pa.float64()), ("text", pa.string())])

def made(first, count):
    ks = np.arange(first, first + count)
    texts = pa.array([f"text of row {each}" for each in ks])
    return pa.record_batch([pa.array(ks), pa.array(ks * 0.5), texts], schema=schema)

tables = {kind: each.create_table("t", schema, f"file://{folder}/{kind}") for kind, each in clients.items()}
tables["deployer, keys"] = clients["deployer"].get_table("bench.t")
everything = made(0, rows)  # one batch: of several, Rerun's server keeps the last
few = made(rows // 2, 100)

def drain(table):
    read = sum(batch.num_rows for batch in table.to_arrow_reader())
    assert read == rows, (read, rows)

def each(call):
    return {kind: (lambda table=table: call(table)) for kind, table in tables.items()}

finding = {kind: (lambda client=client: client.get_table("t")) for kind, client in clients.items()}
both("get_table", finding, 20)
both("overwrite of all rows", each(lambda table: table.overwrite(everything)))
both("reading all rows", each(drain))
both("upsert of 100 rows", each(lambda table: table.upsert(few)))
both("reading all rows after it", each(drain))
both("append of 100 rows", each(lambda table: table.append(few)))
print(json.dumps(figures))
"""
)

#: The client programs by section.
SECTIONS: Mapping[str, str] = {"tables": TABLES}
KINDS = ("rerun", "deployer", "deployer, keys")


def cold_start(root: str) -> float:
    """Returns the seconds until a child process serves the root."""
    begun = time.perf_counter()
    with local(root):
        return time.perf_counter() - begun


def measured(section: str, root: str, folder: Path, rows: int, repeat: int) -> dict[str, dict[str, float]]:
    """Returns the seconds of each figure, by figure and server."""
    with local(root) as url:
        command = [str(PYTHON), "-c", SECTIONS[section], url, str(folder), str(rows), str(repeat)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    figures: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return figures


def of_tables(folder: Path, rows: int, repeat: int) -> None:
    """Prints the figures of tables."""
    root = str(folder / "lake")
    create_table(create_store(root), root, TableSpec("bench", "t", columns_of(COLUMNS), ("k",)), "")
    starts = [cold_start(root) for _ in range(repeat)]
    print(f"start of the child process: {min(starts):.2f} s (to reach: at most 2.5 s)\n")
    if not PYTHON.exists():
        return
    for section in SECTIONS:
        lines = [
            [
                f"{section}: {figure}",
                *(f"{1000 * times[kind]:.1f}" if kind in times else "" for kind in KINDS),
                *(f"{times[kind] / times['rerun']:.2f}" if kind in times else "" for kind in KINDS[1:]),
            ]
            for figure, times in measured(section, root, folder, rows, repeat).items()
        ]
        names = [f"{kind} ms" for kind in KINDS] + [f"{kind} ×" for kind in KINDS[1:]]
        print_table([f"{rows:,} rows", *names], lines)


def of_recordings(parts: list[str], folder: Path, kept: Path, sizes: Sizes) -> Iterator[Figure]:
    """Yields the figures of datasets of recordings, each as soon as it is measured."""
    for part, measure in {"recordings": comparison, "many": of_many, "search": of_search}.items():
        if part in parts:
            yield from measure(kept, str(folder / f"{part}-lake"), sizes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=PARTS, help="measure this part alone; all by default")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of tables")
    parser.add_argument("--segments", type=int, default=10_000, help="recordings of the comparison")
    parser.add_argument("--many", type=int, default=100_000, help="recordings of ours alone")
    parser.add_argument("--searched", type=int, default=20, help="recordings of 50,000 texts or vectors")
    parser.add_argument("--recordings", type=Path, help="a folder that keeps the recordings")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    parts = options.part or list(PARTS)
    sizes = Sizes(options.segments, options.many, options.searched, options.repeat)
    print_heading("Catalog")
    with tempfile.TemporaryDirectory(prefix="deployer-bench-") as name:
        folder = Path(name)
        if "tables" in parts:
            of_tables(folder, options.rows, options.repeat)
        if not PYTHON.exists():
            print("Rerun's client and server were not measured: `make rerun-client` makes their environment")
            return
        kept = (options.recordings or folder / "recordings").absolute()
        found = list(of_recordings(parts, folder, kept, sizes))
        if found:
            print_table(FIGURES, [each.cells for each in found])


if __name__ == "__main__":
    main()
