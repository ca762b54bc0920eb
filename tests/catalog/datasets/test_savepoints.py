"""Savepoints of an instance have its tables and its catalog at one moment, and `restore` makes both as they were."""

from __future__ import annotations

import datetime as dt
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from deployer.catalog.datasets.maintenance import remove_leftovers
from deployer.catalog.datasets.model.registry import Datasets
from deployer.catalog.datasets.reads.index import Indexes
from deployer.catalog.datasets.search.searches import Searches
from deployer.datasets.recovery import restored_together
from deployer.datasets.recovery.dead_runs import fail_dead_runs
from deployer.errors import Conflict, Refused
from deployer.platform.system.clock import Clock
from deployer.services.restore import restore_tables
from deployer.services.restore.catalog import preview_catalog
from deployer.services.restore.planning import preview_restore
from deployer.services.savepoints.savepoints import (
    delete_savepoint,
    expire_catalog_savepoints,
    make_savepoint,
)
from deployer.state import open_store
from deployer.state.store import StateStore
from deployer.tables.open_table import open_entry
from tests.catalog.clients import refused
from tests.catalog.datasets.catalog import Catalog, catalog_at
from tests.catalog.datasets.recordings import scalars
from tests.catalog.datasets.test_maintenance import do_maintenance
from tests.catalog.datasets.test_search import TEXT, create, find, texts
from tests.tables.lakes import Lake, flights

NOW = {"seconds": int(dt.datetime.now(dt.UTC).timestamp()) + 3600}


def save(store: StateStore, root: str, name: str, expires_at: int | None = None) -> None:
    make_savepoint(store, root, list(store.instance().tables.values()), name, catalog=True, expires_at=expires_at)


def restore(store: StateStore, root: str, name: str) -> str:
    entries = list(store.instance().tables.values())
    planned = preview_restore(store, root, entries, name, catalog=True)
    return restore_tables(store, root, planned, catalog=preview_catalog(store, name))[0]


def segments(catalog: Catalog, dataset: str) -> list[str]:
    return [each["rerun_segment_id"] for each in catalog.segments(dataset)]


def flights_in(lake: Lake) -> int:
    return lake.open("flights").opened.state.files.rows


def clean(catalog: Catalog, dataset: str) -> None:
    do_maintenance(catalog, dataset, compact_fragments=True)
    do_maintenance(catalog, dataset, cleanup_before=NOW, unsafe_allow_recent_cleanup=True)


@pytest.mark.full
def test_a_restore_brings_back_datasets_tables_and_entries_of_one_moment(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    lake.table()
    lake.ingest(lake.file(flights(40)))
    with catalog_at(lake.root, tmp_path) as catalog, closing(open_store(lake.root)) as store:
        kept, dropped, renamed = (catalog.create(name) for name in ("kept", "dropped", "renamed"))
        for each in (kept, dropped):
            catalog.register(each, catalog.recording(f"{each[-4:]}-1", texts(["an apple"]), scalars("/a", [1])))
            create(catalog, each, "/log", TEXT)
        catalog.client.create("notes", flights(1).schema, (tmp_path / "notes.lance").as_uri())
        save(store, lake.root, "then")
        for number in range(2, 5):
            name = f"{kept[-4:]}-{number}"
            catalog.register(kept, catalog.recording(name, texts(["a pear"]), scalars("/a", [number])))
        create(catalog, kept, "/log", TEXT)  # takes the place of the index that the savepoint has
        clean(catalog, kept)
        lake.ingest(lake.file(flights(40)))
        catalog.client.rename(catalog.client.entry("renamed"), "other")
        catalog.client.delete(catalog.client.entry("dropped"))
        catalog.client.delete(catalog.client.entry("notes"))
        catalog.create("new")
        now = sorted(catalog.client.names())
        undo = restore(store, lake.root, "then")
        assert sorted(catalog.client.names()) == sorted(
            ["air.flights", "kept", "dropped", "renamed", "notes"]
            + [f"__bp_{each}" for each in (kept, dropped, renamed)]
        )
        assert flights_in(lake) == 40
        with catalog_at(lake.root, tmp_path) as fresh:
            for server in (catalog, fresh):
                assert segments(server, kept) == [f"{kept[-4:]}-1"]
                assert segments(server, dropped) == [f"{dropped[-4:]}-1"]
                assert find(server, kept, "pear").num_rows == 0 and find(server, dropped, "apple").num_rows == 1
                assert len(server.fetch(server.query(dropped))) == 2
        # what is registered now is not mixed with what was there before, in the caches of servers either
        catalog.register(kept, *(catalog.recording(f"again-{number}", scalars("/a", [9])) for number in range(5)))
        assert segments(catalog, kept) == [f"{kept[-4:]}-1", *(f"again-{number}" for number in range(5))]
        restore(store, lake.root, undo)
        assert sorted(catalog.client.names()) == now and flights_in(lake) == 80
        assert segments(catalog, kept) == [f"{kept[-4:]}-{number}" for number in range(1, 5)]
        assert find(catalog, kept, "pear").num_rows == 3


def test_chunk_keys_from_before_a_restore_never_name_another_recording(catalog: Catalog, root: str) -> None:
    dataset = catalog.create()
    catalog.register(dataset, catalog.recording("one", scalars("/a", [1])))
    with closing(open_store(root)) as store:
        save(store, root, "then")
        catalog.register(dataset, catalog.recording("two", scalars("/a", [2])))
        found = catalog.query(dataset)
        restore(store, root, "then")
    catalog.register(dataset, catalog.recording("three", scalars("/a", [3])))
    with refused("NOT_FOUND", "no longer a layer of the dataset"):
        catalog.fetch(found.slice(1))
    assert catalog.query(dataset)["chunk_segment_id"].to_pylist() == ["one", "three"]


def test_files_stay_until_the_savepoint_is_gone(catalog: Catalog, root: str) -> None:
    dataset = catalog.create()
    catalog.register(dataset, catalog.recording("one", scalars("/a", [1])))
    folder = Path(root, "_catalog", dataset)
    with closing(open_store(root)) as store:
        save(store, root, "then", expires_at=Clock().now() + 60_000)
        catalog.client.delete(catalog.client.entry("drives"))
        later = Datasets(store, root, Clock(now=lambda: store._clock.now() + 2 * 3_600_000))
        assert remove_leftovers(later, Searches(later, Indexes(root))) == [] and folder.is_dir()
        assert expire_catalog_savepoints(store) == []
        assert expire_catalog_savepoints(store, Clock().now() + 60_001) == ["then"]
        assert len(remove_leftovers(later, Searches(later, Indexes(root)))) == 3 and not list(folder.iterdir())


def test_a_restore_that_would_undo_more_than_was_shown_is_refused(catalog: Catalog, root: str) -> None:
    dataset = catalog.create()
    with closing(open_store(root)) as store:
        save(store, root, "then")
        with pytest.raises(Conflict, match="there is a savepoint then already"):
            save(store, root, "then")
        catalog.register(dataset, catalog.recording("one", scalars("/a", [1])))
        shown = preview_catalog(store, "then")
        assert shown is not None and shown.changed == ("drives",)
        catalog.register(dataset, catalog.recording("two", scalars("/a", [2])))
        with pytest.raises(Conflict, match="the catalog was changed since the preview"):
            restore_tables(store, root, [], catalog=shown)
        assert segments(catalog, dataset) == ["one", "two"]
        assert restore_tables(store, root, [], catalog=shown, force=True, save_first=False) == ("", [])
        assert segments(catalog, dataset) == []
        assert delete_savepoint(store, root, [], "then", catalog=True) == ["the catalog"]
        assert preview_catalog(store, "then") is None


def test_a_name_that_a_table_has_got_since_is_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    with catalog_at(lake.root, tmp_path) as catalog, closing(open_store(lake.root)) as store:
        catalog.create("air.flights")
        save(store, lake.root, "then")
        catalog.client.delete(catalog.client.entry("air.flights"))
        lake.table()
        with pytest.raises(Refused, match="names now belong to tables"):
            preview_catalog(store, "then")


#: What a process does with the savepoint `then`.
PROGRAM = """
import sys
from deployer.services.restore import restore_tables
from deployer.services.restore.catalog import preview_catalog
from deployer.services.restore.planning import preview_restore
from deployer.state import open_store
root = sys.argv[1]
store = open_store(root)
planned = preview_restore(store, root, list(store.instance().tables.values()), "then", catalog=True)
restore_tables(store, root, planned, catalog=preview_catalog(store, "then"), save_first=False)
"""


@pytest.mark.full
@pytest.mark.parametrize(
    "point", ["services.restore.before-intent", "services.restore.before-lance", "services.restore.after-lance"]
)
def test_a_restore_that_is_killed_is_of_table_and_catalog_or_of_neither(
    point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path / "lake")
    lake.table()
    lake.ingest(lake.file(flights(40)))
    with catalog_at(lake.root, tmp_path) as catalog, closing(open_store(lake.root)) as store:
        dataset = catalog.create()
        catalog.register(dataset, catalog.recording("one", scalars("/a", [1])))
        save(store, lake.root, "then")
        catalog.register(dataset, catalog.recording("two", scalars("/a", [2])))
        lake.ingest(lake.file(flights(40, 40)))
        environment = {**os.environ, "DEPLOYER_FAILPOINT": point}
        command = [sys.executable, "-c", PROGRAM, lake.root]
        done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=120)
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()
        assert (flights_in(lake), segments(catalog, dataset)) == (80, ["one", "two"])
        later = Clock().now() + 120_000
        monkeypatch.setattr(restored_together, "Clock", lambda: Clock(now=lambda: later))
        [entry] = store.instance().tables.values()
        open_entry(store, lake.root, entry)
        assert (flights_in(lake), segments(catalog, dataset)) in ((40, ["one"]), (80, ["one", "two"]))
        fail_dead_runs(store, entry.table_id, later)
        del environment["DEPLOYER_FAILPOINT"]
        subprocess.run(command, env=environment, check=True, timeout=120)
        assert (flights_in(lake), segments(catalog, dataset)) == (40, ["one"])
