"""A state store that was lost is rebuilt from the datasets of its tables: the same tables, rows and settings."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.live.reader import read_table
from deployer.services.api.attachments import create_service
from deployer.services.kinds.clean import clean_table
from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.compact import compact_table
from deployer.services.restore import restore_tables
from deployer.services.restore.planning import preview_restore
from deployer.services.savepoints.savepoints import delete_savepoint, make_savepoint
from deployer.specs.model import InstanceSpec, TableSpec
from deployer.specs.types.parser import parse_type
from deployer.specs.types.types import Column
from deployer.state import open_store
from deployer.state.log.updates import SetTableStatus
from deployer.state.model.entities import INSTANCE_LOG, TableState
from deployer.state.model.services import Service
from deployer.tables.admin.deletion import delete_table
from deployer.tables.admin.naming import rename_table, set_online
from deployer.tables.admin.tables import update_table
from deployer.tables.evolution.rewrite.truncate import reinitialise_table
from deployer.tables.importing.adopt import adopt, adoptable
from deployer.tables.layout.partitions.split import split_leaves
from deployer.tables.maintenance.verify.rebuild import ProjectDeclarations, Rebuild, apply_rebuild, plan_rebuild
from deployer.tables.maintenance.verify.verify import verify
from tests.tables.lakes import Lake, flights, sorted_rows

OWNER = "tests/dev"


def lose(lake: Lake) -> None:
    """The state store is gone, and this process has it open no more."""
    lake.store.close()
    shutil.rmtree(Path(lake.root) / "_state")


def declared(lake: Lake, *specs: TableSpec, ids: Mapping[str, str] | None = None) -> ProjectDeclarations:
    instance = InstanceSpec("tests", lake.root)
    return ProjectDeclarations(instance, {each.full_name: each for each in specs}, OWNER, ids or {})


def rebuild(lake: Lake, *specs: TableSpec, ids: Mapping[str, str] | None = None) -> Rebuild:
    """Rebuilds the state store and opens it again."""
    planned = plan_rebuild(lake.root, declared(lake, *specs, ids=ids))
    apply_rebuild(planned)
    lake.store = open_store(lake.root)
    return planned


def told(lake: Lake) -> dict[str, Any]:
    """What the state says of each table by name, times of entries aside; with the table's rows."""
    return {
        entry.full_name: (entry, _told(lake.open(entry.name).opened.state), rows(lake, entry.name))
        for entry in lake.store.instance().tables.values()
    }


def rows(lake: Lake, name: str = "flights") -> Any:
    return sorted_rows(lake.open(name).scan().to_table())


def _told(state: TableState) -> dict[str, Any]:
    return {
        "properties": replace(state.properties, generation=0),
        "columns": pa.ipc.read_schema(pa.py_buffer(state.schema)),
        "lance_version": state.lance_version,
        "partitions": dict(state.partitions),
        "files": sorted(state.files, key=lambda each: each.fragment_id),
        "jobs": {each.job_id: (each.kind, each.rows, each.lance_version, each.sources) for each in state.jobs.values()},
        "datasets": [(each.number, each.location, each.status) for each in state.datasets],
        "services": dict(state.services),
        "savepoints": {
            each.name: (each.lance_version, each.dataset, each.expires_at, each.author, each.note)
            for each in state.savepoints.values()
        },
    }


def whole(lake: Lake) -> None:
    found = verify(lake.store, lake.root, full=True)
    assert [str(one) for each in found for one in each.differences] == []


def entry_of(lake: Lake, name: str = "flights") -> Any:
    return lake.open(name).opened.entry


def change(lake: Lake, changed: Callable[[TableSpec], TableSpec], name: str = "flights") -> None:
    entry = entry_of(lake, name)
    spec = read_table(lake.store, lake.root, entry).spec
    update_table(lake.store, lake.root, entry.table_id, changed(spec))


def load(lake: Lake, job_id: str, count: int = 60, start: int = 0) -> None:
    lake.ingest(lake.file(flights(count, start)), job_id=job_id)


def save(lake: Lake, name: str, **options: Any) -> None:
    make_savepoint(lake.store, lake.root, [entry_of(lake)], name, **options)


def restore(lake: Lake, name: str) -> None:
    planned = preview_restore(lake.store, lake.root, [entry_of(lake)], name)
    restore_tables(lake.store, lake.root, planned, force=True)


def plain(lake: Lake) -> None:
    lake.table(row_keys=())
    load(lake, "one")


def keyed(lake: Lake) -> None:
    lake.table()
    load(lake, "one")
    load(lake, "two", 30, 60)


def empty(lake: Lake) -> None:
    lake.table()


def split(lake: Lake) -> None:
    keyed(lake)
    split_leaves(lake.store, lake.root, entry_of(lake).table_id, max_rows=20)


def split_then_loaded(lake: Lake) -> None:
    split(lake)
    load(lake, "three", 40, 100)


def compacted(lake: Lake) -> None:
    keyed(lake)
    compact_table(lake.root, "flights")
    load(lake, "three", 20, 100)


def clustered(lake: Lake) -> None:
    keyed(lake)
    cluster_table(lake.root, "flights", {"columns": ["delay", "price"]})


def keys_changed(lake: Lake) -> None:
    keyed(lake)
    change(lake, lambda spec: replace(spec, row_keys=("flight",), sort_keys=("carrier",), split_points=((500,),)))
    load(lake, "three", 20, 100)


def emptied(lake: Lake) -> None:
    keyed(lake)
    reinitialise_table(lake.store, lake.root, entry_of(lake).table_id, allow_destroy=True)
    load(lake, "one", 20, 100)  # a load of before may be repeated


def restored(lake: Lake) -> None:
    keyed(lake)
    save(lake, "then")
    load(lake, "three", 20, 100)
    restore(lake, "then")
    load(lake, "three", 10, 200)


def restored_across_a_rewrite(lake: Lake) -> None:
    keyed(lake)
    save(lake, "then", note="before the keys change", author="ann")
    keys = ("flight",)
    change(lake, lambda spec: replace(spec, row_keys=keys, split_points=()))
    load(lake, "three", 20, 100)
    restore(lake, "then")
    load(lake, "four", 10, 200)


def savepoints(lake: Lake) -> None:
    keyed(lake)
    save(lake, "first", note="as it began", author="ann")
    load(lake, "three", 20, 100)
    save(lake, "second", expires_at=9_999_999_999_999)
    save(lake, "third")
    delete_savepoint(lake.store, lake.root, [entry_of(lake)], "second")


def savepoint_of_a_replaced_dataset(lake: Lake) -> None:
    keyed(lake)
    save(lake, "then")
    change(lake, lambda spec: replace(spec, row_keys=("flight",), split_points=()))
    load(lake, "three", 20, 100)


def columns_changed(lake: Lake) -> None:
    keyed(lake)
    note = Column("note", parse_type("string"))
    change(lake, lambda spec: replace(spec, columns=(*spec.columns, note)))
    renamed = {"carrier": "airline", "delay": "late"}

    def rename(spec: TableSpec) -> TableSpec:
        columns = tuple(
            replace(each, name=renamed[each.name], renamed_from=each.name) if each.name in renamed else each
            for each in spec.columns
        )
        return replace(spec, columns=columns, row_keys=("airline", "flight"))

    change(lake, rename)


def settings_changed(lake: Lake) -> None:
    keyed(lake)
    change(lake, lambda spec: replace(spec, description="Flights.", tags={"team": "air"}, deletion_protection=False))
    set_online(lake.store, entry_of(lake).table_id, False)
    rename_table(lake.store, entry_of(lake), "sky", "journeys")
    create_service(lake.store, entry_of(lake, "journeys").table_id, Service("COMPACT", paused=True, declared=True))


def cleaned(lake: Lake) -> None:
    keyed(lake)
    compact_table(lake.root, "flights")
    load(lake, "three", 20, 100)
    clean_table(lake.root, "flights", {"older_than": "1h", "keep_versions": 1}, now=time.time() + 7200)


def emptied_and_cleaned(lake: Lake) -> None:
    emptied(lake)
    clean_table(lake.root, "flights", {"older_than": "1h", "keep_versions": 1}, now=time.time() + 7200)


def deleted(lake: Lake) -> None:
    keyed(lake)
    change(lake, lambda spec: replace(spec, row_keys=("flight",), split_points=()))  # it has a retired dataset
    lake.table(name="planes")
    delete_table(lake.store, lake.root, entry_of(lake).table_id, allow_destroy=True)


def imported_in_place(lake: Lake) -> None:
    path = Path(lake.root) / "theirs" / "flights.lance"
    lance.write_dataset(flights(30), path, data_storage_version="2.1")
    adopt(lake.store, lake.root, adoptable(lake.root, path, "air", "flights"), OWNER)
    load(lake, "one", 20, 100)


def written_by_others(lake: Lake) -> None:
    keyed(lake)
    location = lake.open().opened.location
    lance.write_dataset(flights(10, 300), location, mode="append")
    load(lake, "three", 20, 100)
    lance.dataset(location).delete("flight < 100")
    lance.write_dataset(flights(5, 400), location, mode="append")


CASES: Mapping[str, Callable[[Lake], None]] = {
    each.__name__: each
    for each in (
        plain,
        keyed,
        empty,
        split,
        split_then_loaded,
        compacted,
        clustered,
        keys_changed,
        emptied,
        restored,
        restored_across_a_rewrite,
        savepoints,
        savepoint_of_a_replaced_dataset,
        columns_changed,
        settings_changed,
        deleted,
        imported_in_place,
        written_by_others,
    )
}


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("case", CASES)
def test_the_state_is_as_it_was(tmp_path: Path, case: str) -> None:
    lake = Lake(tmp_path)
    CASES[case](lake)
    before = told(lake)
    lose(lake)
    planned = rebuild(lake)
    assert (planned.problems, [each.notes for each in planned.tables if each.notes]) == ((), [])
    assert told(lake) == before
    whole(lake)
    for name in [each.name for each in lake.store.instance().tables.values()]:
        if name == "flights" and lake.open(name).opened.state.properties.online and case != "columns_changed":
            lake.ingest(lake.file(flights(10, 900)), job_id="afterwards")
            assert len(rows(lake)) == len(before["air.flights"][2]) + 10
    whole(lake)


def test_jobs_and_rows_stay_where_versions_were_removed(tmp_path: Path) -> None:
    """The marks of removed versions are gone: jobs are in the record, and the keys of files are read."""
    lake = Lake(tmp_path)
    cleaned(lake)
    before = told(lake)["air.flights"]
    lose(lake)
    assert rebuild(lake).problems == ()
    after = told(lake)["air.flights"]
    assert after == before
    whole(lake)
    load(lake, "one")  # it was done
    assert rows(lake) == before[2]


def test_a_deletion_that_was_begun_is_finished(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    keys_changed(lake)  # it has a retired dataset
    entry = entry_of(lake)
    lake.store.commit(INSTANCE_LOG, [SetTableStatus(entry.table_id, "deleting")])
    lose(lake)
    [found] = rebuild(lake).tables
    assert (found.log, found.entry.status) == (None, "deleting")
    delete_table(lake.store, lake.root, entry.table_id, allow_destroy=True)
    assert not list((Path(lake.root) / "air").iterdir())
    assert not lake.store.instance().tables


def test_a_dataset_that_a_removal_left_is_not_a_table(tmp_path: Path) -> None:
    """The manifests go first."""
    lake = Lake(tmp_path)
    keyed(lake)
    lake.table(name="planes")
    shutil.rmtree(Path(lake.open().opened.location) / "_versions")
    lose(lake)
    assert [each.entry.name for each in rebuild(lake).tables] == ["planes"]


def test_services_that_reach_out_are_left_to_the_specs(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    keyed(lake)
    for kind in ("METASYNC", "COMPACT"):
        create_service(lake.store, entry_of(lake).table_id, Service(kind))
    lose(lake)
    [found] = rebuild(lake).tables
    assert "service METASYNC is left out" in found.notes[0]
    assert [*lake.open().opened.state.services] == ["COMPACT"]


def test_a_record_that_a_killed_process_left_old_is_written_at_the_next_commit(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    keyed(lake)
    [record] = Path(lake.root).glob("air/*/_deployer/table.json")
    old = record.read_bytes()
    set_online(lake.store, entry_of(lake).table_id, False)
    set_online(lake.store, entry_of(lake).table_id, True)
    change(lake, lambda spec: replace(spec, description="new"))
    record.write_bytes(old)
    load(lake, "three", 20, 100)  # in a store of its own
    before = told(lake)
    lose(lake)
    rebuild(lake)
    assert told(lake) == before
