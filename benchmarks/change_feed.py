"""Measures reading the changes of a table, and compares it with two other ways.

    python -m benchmarks.change_feed [--rows N] [--repeat N]

The table is that of `benchmarks.rows`, with 1,000,000 rows. Three commits change it: a merge of 10,000 rows, half of
which exist, an update of 1%, and a deletion of 1%. All changes since the version before are read. The first peer is the
difference of the two versions in pandas, as programs without a feed compute it: both versions are read completely from
plain Lance, joined by the key and compared; the result does not name the commit of a change. The second peer is
deltalake's change data feed of the same commits, which deltalake writes beside the data with each commit. The ways take
turns. deltalake is measured where it is installed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.report import print_heading, print_table
from benchmarks.rows import MERGED, SCHEMA, rows_of
from deployer.specs.model import TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.state import create_store
from deployer.table import connect
from deployer.tables.admin.tables import create_table
from deployer.tables.append import open_appender

NAME = "bench.rows"
Counts = Mapping[str, int]  #: the numbers of inserted, updated and deleted rows
UPDATED, DELETED = "part = 7", "part = 9"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    print_heading(f"Changes of {given.rows:,} rows by three commits, best of {given.repeat} runs that take turns")
    table = rows_of(np.arange(given.rows, dtype=np.int64), 1)
    half = min(MERGED, given.rows) // 2
    there = np.arange(0, given.rows, max(1, given.rows // half))[:half]
    source = rows_of(np.concatenate([there, given.rows + np.arange(half)]).astype(np.int64), 3)
    with tempfile.TemporaryDirectory() as folder:
        ways = {
            "changes(since)": made_here(Path(folder), table, source),
            "two versions of Lance in pandas": made_with_lance(Path(folder), table, source),
        }
        if find_spec("deltalake") is not None:
            ways["deltalake's change data feed"] = made_with_delta(Path(folder), table, source)
        best: dict[str, tuple[float, float]] = {}
        for _ in range(given.repeat):
            for name, way in ways.items():
                best[name] = tuple(map(min, best.get(name, (np.inf, np.inf)), measured(way)))  # type: ignore[assignment]
        found = {name: way() for name, way in ways.items()}
    own = best["changes(since)"]
    lines = [
        [name, f"{1000 * wall:,.0f}", f"{1000 * cpu:,.0f}", f"{own[0] / wall:.2f}", f"{own[1] / cpu:.2f}"]
        + [f"{found[name][kind]:,}" for kind in ("insert", "update", "delete")]
        for name, (wall, cpu) in best.items()
    ]
    print_table(["way", "ms", "CPU ms", "ours ×", "CPU ×", "inserted", "updated", "deleted"], lines)
    print(f"load: {os.getloadavg()[0]:.1f}")
    if len(ways) < 3:
        print("deltalake is not installed, so it was not measured")


def measured(way: Callable[[], Counts]) -> tuple[float, float]:
    """Returns the seconds and the CPU seconds of a call."""
    started, before = time.perf_counter(), time.process_time()
    way()
    return time.perf_counter() - started, time.process_time() - before


def made_here(folder: Path, table: pa.Table, source: pa.Table) -> Callable[[], Counts]:
    """Makes the commits in a table of a lake; returns the reader of its feed."""
    root = str(folder / "lake")
    create_table(create_store(root), root, TableSpec("bench", "rows", columns_of(SCHEMA), ("id",)), "benchmarks")
    appender = open_appender(root, NAME)
    appender.append(table)
    appender.close()
    with connect(root) as connection:
        opened = connection.open_table(NAME)
        since = opened.version
        opened.merge(source)
        opened.update(UPDATED, values_sql={"low": "low + 1"})
        opened.delete(DELETED)

    def read() -> Counts:
        with connect(root) as connection:
            return _counts(connection.open_table(NAME).changes(since).to_table()["_change"])

    return read


def made_with_lance(folder: Path, table: pa.Table, source: pa.Table) -> Callable[[], Counts]:
    """Makes the commits in a dataset of plain Lance; returns the comparison of its first version with its newest."""
    place = str(folder / "lance")
    dataset = lance.write_dataset(table, place)
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(source)
    dataset.update({"low": "low + 1"}, where=UPDATED)
    dataset.delete(DELETED)

    def read() -> Counts:
        before, after = (lance.dataset(place, version=each).to_table().to_pandas() for each in (1, None))
        both = pd.merge(before, after, on="id", how="outer", indicator=True, suffixes=("", "_now"))
        kept = both["_merge"] == "both"
        other = np.logical_or.reduce([both[name] != both[f"{name}_now"] for name in SCHEMA.names[1:]])
        kinds = both["_merge"].value_counts()
        return {
            "insert": int(kinds["right_only"]),
            "update": int((kept & other).sum()),
            "delete": int(kinds["left_only"]),
        }

    return read


def made_with_delta(folder: Path, table: pa.Table, source: pa.Table) -> Callable[[], Counts]:
    """Makes the commits in a table of deltalake with a feed; returns the reader of the feed."""
    import deltalake

    place = str(folder / "delta")
    deltalake.write_deltalake(place, table, configuration={"delta.enableChangeDataFeed": "true"})
    delta = deltalake.DeltaTable(place)
    merge = delta.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    delta.update(predicate=UPDATED, updates={"low": "low + 1"})
    delta.delete(DELETED)

    def read() -> Counts:
        found: Any = pa.table(deltalake.DeltaTable(place).load_cdf(starting_version=1).read_all())
        return _counts(found["_change_type"])

    return read


def _counts(kinds: Any) -> Counts:
    """Returns the number of rows of each kind. In deltalake, an update has two rows."""
    found = {each["values"]: each["counts"] for each in kinds.value_counts().to_pylist()}
    updates = found.get("update", found.get("update_postimage", 0))
    return {"insert": found.get("insert", 0), "update": updates, "delete": found.get("delete", 0)}


if __name__ == "__main__":
    main()
