"""COMPACT of a table on S3, its log in DynamoDB: moto's servers, or those that pytest is given."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployer.runs.records import fail_dead_runs, runs_of
from deployer.services.kinds.compact import compact_table
from tests import forks
from tests.crash.test_kill_compact import DEPLOYER, WORKER
from tests.services.compact.test_compact import append, check_files, differences
from tests.tables.lakes import Lake, flights, sorted_rows

pytestmark = pytest.mark.full


@pytest.fixture
def lake(on_s3: str, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path, on_s3)
    yield made
    made.store.close()


@pytest.mark.parametrize("row_keys", [(), ("carrier", "flight")], ids=["keyless", "keyed"])
def test_rows_and_sizes_are_as_on_a_disk(lake: Lake, row_keys: tuple[str, ...]) -> None:
    lake.table(row_keys=row_keys, splits=())
    append(lake, flights(300), 5)
    done = compact_table(lake.root, "flights")
    assert (done.status, done.after.files) == ("SUCCEEDED", 1)
    [file] = lake.open().opened.state.files
    assert file.bytes == done.work.bytes_written > 0
    found = lake.open().scan().to_table()
    if row_keys:
        assert sorted_rows(found) == sorted_rows(flights(300))
        check_files(lake)
    else:
        assert found.equals(flights(300))
    assert differences(lake.root) == []


@pytest.mark.parametrize("point", ["services.replace.before-lance", "services.replace.after-lance"])
def test_a_portion_that_is_killed_is_whole_or_not_there(lake: Lake, point: str) -> None:
    table_id = lake.table().opened.entry.table_id
    append(lake, flights(200), 4)
    environment = {**os.environ, "DEPLOYER_FAILPOINT": f"{point}@2", "PYTHONPATH": str(DEPLOYER)}
    killed = forks.run([sys.executable, WORKER, lake.root], env=environment)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(200))
    [run] = runs_of(lake.store.table(table_id))
    assert run.lease_until is not None
    fail_dead_runs(lake.store, table_id, run.lease_until + 1)
    assert compact_table(lake.root, "flights").status == "SUCCEEDED"
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(200))
    check_files(lake)
