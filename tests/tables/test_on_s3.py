"""Tables of an instance on S3: moto's server, or what `--s3-endpoint` and `--dynamodb-endpoint` name."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pytest

from deployer.datasets.files.writer import write_sorted
from deployer.datasets.storage.options import objects_at, storage_options
from deployer.errors import Conflict, Refused
from deployer.live.reader import read_table
from deployer.platform.storage.s3_objects import S3Objects
from deployer.specs.types.types import Column, Scalar
from deployer.tables.admin.deletion import delete_table
from deployer.tables.admin.tables import update_table
from deployer.tables.append import open_appender
from deployer.tables.evolution.rewrite import lock as rewrite_lock
from deployer.tables.evolution.rewrite.lock import Holder, held
from deployer.tables.ingest.commit import unique_keys as unique_commit
from deployer.tables.maintenance.collect.garbage import collect_garbage
from tests.state.faults import Interpose
from tests.tables.lakes import Lake, flights, sorted_rows


@pytest.fixture
def lake(on_s3: str, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path, on_s3)
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


@pytest.mark.full
def test_keys_are_unique(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among rows that are there, that an earlier run of the load wrote, and that others add meanwhile."""
    lake.table(unique=True)
    lake.ingest(lake.file(flights(20)))
    monkeypatch.setattr("deployer.tables.ingest.driver.FLUSH_BYTES", 1)
    with pytest.raises(Refused, match="10 of 20 rows have keys"):
        lake.ingest(lake.file(flights(20, 10)))
    begin = unique_commit.begin_alone

    def late(*args: Any) -> Any:
        monkeypatch.setattr("deployer.tables.ingest.commit.append.begin_alone", begin)
        lake.ingest(lake.file(flights(5, 30)))
        return begin(*args)

    monkeypatch.setattr("deployer.tables.ingest.commit.append.begin_alone", late)
    twice = (lake.file(flights(15, 20)), lake.file(flights(15, 20)))
    assert lake.ingest(*twice, on_duplicate="skip").duplicates_skipped == 20
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(35))


@pytest.mark.full
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


@pytest.mark.full
def test_a_deleted_table_leaves_no_object(lake: Lake) -> None:
    opened = lake.table().opened
    lake.ingest(lake.file(flights(10)))
    assert objects_at(opened.location).list("")
    delete_table(lake.store, lake.root, opened.entry.table_id, allow_destroy=True)
    assert not objects_at(opened.location).list("")
    assert all(path.startswith("_state/") for path in objects_at(lake.root).list(""))


def test_an_append_takes_six_requests(lake: Lake, interpose: Interpose) -> None:
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


@pytest.mark.full
def test_other_keys_are_a_rewrite_there_too(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(60)))
    opened = lake.open().opened
    live = read_table(lake.store, lake.root, opened.entry)
    wanted = replace(live.spec, row_keys=("flight", "carrier"), split_points=((500,),))
    update_table(lake.store, lake.root, opened.entry.table_id, wanted)
    table = lake.open()
    assert table.row_keys == ("flight", "carrier") and len(table.opened.state.leaves()) == 2
    assert sorted_rows(table.scan().to_table()) == sorted_rows(flights(60))
    assert not [path for path in objects_at(table.opened.location).list("") if path.startswith("_rewrite/")]


def test_a_lease_keeps_others_out_until_it_ends(on_s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    location = f"{on_s3}/air/flights.lance"
    with held(location, "lock", lease=0.4) as is_first:
        assert is_first
        with pytest.raises(Conflict, match=r"another process rewrites the table, which is .*\(process \d+\)"):
            held(location, "lock").__enter__()
    with held(location, "lock") as is_first:
        assert is_first  # it was given back
    monkeypatch.setattr(rewrite_lock, "SKEW", -1000.0)
    with held(location, "lock"), held(location, "lock") as is_first:
        assert not is_first
    with held(location, "lock") as is_first:
        assert is_first


def test_a_lease_of_an_attempt_that_is_over_is_taken_over_at_once_and_its_work_continues(on_s3: str) -> None:
    location = f"{on_s3}/air/flights.lance"
    with held(location, "lock", Holder("first")):
        with pytest.raises(Conflict, match="another process rewrites the table"):
            held(location, "lock", Holder("second", frozenset({"another"}))).__enter__()
        with held(location, "lock", Holder("second", frozenset({"first"}))) as continues:
            assert continues


def test_a_lease_is_renewed_while_it_is_held(on_s3: str) -> None:
    location = f"{on_s3}/air/flights.lance"
    objects = S3Objects(location)
    with held(location, "lock", lease=0.2):
        first = objects.tagged("lock")
        assert first is not None
        while (now := objects.tagged("lock")) == first:
            threading.Event().wait(0.05)
        assert now is not None and json.loads(now[0])["until"] > json.loads(first[0])["until"]
    assert objects.tagged("lock") is None


@pytest.mark.full
def test_garbage_is_collected_there_too(lake: Lake) -> None:
    opened = lake.table(splits=()).opened
    lake.ingest(lake.file(flights(10)))
    write_sorted(opened.layout(), flights(5), opened.state.leaves()[0].partition_id)  # and never committed
    objects = objects_at(opened.location)
    before = set(objects.list("data"))
    young = collect_garbage(lake.store, lake.root, opened.entry.table_id)
    assert (young.files, young.young) == (0, 1) and set(objects.list("data")) == before
    found = collect_garbage(lake.store, lake.root, opened.entry.table_id, now=time.time() + 8 * 86_400)
    assert found.files == 1 and found.bytes > 0
    assert len(objects.list("data")) == 1 and lake.open().count() == 10
