"""`deployer catalog datasets`, `segments`, `layers`, `manifest`, `register`, `search` and `maintain`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deployer.cli.main import run
from tests.catalog.datasets.catalog import catalog_at
from tests.catalog.datasets.recordings import properties, scalars, write_recording
from tests.catalog.datasets.test_search import TEXT, VECTOR, create, texts, vectors
from tests.cli.test_times_in_json import TIME

Command = Callable[..., Any]


@pytest.fixture
def command(root: str, capsys: pytest.CaptureFixture[str]) -> Command:
    def call(*arguments: str, code: int = 0) -> Any:
        assert run(["catalog", *arguments, "--root", root, "--json"]) == code
        return json.loads(capsys.readouterr().out)

    return call


def recording(folder: Path, segment: str) -> str:
    return str(write_recording(folder / f"{segment}.rrd", segment, [scalars("/a", [1, 2]), properties("info", n=2.0)]))


def test_datasets_are_made_and_listed_without_the_client(command: Command, tmp_path: Path) -> None:
    assert command("datasets") == {"datasets": []}
    one, two = recording(tmp_path / "in", "one"), recording(tmp_path / "in", "two")
    made = command("register", "drives", one, "--create")
    assert [each["segment"] for each in made["registered"]] == ["one"] and made["failed"] == []
    bad = tmp_path / "none.rrd"
    again = command("register", "drives", two, str(bad), "--layer", "raw", code=1)
    assert [each["layer"] for each in again["registered"]] == ["raw"]
    [failed] = again["failed"]
    assert failed["url"] == bad.as_uri()
    assert failed["error"] == f"{bad.as_uri()}: the file does not exist; check the path"
    [dataset] = command("datasets")["datasets"]
    assert [dataset[name] for name in ("name", "segments", "layers", "chunks")] == ["drives", 2, 2, 4]
    segments = command("segments", "drives")["segments"]
    assert [(each["rerun_segment_id"], each["property:info:n"]) for each in segments] == [
        ("one", [2.0]),
        ("two", [2.0]),
    ]
    layers = command("layers", "drives")["layers"]
    assert [(each["segment"], each["layer"], each["size"]) for each in layers] == [
        ("one", "base", Path(one).stat().st_size),
        ("two", "raw", Path(two).stat().st_size),
    ]
    manifest = command("manifest", "drives")["manifest"]
    assert [each["rerun_num_chunks"] for each in manifest] == [2, 2]
    own = [dataset["created_at"], dataset["updated_at"], segments[0]["rerun_last_updated_at"]]
    own += [layers[0]["registered_at"], manifest[0]["rerun_registration_time"]]
    assert all(TIME.fullmatch(each) for each in own)
    assert [(each["name"], each["kind"]) for each in command("entries")["entries"]] == [("drives", "dataset")]


def test_folders_are_registered_by_prefix(command: Command, tmp_path: Path) -> None:
    recording(tmp_path / "in", "one")
    recording(tmp_path / "in" / "deep", "two")
    made = command("register", "drives", str(tmp_path / "in"), "--prefix", "--create")
    assert sorted(each["segment"] for each in made["registered"]) == ["one", "two"]


def test_words_and_vectors_are_searched_without_the_client(command: Command, root: str, tmp_path: Path) -> None:
    chunks = texts(["an apple"], ["a pear"]), vectors([1.0, 0.0], [0.0, 1.0])
    command("register", "drives", str(write_recording(tmp_path / "one.rrd", "one", chunks)), "--create")
    with catalog_at(root, tmp_path) as catalog:
        dataset = command("datasets")["datasets"][0]["id"]
        create(catalog, dataset, "/log", TEXT)
        create(catalog, dataset, "/emb", VECTOR, vector={"num_sub_vectors": 1, "distance_metrics": 1})
    [found] = command("search", "drives", f"/log:{TEXT}", "--text", "apple")["results"]
    assert (found["rerun_segment_id"], found["timepoint"], found["instance"]) == ("one", 0, "an apple")
    [found] = command("search", "drives", f"/emb:{VECTOR}", "--vector", "0,1", "--limit", "1")["results"]
    assert (found["timepoint"], found["_distance"]) == (1, 0)
    maintained = command("maintain", "drives", "--retrain-indexes", "--clean-older-than", "7d")["datasets"]
    assert [(each["name"], len(each["done"])) for each in maintained] == [("drives", 3)]
    assert [each["name"] for each in command("maintain")["datasets"]] == ["drives", f"__bp_{dataset}"]


@pytest.mark.parametrize(
    ("arguments", "kind", "match"),
    [
        (["register", "none", "x.rrd"], "NotFound", "Entry name 'none' not found"),
        (["segments", "none"], "NotFound", "Entry name 'none' not found"),
        (["register", "none", "void", "--prefix"], "InvalidInput", "the folder does not exist"),
        (["search", "none", "/log:text"], "InvalidInput", "for words or for a vector"),
        (["search", "none", "log", "--text", "a"], "InvalidInput", "is not a component column"),
        (["search", "none", "/log:text", "--vector", "a"], "NotFound", "Entry name 'none' not found"),
        (["maintain", "none"], "NotFound", "Entry name 'none' not found"),
        (["maintain", "--clean-older-than", "x"], "InvalidInput", "--clean-older-than"),
    ],
)
def test_what_there_is_not_is_an_error(arguments: list[str], kind: str, match: str, command: Command) -> None:
    error = command(*arguments, code=1)["error"]
    assert error["kind"] == kind and match in error["what"]


def test_the_nearest_dataset_and_the_option_that_makes_one_are_named(command: Command, tmp_path: Path) -> None:
    one = recording(tmp_path / "in", "one")
    command("register", "drives", one, "--create")
    assert command("segments", "drive", code=1)["error"]["remedy"] == "did you mean 'drives'?"
    assert "--create makes the dataset" in command("register", "other", one, code=1)["error"]["remedy"]


def test_tables_for_people_name_the_same(root: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["catalog", "datasets", "--root", root]) == 0
    assert "there are no datasets of recordings" in capsys.readouterr().err
    assert run(["catalog", "register", "drives", recording(tmp_path, "one"), "--create", "--root", root]) == 0
    assert "1 recording registered with drives" in capsys.readouterr().out
    for name in ("datasets", "segments drives", "layers drives", "manifest drives"):
        assert run(["catalog", *name.split(), "--root", root]) == 0
        assert ("one" in capsys.readouterr().out) == (name != "datasets")
