"""Maintenance of the catalog's own tables: what clients see stays, and versions that the log names are kept."""

from __future__ import annotations

import datetime as dt
import os
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from deployer.catalog.datasets import maintenance
from deployer.catalog.datasets.maintenance import EVERYTHING, Maintenance, maintain, remove_leftovers
from deployer.catalog.datasets.model.registry import Datasets
from deployer.catalog.datasets.model.rows import CHUNKS
from deployer.catalog.datasets.reads.index import Indexes
from deployer.catalog.datasets.search.searches import Searches
from deployer.catalog.protocol.messages import cloud
from deployer.datasets.files.named_rows import NamedVersion, add_rows, read_rows, remove_versions, unindexed_rows
from deployer.platform.system.clock import Clock
from deployer.state import open_store
from tests.catalog.clients import refused
from tests.catalog.datasets.catalog import Catalog, catalog_at, of
from tests.catalog.datasets.recordings import scalars
from tests.catalog.datasets.test_search import TEXT, create, find, texts


def do_maintenance(catalog: Catalog, dataset: str, **wanted: Any) -> str:
    return str(catalog.client("DoMaintenance", cloud.DoMaintenanceRequest(**wanted), of(dataset)).report)


def files_in(root: str, dataset: str) -> int:
    return sum(path.is_file() for path in (Path(root) / "_catalog" / dataset).rglob("*"))


def test_compaction_and_cleaning_change_nothing_that_clients_see(catalog: Catalog, root: str, tmp_path: Path) -> None:
    dataset = catalog.create()
    for number in range(5):
        catalog.register(dataset, catalog.recording(f"s{number}", scalars("/a", [number])))
    seen = catalog.segments(dataset), catalog.query(dataset)
    assert "Compacted tables: layers, chunks, tasks." in do_maintenance(catalog, dataset, compact_fragments=True)
    assert do_maintenance(catalog, dataset, compact_fragments=True) == ""
    before = files_in(root, dataset)
    recent = {"seconds": int(dt.datetime.now(dt.UTC).timestamp()) + 60}
    with refused("INVALID_ARGUMENT", "cleanup_before is less than 1 hour ago"):
        do_maintenance(catalog, dataset, cleanup_before=recent)
    assert files_in(root, dataset) == before
    report = do_maintenance(catalog, dataset, cleanup_before=recent, unsafe_allow_recent_cleanup=True)
    assert "bytes of old versions were removed" in report and files_in(root, dataset) < before - 15
    catalog.register(dataset, catalog.recording("s5", scalars("/a", [5])))
    with catalog_at(root, tmp_path) as fresh:
        for each in (catalog, fresh):
            assert (each.segments(dataset)[:5], each.query(dataset).slice(0, 5)) == seen
            assert each.query(dataset)["chunk_segment_id"].to_pylist()[5:] == ["s5"]


def test_the_version_that_the_log_names_is_kept_when_it_is_not_the_newest(catalog: Catalog, root: str) -> None:
    dataset = catalog.create()
    catalog.register(dataset, catalog.recording("one", scalars("/a", [1])))
    with closing(open_store(root)) as store:
        record = Datasets(store, root).by_id(dataset)
    place = f"{root}/_catalog/{dataset}/chunks.lance"
    rows = read_rows(place, record.chunks.named)
    assert rows is not None
    assert add_rows(place, record.chunks.named, rows.cast(CHUNKS)).version == 2  # what a killed registration leaves
    now = {"seconds": int(dt.datetime.now(dt.UTC).timestamp()) + 60}
    do_maintenance(catalog, dataset, cleanup_before=now, unsafe_allow_recent_cleanup=True)
    assert read_rows(place, NamedVersion(1, 1)) == rows
    catalog.register(dataset, catalog.recording("two", scalars("/a", [2])))
    assert catalog.query(dataset)["chunk_segment_id"].to_pylist() == ["one", "two"]


def test_versions_that_the_log_named_within_the_last_hour_are_kept_for_readers(
    catalog: Catalog, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = catalog.create()
    kept = dict[str, set[int]]()

    def noted(place: str, named: NamedVersion, age: dt.timedelta, *, saved: Any, unverified: bool) -> int:
        kept[Path(place).stem] = {named.version, *(each.version for each in saved)}
        assert unverified or age > dt.timedelta(hours=1)
        return remove_versions(place, named, age, saved=saved, unverified=unverified)

    monkeypatch.setattr(maintenance, "remove_versions", noted)
    with closing(open_store(root)) as store:
        for number in range(3):
            catalog.register(dataset, catalog.recording(f"s{number}", scalars("/a", [number])))
        begun = Datasets(store, root).by_id(dataset).layers.version
        hour = store._clock.now() + 3_600_000
        do_maintenance(catalog, dataset, compact_fragments=True)
        now = Datasets(store, root).by_id(dataset).layers.version
        for at, allow_recent, expected in (
            (hour, False, {begun, now}),
            (hour + 7_200_000, False, {now}),
            (hour, True, {now}),
        ):
            later = Datasets(store, root, Clock(now=partial(int, at)))
            before = dt.datetime.fromtimestamp(at / 1000, dt.UTC) - dt.timedelta(hours=1)
            wanted = Maintenance(clean_before=before, allow_recent=allow_recent)
            maintain(later, Searches(later, Indexes(root)), dataset, wanted)
            assert kept["layers"] == expected


def test_indexes_are_kept_up(catalog: Catalog, root: str) -> None:
    dataset = catalog.create()
    catalog.register(dataset, catalog.recording("one", texts(["an apple"])))
    create(catalog, dataset, "/log", TEXT)
    assert do_maintenance(catalog, dataset, optimize_indexes=True) == ""
    catalog.register(dataset, catalog.recording("two", texts(["apple two"])))
    for wanted in ("optimize_indexes", "retrain_indexes"):
        assert "index of /log:TextLog:text was built again" in do_maintenance(catalog, dataset, **{wanted: True})
        with closing(open_store(root)) as store:
            [search] = Datasets(store, root).by_id(dataset).searches
        place = f"{root}/_catalog/{dataset}/search/{search.index_id}.lance"
        assert unindexed_rows(place, search.rows.named) == 0 and search.rows.rows == 2
        assert find(catalog, dataset, "apple").num_rows == 2
    catalog.client("DoGlobalMaintenance")
    assert find(catalog, dataset, "apple").num_rows == 2


def test_what_killed_processes_left_is_removed_when_it_is_old(catalog: Catalog, root: str) -> None:
    kept, gone = catalog.create("kept"), "f" * 32
    catalog.register(kept, catalog.recording("one", texts(["an apple"])))
    create(catalog, kept, "/log", TEXT)
    with closing(open_store(root)) as store:
        datasets = Datasets(store, root)
        rows = read_rows(f"{root}/_catalog/{kept}/layers.lance", datasets.by_id(kept).layers.named)
        left = [Path(root, "_catalog", gone, "layers.lance"), Path(root, "_catalog", kept, "search", "0.lance")]
        for each in left:
            add_rows(str(each), NamedVersion(), rows)
        searches = Searches(datasets, Indexes(root))
        assert remove_leftovers(datasets, searches) == [] and all(map(os.path.exists, left))
        later = Datasets(store, root, Clock(now=lambda: store._clock.now() + 2 * 3_600_000))
        assert len(remove_leftovers(later, searches)) == 2 and not any(map(os.path.exists, left))
        assert maintain(later, searches, kept, EVERYTHING) == []
    assert find(catalog, kept, "apple").num_rows == 1
