"""CLEAN, AUTOSAVEPOINT and RESTORE on S3 and DynamoDB: the same rows, versions and objects as on a disk."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import lance
import pytest

from deployer.datasets.storage.options import storage_options
from deployer.services.kinds.clean import clean_table
from deployer.services.restore import restore_tables
from deployer.services.restore.planning import preview_restore
from deployer.services.savepoints.autosavepoint import autosavepoint_table
from deployer.services.savepoints.savepoints import delete_savepoint, make_savepoint
from deployer.tables.admin.deletion import stored
from deployer.tables.evolution.rewrite.truncate import reinitialise_table
from deployer.tables.maintenance.verify.verify import verify
from tests.tables.lakes import Lake, flights, sorted_rows

pytestmark = pytest.mark.full  # the same steps on a disk are in the gate


@pytest.fixture
def lake(on_s3: str, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path, on_s3)
    yield made
    made.store.close()


def dataset(lake: Lake) -> lance.LanceDataset:
    location = lake.open().opened.location
    return lance.dataset(location, storage_options=storage_options(location))


def restore(lake: Lake, name: str) -> str:
    planned = preview_restore(lake.store, lake.root, [lake.open().opened.entry], name)
    saved, [done] = restore_tables(lake.store, lake.root, planned)
    assert done.status == "SUCCEEDED"
    return saved


def test_savepoints_keep_versions_and_are_gone_back_to(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(30)))
    entry = lake.open().opened.entry
    make_savepoint(lake.store, lake.root, [entry], "then")
    for i in range(2):
        lake.ingest(lake.file(flights(10, 30 + 10 * i)))
    auto = autosavepoint_table(lake.root, "flights").savepoint
    assert auto is not None and auto.lance_version == 4
    before = stored(lake.open().opened.location)
    cleaned = clean_table(lake.root, "flights", {}, now=time.time() + 8 * 86_400)
    after = stored(lake.open().opened.location)
    assert [each["version"] for each in dataset(lake).versions()] == [2, 4]
    assert cleaned.removed.bytes > 0 and after[0] < before[0]
    assert {name: tag["version"] for name, tag in dataset(lake).tags.list().items()} == {
        "deployer-savepoint-then": 2,
        f"deployer-savepoint-{auto.name}": 4,
    }
    saved = restore(lake, "then")
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(30))
    restore(lake, saved)
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(50))
    reinitialise_table(lake.store, lake.root, entry.table_id, allow_destroy=True)
    restore(lake, "then")
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(30))
    delete_savepoint(lake.store, lake.root, [lake.open().opened.entry], "then")
    assert "deployer-savepoint-then" not in dataset(lake).tags.list()
    found = verify(lake.store, lake.root, full=True)
    assert [str(one) for each in found for one in each.differences] == []
