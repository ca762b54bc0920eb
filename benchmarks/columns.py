"""Measures adding a nullable column to a table with rows, renaming it and dropping it. None of these writes a data
file.

    python -m benchmarks.columns [--rows 3400000] [--fragments 16] [--repeat 11]

The table is `nyc.flights` as specs/nyc declares it, with generated rows that plain Lance appended (by default ten times
as many as the real table). Each change has the steps of the provider in `up`: open the state store, compare, change,
record. The peer is plain Lance on a copy of the dataset: it opens the dataset and calls add_columns (which can add a
column only at the end), alter_columns or drop_columns. All take turns; the first turn is not counted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa

from benchmarks.projects import REPOSITORY
from benchmarks.report import print_figure, print_heading, print_table
from deployer.live.reader import read_table
from deployer.specs import load_lake
from deployer.specs.model import TableSpec
from deployer.specs.types.arrow import arrow_schema
from deployer.specs.types.types import Column, Scalar
from deployer.state import open_store
from deployer.tables.admin.instance import create_instance
from deployer.tables.admin.tables import create_table, update_table

OWNER = "bench/dev"
HOUR = 3_600_000_000  # in microseconds
MILLISECONDS = {3_400_000: 50.0}  # by rows
AT_THE_END, IN_THE_MIDDLE, PLAIN = "add, at the end", "add, in the middle", "plain Lance add_columns"
RENAME, PLAIN_RENAME, DROP, PLAIN_DROP = "rename", "plain Lance alter_columns", "drop", "plain Lance drop_columns"
COLUMN_OF = {AT_THE_END: "last", IN_THE_MIDDLE: "middle", RENAME: "middle", DROP: "middle"} | dict.fromkeys(
    (PLAIN, PLAIN_RENAME, PLAIN_DROP), "plain"
)


@dataclass(slots=True)
class Filled:
    """A table with rows in the lake at `root`. `spec` is the spec that was applied last."""

    root: Path
    table_id: str
    location: Path
    spec: TableSpec

    def add_column(self, name: str, place: int) -> None:
        columns = [*self.spec.columns]
        columns.insert(place, Column(name, Scalar("string"), description="Added by the benchmark."))
        self._apply(columns)

    def rename_column(self, name: str) -> None:
        """Renames the column to its name with the suffix `_renamed`."""
        columns = [
            replace(column, name=f"{name}_renamed", renamed_from=name) if column.name == name else column
            for column in self.spec.columns
        ]
        self._apply(columns)

    def drop_column(self, name: str) -> None:
        self._apply([column for column in self.spec.columns if column.name != name])

    def _apply(self, columns: list[Column]) -> None:
        wanted = replace(self.spec, columns=tuple(columns))
        with closing(open_store(self.root)) as store:
            update_table(store, str(self.root), self.table_id, wanted)
        self.spec = wanted


def filled_table(root: Path, rows: int, fragments: int) -> Filled:
    """Returns the table with its rows, which the state store has recorded."""
    declared = load_lake(REPOSITORY, REPOSITORY / "specs" / "nyc")
    spec = declared.table("nyc.flights")
    assert spec is not None
    create_instance(str(root), declared.instance, OWNER)
    with closing(open_store(root)) as store:
        table_id = create_table(store, str(root), spec, OWNER)
        entry = store.instance().tables[table_id]
        location = root / entry.location
        for part in np.array_split(np.arange(rows), fragments):
            lance.write_dataset(made_up_rows(arrow_schema(spec.columns), part), str(location), mode="append")
        live = read_table(store, str(root), entry)
    assert (live.statistics.rows, live.statistics.files) == (rows, fragments)
    return Filled(root, table_id, location, live.spec)


def made_up_rows(schema: pa.Schema, numbers: np.ndarray) -> pa.Table:
    """Returns a row for each number, with a unique hour, one of 4,000 words, and whole numbers of two digits."""
    words = pa.array([f"W{number:04}" for number in range(4000)])
    columns = []
    for field in schema:
        if pa.types.is_string(field.type):
            columns.append(words.take(pa.array(numbers % len(words))))
        elif pa.types.is_timestamp(field.type):
            columns.append(pa.array(numbers * HOUR).cast(field.type))
        else:
            columns.append(pa.array(numbers % 100).cast(field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def data_files(dataset: Path) -> int:
    return sum(1 for path in (dataset / "data").rglob("*") if path.is_file())


def measure(rows: int, fragments: int, repeat: int, folder: Path) -> None:
    table = filled_table(folder / "lake", rows, fragments)
    copy = folder / "copy.lance"
    shutil.copytree(table.location, copy)
    ways: dict[str, Callable[[str], object]] = {
        AT_THE_END: lambda name: table.add_column(name, len(table.spec.columns)),
        IN_THE_MIDDLE: lambda name: table.add_column(name, 3),
        RENAME: table.rename_column,
        DROP: lambda name: table.drop_column(f"{name}_renamed"),
        PLAIN: lambda name: lance.dataset(str(copy)).add_columns(pa.field(name, pa.string())),
        PLAIN_RENAME: lambda name: lance.dataset(str(copy)).alter_columns({"path": name, "name": f"{name}_renamed"}),
        PLAIN_DROP: lambda name: lance.dataset(str(copy)).drop_columns([f"{name}_renamed"]),
    }
    where = {name: copy if name.startswith("plain") else table.location for name in ways}
    taken: dict[str, list[float]] = {name: [] for name in ways}
    written = dict.fromkeys(ways, 0)
    for turn in range(repeat + 1):
        for name, change in ways.items():
            before = data_files(where[name])
            begun = time.perf_counter()
            change(f"{COLUMN_OF[name]}_{turn}")  # a rename and a drop use the column that the same turn added
            milliseconds = 1000 * (time.perf_counter() - begun)
            written[name] += data_files(where[name]) - before
            if turn:
                taken[name].append(milliseconds)
    assert lance.dataset(str(table.location)).schema.names == [column.name for column in table.spec.columns]
    heads = ("a nullable column", "runs", "median ms", "least ms", "most ms", "data files written")
    print_table(heads, ([name, *_cells(times), str(written[name])] for name, times in taken.items()))
    for name in (AT_THE_END, IN_THE_MIDDLE, RENAME, DROP):
        print_figure(f"{name}, {rows:,} rows", statistics.median(taken[name]), "ms", MILLISECONDS.get(rows))


def _cells(times: list[float]) -> list[str]:
    return [str(len(times)), *(f"{figure:.1f}" for figure in (statistics.median(times), min(times), max(times)))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_400_000)
    parser.add_argument("--fragments", type=int, default=16)
    parser.add_argument("--repeat", type=int, default=11)
    given = parser.parse_args()
    print_heading("Adding, renaming and dropping a nullable column", f"load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        measure(given.rows, given.fragments, given.repeat, Path(folder))


if __name__ == "__main__":
    main()
