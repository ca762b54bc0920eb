"""Measures the build of an index in one call and in parts, and compares it with plain Lance's single call.

    python -m benchmarks.indexes [--rows 600000] [--files 8] [--parts 2] [--repeat 3]

The table has unsorted integers, texts of twelve words and vectors of 128 values. Each build runs in its own process on
the same files: by plain Lance with its defaults, by `Table.create_*` with its defaults, and in parts that threads of
one process build at the same time. Builds take turns, and each replaces the index of the build before it. Seconds are
those of the call, and CPU seconds are those of the whole process: where they are twice the seconds, both cores worked.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.processes import run
from benchmarks.report import print_heading, print_ratio, print_table

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "BTREE": ("id", {}),
    "INVERTED": (
        "words",
        {"with_position": True, "stem": False, "remove_stop_words": False, "ascii_folding": False},
    ),
    "IVF_PQ": ("vector", {"num_partitions": 64, "num_sub_vectors": 8}),
}
PLAIN, ONE_CALL = "plain Lance, one call", "deployer, one call"
WORDS, SIZE = 20_000, 128


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=600_000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--parts", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--build", nargs=3, metavar=("ROOT", "KIND", "PARTS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.build:
        root, kind, parts = given.build
        print(build(root, kind, int(parts)))
        return
    folder = Path(tempfile.mkdtemp(prefix="deployer-bench-"))
    try:
        fill(str(folder), given.rows, given.files)
        measure(folder, given.parts, given.repeat)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def fill(root: str, rows: int, files: int) -> None:
    """Creates the table and appends the rows, in files of equal size."""
    import numpy as np
    import pyarrow as pa

    from deployer.specs.model import TableSpec
    from deployer.specs.types.arrow import columns_of
    from deployer.state import create_store
    from deployer.table import connect
    from deployer.tables.admin.tables import create_table

    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("words", pa.string()),
            pa.field("vector", pa.list_(pa.float32(), SIZE)),
        ]
    )
    create_table(create_store(root), root, TableSpec("bench", "indexed", columns_of(schema)), "bench")
    random, words = np.random.default_rng(7), np.array([f"word{place}" for place in range(WORDS)])
    with connect(root) as connection:
        table = connection.open_table("indexed")
        for _ in range(files):
            count = rows // files
            vectors = random.normal(size=(count, SIZE)) + random.integers(0, 20, size=(count, 1))
            texts = [" ".join(words[row]) for row in random.zipf(1.3, size=(count, 12)) % WORDS]
            columns = [
                pa.array(random.integers(0, rows, count)),
                pa.array(texts),
                pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1), pa.float32()), SIZE),
            ]
            table.add(pa.table(columns, schema=schema))


def build(root: str, kind: str, parts: int) -> float:
    """Builds the index (by plain Lance if `parts` is 0), and returns the seconds of the call."""
    column, parameters = KINDS[kind]
    if not parts:
        import lance

        [location] = (Path(root) / "bench").glob("*.lance")
        dataset = lance.dataset(str(location))
        create = dataset.create_index if kind == "IVF_PQ" else dataset.create_scalar_index
        begun = time.perf_counter()
        create(column, kind, name=f"plain_{kind}", replace=True, **parameters)
        return time.perf_counter() - begun
    from deployer.table import connect

    with connect(root) as connection:
        table = connection.open_table("indexed")
        begun = time.perf_counter()
        if kind == "IVF_PQ":
            table.create_index(vector_column_name=column, parts=parts, **parameters)
        elif kind == "INVERTED":
            table.create_fts_index(column, replace=True, parts=parts)
        else:
            table.create_scalar_index(column, parts=parts)
        return time.perf_counter() - begun


def measure(folder: Path, parts: int, repeat: int) -> None:
    """Prints a table for each kind, and the speed of builds in parts and in one call relative to plain Lance."""
    in_parts = f"deployer, {parts} parts"
    for kind in KINDS:
        names = (PLAIN, ONE_CALL, in_parts)
        seconds: dict[str, list[float]] = {name: [] for name in names}
        cpu: dict[str, list[float]] = {name: [] for name in names}
        load = 0.0
        for _ in range(repeat):
            for name, count in zip(names, (0, 1, parts), strict=True):
                ran = run(
                    sys.executable, "-m", "benchmarks.indexes", "--build", str(folder), kind, str(count), cwd=Path.cwd()
                )
                seconds[name].append(float(ran.output.strip().splitlines()[-1]))
                cpu[name].append(ran.cpu)
                load = max(load, ran.load)
        print_heading(f"index of kind {kind}")
        medians = {name: statistics.median(found) for name, found in seconds.items()}
        print_table(
            ("build", "runs", "median s", "least s", "most s", "CPU s", "load"),
            [
                (
                    name,
                    str(len(found)),
                    f"{medians[name]:.2f}",
                    f"{min(found):.2f}",
                    f"{max(found):.2f}",
                    f"{statistics.median(cpu[name]):.2f}",
                    f"{load:.1f}",
                )
                for name, found in seconds.items()
            ],
        )
        speeds = {name: 1 / found for name, found in medians.items()}
        print_ratio(f"{kind}, one call: as fast as plain Lance", speeds, ONE_CALL, PLAIN)
        print_ratio(f"{kind}, in parts: as fast as plain Lance", speeds, in_parts, PLAIN, least=1.5)


if __name__ == "__main__":
    main()
