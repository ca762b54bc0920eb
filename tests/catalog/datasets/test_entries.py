"""Entries of datasets: created, renamed and deleted, and kept over restarts."""

from __future__ import annotations

from pathlib import Path

from deployer.catalog.protocol.messages import cloud
from tests.catalog.clients import BLUEPRINTS, DATASET, hex_of, refused
from tests.catalog.datasets.catalog import Catalog, catalog_at, of
from tests.catalog.datasets.recordings import scalars
from tests.tables.lakes import Lake


def test_a_dataset_has_one_for_its_blueprints_and_stays_over_a_restart(
    catalog: Catalog, root: str, tmp_path: Path
) -> None:
    dataset = catalog.create()
    entries = {each.name: each.entry_kind for each in catalog.client("FindEntries").entries}
    assert entries.pop("__entries") and entries == {"drives": DATASET, f"__bp_{dataset}": BLUEPRINTS}
    read = catalog.client("ReadDatasetEntry", None, of(dataset)).dataset
    assert read.dataset_handle.dataset_url.endswith(f"/lake/_catalog/{dataset}")
    with catalog_at(root, tmp_path) as other:
        assert other.client("ReadDatasetEntry", None, [("x-rerun-entry-name-bin", b"drives")]).dataset == read
        [blueprints] = other.client("FindEntries", cloud.FindEntriesRequest(filter={"entry_kind": BLUEPRINTS})).entries
        assert blueprints.id == read.dataset_details.blueprint_dataset


def test_a_dataset_is_renamed_and_deleted_and_its_name_is_free_again(catalog: Catalog, root: str) -> None:
    dataset, other = catalog.create(), catalog.create("other")
    catalog.register(dataset, catalog.recording("one"))
    entry = catalog.client.entry("drives")
    for name in ("trips", "trips"):
        renamed = catalog.client(
            "UpdateEntry", cloud.UpdateEntryRequest(id=entry.id, entry_details_update={"name": name})
        )
        assert renamed.entry_details.name == "trips"
    with refused("ALREADY_EXISTS", "Entry name 'other' already exists"):
        catalog.client("UpdateEntry", cloud.UpdateEntryRequest(id=entry.id, entry_details_update={"name": "other"}))
    assert catalog.create("drives") not in (dataset, other)
    assert (Path(root) / "_catalog" / dataset / "layers.lance").is_dir()
    catalog.client("DeleteEntry", cloud.DeleteEntryRequest(id=entry.id))
    with refused("NOT_FOUND", f"Entry id '{dataset}' not found"):
        catalog.client("ReadDatasetEntry", None, of(dataset))
    assert not (Path(root) / "_catalog" / dataset).exists()
    assert Path(catalog.folder / "one.rrd").exists()
    catalog.create("trips")


def test_names_are_those_of_one_table_or_one_dataset(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.table()
    with catalog_at(lake.root, tmp_path) as catalog:
        for name in ("air.flights", "__entries"):
            with refused("ALREADY_EXISTS", f"Entry name '{name}' already exists"):
                catalog.create(name)
        dataset = catalog.create("air.trips")
        with refused("NOT_FOUND", "it is a dataset, and not a table"):
            catalog.client("ReadTableEntry", cloud.ReadTableEntryRequest(id=catalog.client.entry("air.trips").id))
        assert catalog.segments(dataset) == []


def test_the_default_blueprint_is_kept(catalog: Catalog, root: str, tmp_path: Path) -> None:
    dataset = catalog.create()
    details = catalog.client("ReadDatasetEntry", None, of(dataset)).dataset
    blueprints = hex_of(details.dataset_details.blueprint_dataset)
    [row] = catalog.register(blueprints, catalog.recording("look", scalars("/view", [1]), blueprint=True))
    assert row["rerun_segment_id"] == "look"
    for segment in ("look", None):
        request = cloud.UpdateDatasetEntryRequest(id=details.details.id, dataset_details=details.dataset_details)
        request.dataset_details.ClearField("default_blueprint_segment")
        if segment is not None:
            request.dataset_details.default_blueprint_segment.id = segment
        catalog.client("UpdateDatasetEntry", request)
        with catalog_at(root, tmp_path) as other:
            found = other.client("ReadDatasetEntry", None, of(dataset)).dataset.dataset_details
            assert (found.HasField("default_blueprint_segment"), found.default_blueprint_segment.id) == (
                segment is not None,
                segment or "",
            )


def test_a_dataset_with_the_id_of_a_deleted_one_has_nothing_of_it(catalog: Catalog) -> None:
    dataset = catalog.create()
    catalog.register(dataset, catalog.recording("one"), catalog.recording("two"))
    assert catalog.query(dataset).num_rows == 4
    entry_id = catalog.client.entry("drives").id
    with refused("ALREADY_EXISTS", f"Entry id '{dataset}' already exists"):
        catalog.client("CreateDatasetEntry", cloud.CreateDatasetEntryRequest(name="other", id=entry_id))
    catalog.client("DeleteEntry", cloud.DeleteEntryRequest(id=entry_id))
    catalog.client("CreateDatasetEntry", cloud.CreateDatasetEntryRequest(name="other", id=entry_id))
    assert catalog.segments(dataset) == []
    catalog.register(dataset, *(catalog.recording(name) for name in ("three", "four", "five")))
    assert [row["rerun_segment_id"] for row in catalog.segments(dataset)] == ["three", "four", "five"]
    assert set(catalog.query(dataset)["chunk_segment_id"].to_pylist()) == {"three", "four", "five"}
