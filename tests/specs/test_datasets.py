"""Datasets of recordings in specs: what is read, its JSON form and its document."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from deployer.errors import InvalidInput
from deployer.specs import load_lake
from deployer.specs.editing.write import lake_to_yaml
from deployer.specs.loading.known import lake_as_json, lake_from_json
from deployer.specs.model import Lake
from deployer.specs.serialized.datasets import dataset_from_json, dataset_to_json
from deployer.specs.types.dataset import BlueprintFile, DatasetService, DatasetSpec, RecordingSource, SearchIndexSpec

SPECS = """\
kind: Instance
name: fleet
root: lake
---
kind: Dataset
name: drives
description: Drives of the fleet.
sources:
  - prefix: s3://recordings/drives
  - {prefix: labels, layer: labels}
register: manual
search_indexes:
  - {column: "/log:TextLog:text", timeline: log_time, kind: text, store_position: true, tokenizer: simple}
  - {column: "/camera:Embedding", timeline: frame, kind: vector, metric: L2, num_sub_vectors: 8}
default_blueprint: blueprints/drives.rbl
retention: 48h
services:
  maintain: {schedule: "0 3 * * *", timezone: Europe/Berlin}
  register: {schedule: "*/10 * * * *"}
deletion_protection: false
"""
DRIVES = DatasetSpec(
    "drives",
    (RecordingSource("labels", "labels"), RecordingSource("s3://recordings/drives")),
    "manual",
    (
        SearchIndexSpec("/camera:Embedding", "frame", "vector", {"metric": "L2", "num_sub_vectors": 8}),
        SearchIndexSpec("/log:TextLog:text", "log_time", "text", {"store_position": True}),
    ),
    BlueprintFile("blueprints/drives.rbl", hashlib.sha256(b"blueprint").hexdigest()),
    "2d",
    (DatasetService("register", "*/10 * * * *"), DatasetService("maintain", "0 3 * * *", "Europe/Berlin")),
    "Drives of the fleet.",
    deletion_protection=False,
)


def load(project: Path, text: str) -> Lake:
    (project / "blueprints").mkdir(exist_ok=True)
    (project / "blueprints/drives.rbl").write_bytes(b"blueprint")
    (project / "lake.yaml").write_text(text, encoding="utf-8")
    return load_lake(project, Path("lake.yaml"), "dev")


def test_a_dataset_is_read_with_its_places(tmp_path: Path) -> None:
    (found,) = load(tmp_path, SPECS).datasets
    assert found == DRIVES
    assert (found.search_indexes[1].entity, found.search_indexes[1].component) == ("/log", "TextLog:text")
    assert str(found.sources["retention"]) == "lake.yaml:16:1"
    assert str(found.sources["search_indexes./camera:Embedding"]).startswith("lake.yaml:14:")


def test_a_dataset_needs_its_name_alone(tmp_path: Path) -> None:
    (found,) = load(tmp_path, SPECS.split("---", maxsplit=1)[0] + "---\nkind: Dataset\nname: drives\n").datasets
    assert found == DatasetSpec("drives")
    assert dataset_to_json(found) == {"name": "drives"}


def test_what_is_written_is_read_as_the_same(tmp_path: Path) -> None:
    lake = load(tmp_path, SPECS)
    assert load(tmp_path, lake_to_yaml(lake)).datasets == lake.datasets
    assert lake_from_json(lake_as_json(lake)).datasets == lake.datasets
    assert dataset_from_json(dataset_to_json(DRIVES)) == DRIVES


def test_the_content_of_a_blueprint_is_declared(tmp_path: Path) -> None:
    before = load(tmp_path, SPECS).datasets
    (tmp_path / "blueprints/drives.rbl").write_bytes(b"another")
    assert load_lake(tmp_path, Path("lake.yaml"), "dev").datasets != before


def test_an_overlay_changes_a_dataset(tmp_path: Path) -> None:
    overlay = "---\nkind: Overlay\nstack: dev\ntarget: dataset/drives\nset: {register: auto, retention: null}\n"
    (found,) = load(tmp_path, SPECS + overlay).datasets
    assert (found.register, found.retention) == ("auto", None)


@pytest.mark.parametrize(
    ("form", "wrong"),
    [
        ([], "is not an object"),
        ({"name": "drives", "sources": [{"layer": "base"}]}, "`prefix` is missing"),
        ({"name": "../drives"}, "`name` cannot be"),
        ({"name": "drives", "retention": 7}, "`retention`"),
        ({"name": "drives", "blueprint_sha256": "0"}, "SHA-256"),
        ({"name": "drives", "segments": []}, "unknown field `segments`"),
    ],
)
def test_inputs_that_no_spec_could_say_are_refused(form: Any, wrong: str) -> None:
    with pytest.raises(InvalidInput, match=wrong):
        dataset_from_json(form)


def test_whole_numbers_may_come_as_doubles() -> None:
    index = {"column": "/camera:Embedding", "timeline": "frame", "kind": "vector", "num_sub_vectors": 8.0}
    (found,) = dataset_from_json({"name": "drives", "search_indexes": [index]}).search_indexes
    assert found.parameters == {"num_sub_vectors": 8}
