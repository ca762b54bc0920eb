"""Garbage collection removes packages of functions that no column names, once they are old enough."""

from __future__ import annotations

import datetime as dt
import json
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from deployer.datasets.storage.function_packages import package_path, stored_packages
from deployer.functions import udf
from deployer.functions.packages.stored import save_function
from deployer.services.savepoints.savepoints import remove_savepoint, take_savepoint
from deployer.specs.types.computed import COMPUTED_NOTE
from deployer.state import open_store
from deployer.state.log.service_updates import RunQueued
from deployer.state.log.updates import SetSchema
from deployer.tables.maintenance.collect.function_packages import PackagesReport, collect_packages
from tests.tables.lakes import FLIGHTS, Lake

HOUR = dt.timedelta(hours=1)


def packaged(lake: Lake, by: int, hours: float = 2) -> str:
    """Stores a package of that age, and returns its hash."""
    package_hash = save_function(lake.root, udf(data_type="int64")(lambda a: a * by), "ana")
    then = time.time() - 3600 * hours
    os.utime(Path(lake.root) / package_path(package_hash), (then, then))
    return package_hash


def collect(lake: Lake, *, dry_run: bool = False) -> PackagesReport:
    return collect_packages(lake.store, lake.root, grace=HOUR, dry_run=dry_run)


def compute(lake: Lake, package_hash: str) -> None:
    """Records that a column is computed by the package."""
    note = {"udf": "scaled", "function": package_hash, "inputs": ["flight"], "version": "1"}
    state = lake.open().opened.state
    field = pa.field("scaled", pa.int64(), metadata={COMPUTED_NOTE: json.dumps(note).encode()})
    schema = pa.schema([*FLIGHTS, field]).serialize().to_pybytes()
    lake.store.commit(state.table_id, [SetSchema(schema, state.lance_version)])


def left(lake: Lake) -> set[str]:
    return set(stored_packages(lake.root))


def test_a_package_that_no_column_names_goes_when_it_is_old(lake: Lake) -> None:
    used, old, young = packaged(lake, 2), packaged(lake, 3), packaged(lake, 4, hours=0.5)
    compute(lake, used)
    (Path(lake.root) / "_udfs" / "notes.txt").write_text("not a package")
    wanted = PackagesReport((old,), stored_packages(lake.root)[old].bytes, young=1)
    assert collect(lake, dry_run=True) == wanted
    assert left(lake) == {used, old, young}
    assert collect(lake) == wanted
    assert left(lake) == {used, young}
    assert (Path(lake.root) / "_udfs" / "notes.txt").exists()
    assert collect(lake) == PackagesReport(young=1)


def test_a_package_that_a_savepoint_needs_stays(lake: Lake) -> None:
    before, after = packaged(lake, 2), packaged(lake, 3)
    compute(lake, before)
    table_id = lake.open().opened.state.table_id
    take_savepoint(lake.store, [table_id], "release")
    compute(lake, after)
    assert collect(lake) == PackagesReport()
    remove_savepoint(lake.store, [table_id], "release")
    assert collect(lake).removed == (before,)
    assert left(lake) == {after}


def test_nothing_goes_while_columns_are_written(lake: Lake) -> None:
    old = packaged(lake, 2)
    table_id = lake.open().opened.state.table_id
    lake.store.commit(table_id, [RunQueued("filling", "LOAD_COLUMNS", "on demand", target=("delay",))])
    assert collect(lake) == PackagesReport(why_not="columns of air.flights are being written")
    assert left(lake) == {old}


def test_nothing_goes_while_a_log_cannot_be_read(lake: Lake) -> None:
    old = packaged(lake, 2)
    name = lake.open().opened.state.table_id
    with closing(sqlite3.connect(Path(lake.root) / "_state" / "state.db")) as database, database:
        database.execute("UPDATE entries SET body = X'00' WHERE log = ?", (name,))
        database.execute("DELETE FROM snapshots WHERE log = ?", (name,))
    with closing(open_store(lake.root)) as store:
        found = collect_packages(store, lake.root, grace=HOUR)
    assert found == PackagesReport(why_not="the log of air.flights cannot be read")
    assert left(lake) == {old}


def test_a_lake_without_packages_is_not_looked_at(lake: Lake) -> None:
    assert collect(lake) == PackagesReport()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path)
    made.table()
    return made
