"""Tables of an instance on S3: moto's server, or what `--s3-endpoint` and `--dynamodb-endpoint` name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import lance
import pytest

from deployer.live.lance_storage import objects_at, storage_options
from deployer.specs.types import Column, Scalar
from deployer.state import create_store
from deployer.tables.admin import delete_table, read_table, update_table
from deployer.tables.append import open_appender
from tests.state.conftest import Interpose, bucket, interpose, on_s3  # noqa: F401 (fixtures)
from tests.tables.lakes import Lake, flights, sorted_rows


@pytest.fixture
def lake(on_s3: str, tmp_path: Path) -> Iterator[Lake]:  # noqa: F811
    made = Lake.__new__(Lake)
    made.folder, made.root, made.store = tmp_path, on_s3, create_store(on_s3, instance="tests")
    yield made
    made.store.close()


def test_rows_are_loaded_and_found_by_key(lake: Lake) -> None:
    lake.table()
    assert lake.ingest(lake.file(flights(50))).rows == 50
    lake.ingest(lake.file(flights(50, 50)))
    table = lake.open()
    assert sorted_rows(table.scan().to_table()) == sorted_rows(flights(100))
    row = flights(100).to_pylist()[60]
    found = table.keys((row["carrier"], row["flight"]))
    assert found.to_table().to_pylist() == [row] and found.opened < found.total


def test_a_schema_change_and_a_commit_by_plain_lance(lake: Lake) -> None:
    table = lake.table()
    lake.ingest(lake.file(flights(10)))
    entry = table.opened.entry
    live = read_table(lake.store, lake.root, entry)
    wanted = replace(live.spec, columns=(*live.spec.columns, Column("gate", Scalar("string"))))
    update_table(lake.store, lake.root, entry.table_id, wanted)
    location = lake.open().opened.location
    options = storage_options(location)
    lance.dataset(location, storage_options=options).delete("flight = 919")
    assert lake.open().count() == 9 and "gate" in lake.open().schema.names


def test_a_deleted_table_leaves_no_object(lake: Lake) -> None:
    opened = lake.table().opened
    lake.ingest(lake.file(flights(10)))
    assert objects_at(opened.location).list("")
    delete_table(lake.store, lake.root, opened.entry.table_id, allow_destroy=True)
    assert not objects_at(opened.location).list("")
    assert all(path.startswith("_state/") for path in objects_at(lake.root).list(""))


def test_an_append_takes_six_requests(lake: Lake, interpose: Interpose) -> None:  # noqa: F811
    """Lance alone takes four: the data file, a list of versions, the transaction, the manifest."""
    lake.table(splits=())
    dynamodb, s3 = interpose({})
    appender = open_appender(lake.root, "air.flights")
    appender.append(flights(10))
    for requests in (dynamodb.requests, s3.requests):
        requests.clear()
    appender.append(flights(10, 10))
    assert dynamodb.requests == ["TransactWriteItems"] * 2
    assert s3.requests == ["PUT", "GET", "PUT", "PUT"]
    assert lake.open().count() == 20
