"""METASYNC to a Lance directory namespace: what LanceDB and Lance's own client open there, and what others change."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import lance
import lancedb
import pytest
from lance.namespace import DirectoryNamespace
from lance_namespace import (
    DeregisterTableRequest,
    DescribeTableRequest,
    ListTablesRequest,
    RegisterTableRequest,
)

from deployer.datasets.storage.options import storage_options
from deployer.runs.records import runs_of
from deployer.services.kinds.metasync import NotPublished
from deployer.tables.admin.deletion import delete_table
from deployer.tables.admin.naming import rename_table
from deployer.tables.evolution.rewrite.truncate import reinitialise_table
from tests.services.metasync.conftest import sync, sync_all
from tests.tables.lakes import Lake, flights, sorted_rows

DIRECTORY = {"type": "directory"}


def namespace(lake: Lake) -> DirectoryNamespace:
    return DirectoryNamespace(root=lake.root)


def entry(lake: Lake, name: str = "flights") -> Any:
    return namespace(lake).describe_table(DescribeTableRequest(id=["air", name]))


def names(lake: Lake) -> list[str]:
    return sorted(namespace(lake).list_tables(ListTablesRequest(id=["air"])).tables)


def put_elsewhere(lake: Lake, location: str, name: str = "flights") -> None:
    """What somebody does who lets the name mean another folder."""
    namespace(lake).deregister_table(DeregisterTableRequest(id=["air", name]))
    namespace(lake).register_table(RegisterTableRequest(id=["air", name], location=location))


def test_lancedb_opens_tables_by_name_and_sees_new_rows_and_columns(lake: Lake) -> None:
    done = sync(lake, DIRECTORY)
    assert (done.action, done.version_after, done.changed_by_others) == ("created", 2, ())
    database = lancedb.connect(lake.root)
    assert list(database.list_tables(namespace_path=["air"]).tables) == ["flights"]
    opened = database.open_table("flights", namespace_path=["air"])
    assert sorted_rows(opened.to_arrow()) == sorted_rows(flights(20))
    lake.ingest(lake.file(flights(5, 20)))
    again = sync_all(lake, DIRECTORY)
    assert (again.status, again.targets[0].action) == ("SKIPPED", "unchanged")
    assert database.open_table("flights", namespace_path=["air"]).count_rows() == 25
    opened_by_lance = lance.dataset(namespace_client=namespace(lake), table_id=["air", "flights"])
    assert opened_by_lance.version == 3


def test_partitions_and_keys_are_told(lake: Lake) -> None:
    sync(lake, DIRECTORY)
    reported = entry(lake).properties
    assert json.loads(reported["deployer.row_keys"]) == ["carrier", "flight"]
    assert json.loads(reported["deployer.partitions"]) == {"count": 4, "split_points": [["B6"], ["DL", 500], ["UA"]]}
    assert reported["deployer.table_id"] == lake.open().opened.entry.table_id


def test_a_dataset_that_took_the_place_of_another_is_found_under_the_same_name(lake: Lake) -> None:
    sync(lake, DIRECTORY)
    reinitialise_table(lake.store, lake.root, lake.open().opened.entry.table_id, allow_destroy=True)
    lake.ingest(lake.file(flights(3)))
    assert sync(lake, DIRECTORY).action == "updated"
    assert lancedb.connect(lake.root).open_table("flights", namespace_path=["air"]).count_rows() == 3


@pytest.mark.parametrize("change", ["removed", "moved", "altered"])
def test_what_others_changed_is_told_and_mended(lake: Lake, change: str) -> None:
    lake.table(name="others")
    sync(lake, DIRECTORY)
    before = entry(lake)
    if change == "removed":
        namespace(lake).deregister_table(DeregisterTableRequest(id=["air", "flights"]))
    elif change == "moved":
        put_elsewhere(lake, lake.open("others").opened.entry.location)
    else:
        manifest = lance.dataset(f"{lake.root}/__manifest")
        metadata = {**before.properties, "deployer.row_keys": '["delay"]', "mine": "kept"}
        manifest.update({"metadata": f"'{json.dumps(metadata)}'"}, where="object_id = 'air$flights'")
    done = sync(lake, DIRECTORY)
    reported = {"removed": ("removed",), "moved": ("location", "properties"), "altered": ("deployer.row_keys",)}
    assert (done.changed_by_others, done.action) == (reported[change], "created" if change == "removed" else "updated")
    after = entry(lake)
    assert after.location == before.location
    kept = {"mine": "kept"} if change == "altered" else {}
    assert after.properties == {**before.properties, **kept}
    assert sync_all(lake, DIRECTORY).status == "SKIPPED"
    assert "changed by others: directory " in runs_of(lake.open().opened.state)[1].reason


def test_what_deployer_did_not_publish_is_left_as_it_is(lake: Lake) -> None:
    lance.write_dataset(flights(2), f"{lake.root}/theirs.lance")
    namespace(lake)
    sync(lake, DIRECTORY)
    put_elsewhere(lake, "theirs.lance")  # ours, and moved within the lake: fixed
    assert sync(lake, DIRECTORY).changed_by_others == ("location", "properties")
    lake.table(name="second")
    namespace(lake).register_table(RegisterTableRequest(id=["air", "second"], location="theirs.lance"))
    with pytest.raises(NotPublished, match=r"air\.second exists already and was not published from this lake") as no:
        sync(lake, DIRECTORY, "second")
    assert "theirs.lance" in str(no.value) and entry(lake, "second").location.endswith("theirs.lance")
    assert lance.dataset(f"{lake.root}/theirs.lance").count_rows() == 2


def test_a_rename_and_a_deletion_are_followed_by_the_next_run(lake: Lake) -> None:
    lake.table(name="gone")
    sync(lake, DIRECTORY)
    sync(lake, DIRECTORY, "gone")
    rename_table(lake.store, lake.open().opened.entry, "air", "departures")
    delete_table(lake.store, lake.root, lake.open("gone").opened.entry.table_id, allow_destroy=True)
    assert names(lake) == ["flights", "gone"]
    done = sync_all(lake, DIRECTORY, table="departures")
    assert [each.action for each in done.targets] == ["created", "removed"]
    assert [(each.action, each.target.rpartition(" ")[2]) for each in done.gone] == [("removed", "air.gone")]
    assert names(lake) == ["departures"]
    assert lancedb.connect(lake.root).open_table("departures", namespace_path=["air"]).count_rows() == 20
    assert sync_all(lake, DIRECTORY, table="departures").status == "SKIPPED"


def test_an_entry_that_is_somebody_elses_by_now_is_not_removed(lake: Lake) -> None:
    lance.write_dataset(flights(2), f"{lake.root}/theirs.lance")
    sync(lake, DIRECTORY)
    put_elsewhere(lake, "theirs.lance")
    rename_table(lake.store, lake.open().opened.entry, "air", "departures")
    done = sync_all(lake, DIRECTORY, table="departures")
    assert [each.action for each in done.targets] == ["created", "left"]
    assert names(lake) == ["departures", "flights"] and entry(lake).location.endswith("theirs.lance")


def test_two_tables_that_swap_names_do_too(lake: Lake) -> None:
    lake.table(name="other")
    sync(lake, DIRECTORY)
    sync(lake, DIRECTORY, "other")
    first, second = lake.open().opened.entry, lake.open("other").opened.entry
    rename_table(lake.store, first, "air", "swap")
    rename_table(lake.store, second, "air", "flights")
    rename_table(lake.store, lake.open("swap").opened.entry, "air", "other")
    assert [each.action for each in sync_all(lake, DIRECTORY, table="other").targets] == ["updated", "removed"]
    assert [each.action for each in sync_all(lake, DIRECTORY).targets] == ["created"]
    assert (entry(lake, "other").properties or {})["deployer.table_id"] == first.table_id
    assert (entry(lake).properties or {})["deployer.table_id"] == second.table_id


def test_tables_that_are_published_at_once_all_are(lake: Lake) -> None:
    tables = ["flights", *(f"table{number}" for number in range(3))]
    for name in tables[1:]:
        lake.table(name=name)
    with ThreadPoolExecutor(len(tables)) as pool:

        def at_once() -> list[str]:
            return [done.action for done in pool.map(lambda name: sync(lake, DIRECTORY, name), tables)]

        assert at_once() == ["created"] * 4
        for name in tables:
            reinitialise_table(lake.store, lake.root, lake.open(name).opened.entry.table_id, allow_destroy=True)
        assert at_once() == ["updated"] * 4
        assert at_once() == ["unchanged"] * 4
    assert names(lake) == tables


def test_a_namespace_that_is_not_above_the_table_is_refused(lake: Lake) -> None:
    with pytest.raises(
        NotPublished, match=r"opens only tables below its folder, and this one is at .*leave `root` out"
    ):
        sync(lake, {**DIRECTORY, "root": f"{lake.folder}/elsewhere"})
    assert not (lake.folder / "elsewhere").exists()
    assert sync(lake, {**DIRECTORY, "root": str(lake.folder)}).action == "created"
    assert lancedb.connect(lake.folder).open_table("flights", namespace_path=["air"]).count_rows() == 20


@pytest.mark.full
def test_on_s3(on_s3: str, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    far = Lake(lake.folder, on_s3)
    far.table()
    far.ingest(far.file(flights(20)))
    assert [sync(far, DIRECTORY).action for _ in range(2)] == ["created", "unchanged"]
    options = storage_options(on_s3) or {}
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")  # moto's server has no TLS, and LanceDB leaves out that option here
    database = lancedb.connect(on_s3, storage_options=options)
    assert database.open_table("flights", namespace_path=["air"]).count_rows() == 20
    reinitialise_table(far.store, far.root, far.open().opened.entry.table_id, allow_destroy=True)
    assert sync(far, DIRECTORY).action == "updated"
    assert database.open_table("flights", namespace_path=["air"]).count_rows() == 0
    far.store.close()
