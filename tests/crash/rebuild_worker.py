"""Operations on the table air.flights of a lake, which can be repeated: `rebuild_worker.py ROOT OPERATION NUMBER`.

A load's rows are known by their number, so that whoever reads the table can tell which loads it holds.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from deployer.live.reader import read_table
from deployer.services.kinds.clean import clean_table
from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.compact import compact_table
from deployer.services.restore import restore_tables
from deployer.services.restore.planning import preview_restore
from deployer.services.savepoints.savepoints import make_savepoint
from deployer.specs.model import KeyValue, TableSpec
from deployer.specs.types.parser import parse_type
from deployer.specs.types.types import Column
from deployer.state import open_store
from deployer.tables.admin.tables import update_table
from deployer.tables.ingest.request import IngestRequest
from deployer.tables.layout.partitions.split import split_leaves
from deployer.tables.read.table import open_table
from spark_jobs.ingest import run
from tests.tables.lakes import flights

ROWS = 20  #: of a load
FIRST = 1_367_409_600_000_000  #: `at` of the row with number 0

Points = tuple[tuple[KeyValue, ...], ...]
KEYS: tuple[tuple[tuple[str, ...], Points], ...] = (
    (("carrier", "flight"), (("DL",),)),
    (("flight",), ((300,), (600,))),
    (("flight", "carrier"), ()),
)


def load(root: str, number: int) -> None:
    file = Path(root).parent / f"load-{number}.parquet"
    pq.write_table(flights(ROWS, number * ROWS), file)
    run(root, "flights", IngestRequest((str(file),), engine="driver", job_id=f"job-{number}", missing_as_null=True))


def add_column(root: str, number: int) -> None:
    def added(spec: TableSpec) -> TableSpec:
        if any(column.name == f"note_{number}" for column in spec.columns):
            return spec
        return replace(spec, columns=(*spec.columns, Column(f"note_{number}", parse_type("string"))))

    _update(root, added)


def describe(root: str, number: int) -> None:
    _update(root, lambda spec: replace(spec, description=f"Flights, {number}.", tags={"n": str(number)}))


def change_keys(root: str, number: int) -> None:
    keys, points = KEYS[number % len(KEYS)]
    _update(root, lambda spec: replace(spec, row_keys=keys, split_points=points))


def compact(root: str, number: int) -> None:
    compact_table(root, "flights")


def cluster(root: str, number: int) -> None:
    cluster_table(root, "flights", {"columns": ["delay", "price"]})


def clean(root: str, number: int) -> None:
    clean_table(root, "flights", {"older_than": "1h", "keep_versions": 1 + number % 3}, now=time.time() + 7200)


def split(root: str, number: int) -> None:
    with closing(open_store(root)) as store:
        split_leaves(store, root, _entry(store).table_id, max_rows=15)


def save(root: str, number: int) -> None:
    with closing(open_store(root)) as store:
        if f"s{number}" not in store.table(_entry(store).table_id).savepoints:
            make_savepoint(store, root, [_entry(store)], f"s{number}", note=f"note {number}")


def restore(root: str, number: int) -> None:
    """To the savepoint of that number."""
    with closing(open_store(root)) as store:
        planned = preview_restore(store, root, [_entry(store)], f"s{number}")
        restore_tables(store, root, planned, force=True, save_first=False)


OPERATIONS: Mapping[str, Callable[[str, int], None]] = {
    each.__name__: each
    for each in (load, add_column, describe, change_keys, compact, cluster, clean, split, save, restore)
}


def numbers(root: str) -> list[int]:
    """The numbers of all rows of the table, ascending."""
    read = open_table(root, "flights").scan(columns=["at"]).to_table()
    return sorted(value - FIRST for value in read.column("at").cast("int64").to_pylist())


def of_load(number: int) -> set[int]:
    return set(range(number * ROWS, (number + 1) * ROWS))


def choose(chance: random.Random, savepoints: Mapping[int, object], number: int) -> tuple[str, int]:
    """An operation and its number: loads are half of all."""
    name = chance.choice([*OPERATIONS, *["load"] * len(OPERATIONS)])
    if name == "restore":
        return (name, chance.choice(sorted(savepoints))) if savepoints else ("load", number)
    return name, number


def _entry(store: Any) -> Any:
    [entry] = store.instance().tables.values()
    return entry


def _update(root: str, changed: Callable[[TableSpec], TableSpec]) -> None:
    with closing(open_store(root)) as store:
        entry = _entry(store)
        update_table(store, root, entry.table_id, changed(read_table(store, root, entry).spec))


if __name__ == "__main__":
    OPERATIONS[sys.argv[2]](sys.argv[1], int(sys.argv[3]))
    print("done", flush=True)
