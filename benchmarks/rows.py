"""Compares changes of rows: `python -m benchmarks.rows [--part P] [--rows N] [--cpu]`. Peers: Lance and deltalake.

The table has 1,000,000 rows (id, part, text, two values). The changes are a merge of 10,000 rows, half of which exist;
a deletion of 1% by a condition on the key, and by a condition on another column; and an update of 1%. Each runs on a
new copy with an opened dataset, and with the state store as it is while a lake is in use. After a round that is not
counted, the engines take turns, in another order in each round. The medians of the rounds are printed, and the ratios
of deployer's time to the others'. deltalake is measured where it is installed. `--part` measures one kind of change.
`--cpu` measures CPU time and prints the least of the runs, for a machine that others use too.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from benchmarks.report import print_heading, print_table
from deployer.specs.model import TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.state import create_store
from deployer.table import connect
from deployer.tables.admin.tables import create_table
from deployer.tables.append import open_appender

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("part", pa.int32()),
        ("text", pa.string()),
        ("low", pa.float64()),
        ("high", pa.float64()),
    ]
)
MERGED = 10_000
PARTS = ("merge", "delete", "update")
Timed = Callable[[], Callable[[], object]]  #: prepares a run, and returns the function to measure


def rows_of(ids: np.ndarray, seed: int) -> pa.Table:
    values = np.random.default_rng(seed)
    return pa.table(
        [
            ids,
            (ids % 100).astype(np.int32),
            [f"row {each % 5000}" for each in ids.tolist()],
            values.random(len(ids)),
            values.random(len(ids)),
        ],
        schema=SCHEMA,
    )


class Benchmark:
    """The tables of each kind below a folder, with the same rows. Measured calls work on copies."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.folder, self.rows, self.number = folder, rows, 0
        table = rows_of(np.arange(rows, dtype=np.int64), 1)
        source = np.concatenate(
            [np.arange(0, rows, rows // (MERGED // 2))[: MERGED // 2], rows + np.arange(MERGED // 2)]
        )
        self.source = rows_of(np.random.default_rng(2).permutation(source).astype(np.int64), 3)
        spec = TableSpec("bench", "rows", columns_of(SCHEMA), ("id",))
        # It stays open, so that copies have its write-ahead log: closed by all, a store makes it at the next change.
        self.store = create_store(str(folder / "deployer"), instance="")
        create_table(self.store, str(folder / "deployer"), spec, "benchmarks")
        appender = open_appender(str(folder / "deployer"), "bench.rows")
        appender.append(table)
        appender.close()
        lance.write_dataset(table, str(folder / "lance"))
        self.delta = find_spec("deltalake") is not None
        if self.delta:
            import deltalake

            deltalake.write_deltalake(str(folder / "delta"), table)

    def copy(self, kind: str) -> str:
        """Returns a copy that is on the disk, so that what a call flushes is its own; the copy before is removed."""
        shutil.rmtree(self.folder / f"copy-{self.number}", ignore_errors=True)
        self.number += 1
        target = self.folder / f"copy-{self.number}"
        shutil.copytree(self.folder / kind, target)
        os.sync()
        return str(target)

    def ours(self, change: Callable[[Any], object]) -> Timed:
        def prepared() -> Callable[[], object]:
            table = connect(self.copy("deployer")).open_table("bench.rows")
            table.count_rows("id = 0")
            return lambda: change(table)

        return prepared

    def lances(self, change: Callable[[Any], object]) -> Timed:
        def prepared() -> Callable[[], object]:
            dataset = lance.dataset(self.copy("lance"))
            dataset.count_rows("id = 0")
            return lambda: change(dataset)

        return prepared

    def deltas(self, change: Callable[[Any], object]) -> Timed:
        def prepared() -> Callable[[], object]:
            import deltalake

            table = deltalake.DeltaTable(self.copy("delta"))
            return lambda: change(table)

        return prepared

    def deletions(self, where: str) -> dict[str, Timed]:
        return {
            "deployer": self.ours(lambda table: table.delete(where)),
            "lance": self.lances(lambda dataset: dataset.delete(where)),
            "deltalake": self.deltas(lambda table: table.delete(where)),
        }

    def cases(self) -> dict[str, dict[str, Timed]]:
        source, below = self.source, self.rows // 100
        found = {
            f"merge of {MERGED:,} rows": {
                "deployer": self.ours(lambda table: table.merge(source)),
                "lance": self.lances(
                    lambda dataset: (
                        dataset.merge_insert("id")
                        .when_matched_update_all()
                        .when_not_matched_insert_all()
                        .execute(source)
                    )
                ),
                "deltalake": self.deltas(
                    lambda table: (
                        table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
                        .when_matched_update_all()
                        .when_not_matched_insert_all()
                        .execute()
                    )
                ),
            }
        }
        found["delete of 1% by the key"] = self.deletions(f"id < {below}")
        found["delete of 1% by another column"] = self.deletions("part = 7")
        found["update of 1%"] = {
            "deployer": self.ours(lambda table: table.update("part = 7", values_sql={"low": "low + 1"})),
            "lance": self.lances(lambda dataset: dataset.update({"low": "low + 1"}, where="part = 7")),
            "deltalake": self.deltas(lambda table: table.update(predicate="part = 7", updates={"low": "low + 1"})),
        }
        return found


def seconds(engines: dict[str, Timed], repeat: int, *, cpu: bool) -> dict[str, float]:
    """Returns the median time of each engine's call, or (`cpu`) its least CPU time. Each engine has its own table.

    The engines take turns, so that what slows the machine down slows all of them. The first round is not counted,
    because modules are imported in it. Each round begins with another engine, so that none always follows the same one.
    """
    clock = time.process_time if cpu else time.perf_counter
    taken: dict[str, list[float]] = {engine: [] for engine in engines}
    names = list(engines)
    for number in range(repeat + 1):
        first = number % len(names)
        for engine in names[first:] + names[:first]:
            call = engines[engine]()
            gc.collect()  # tables of rounds before are closed here, and not while a call is measured
            started = clock()
            call()
            if number:
                taken[engine].append(clock() - started)
    middle = min if cpu else statistics.median
    return {engine: middle(times) for engine, times in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=15, help="rounds that are counted")
    parser.add_argument("--part", action="append", choices=PARTS, help="measure this part alone; all by default")
    parser.add_argument("--cpu", action="store_true", help="CPU time, the least of the runs")
    given = parser.parse_args()
    what = "least CPU time" if given.cpu else "medians"
    print_heading(f"Changes of rows in {given.rows:,} rows, {what} of {given.repeat} runs that take turns")
    lines, load = [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        benchmark = Benchmark(Path(folder), given.rows)
        for name, engines in benchmark.cases().items():
            if given.part and not name.startswith(tuple(given.part)):
                continue
            measured = {engine: call for engine, call in engines.items() if engine != "deltalake" or benchmark.delta}
            load = max(load, os.getloadavg()[0])
            times = seconds(measured, given.repeat, cpu=given.cpu)
            ratios = [f"{times['deployer'] / times[e]:.2f}" if e in times else "" for e in ("lance", "deltalake")]
            lines.append([name, *(f"{1000 * times[e]:,.0f}" if e in times else "" for e in engines), *ratios])
    print_table(["change", "deployer ms", "lance ms", "deltalake ms", "× lance", "× deltalake"], lines)
    print(f"load: {load:.1f}")
    if not benchmark.delta:
        print("deltalake is not installed, so it was not measured")


if __name__ == "__main__":
    main()
