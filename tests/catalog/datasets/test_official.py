"""Datasets of recordings by the official client: the same rows and errors as from Rerun's own server, and what comes of
each documented call and deprecated name."""

from __future__ import annotations

import json
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from deployer.catalog.serving.server import served
from deployer.state import create_store
from tests.catalog.test_official_client import LATER, PYTHON

PROGRAM = Path(__file__).with_name("client_program.py")
DOCUMENTED = Path(__file__).with_name("documented_program.py")
OUTCOMES = Path(__file__).parents[1] / "files" / "dataset_outcomes.json"


@pytest.mark.full
@pytest.mark.skipif(not PYTHON.exists(), reason="make rerun-client makes the environment of the client")
@pytest.mark.parametrize("seed", range(3))
def test_random_recordings_are_read_as_by_reruns_own_server(seed: int, tmp_path: Path) -> None:
    root = str(tmp_path / "lake")
    with closing(create_store(root)) as store, served(store, root) as url:
        command = [str(PYTHON), str(PROGRAM), url, str(tmp_path), str(seed)]
        done = subprocess.run(command, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout.splitlines()[-1])
    assert {name: value for name, value in found.items() if name.startswith("differs")} == {}
    rows = found["rows"]
    assert isinstance(rows.pop("segments by a key that is not there"), str)
    assert isinstance(rows.pop("segments by another key"), int | str)
    assert all(type(count) is int and count > 0 for count in rows.values()), rows
    assert found["results"] == [["", False], ["s0", True], ["s1", True]]
    assert found["search"] == {
        "listed": 1,
        "deprecated": 1,
        "columns": [
            "rerun_segment_id",
            "rerun_segment_layer",
            "chunk_id",
            "timepoint",
            "instance_id",
            "instance",
            "_score",
        ],
        "rows": ["s1"],
        "limited": 1,
        "unknown": "LookupError",
        "vector": "RuntimeError",
        "unknown index": "RuntimeError",
        "maintained": True,
        "deleted": 1,
        "left": 0,
    }
    assert (found["missing"], found["empty name"]) == ("ValueError", "ValueError")
    assert found["wait"] and found["good"] == ["s0", "s1"]
    assert (found["taken"], found["renamed"], found["old name"]) == ("AlreadyExistsError", True, "LookupError")
    assert (found["changed"], found["left"], found["deleted"]) == ("Exception", ["other"], "NotFoundError")


@pytest.mark.full
@pytest.mark.skipif(not PYTHON.exists(), reason="make rerun-client makes the environment of the client")
def test_each_documented_call_and_deprecated_name_for_datasets(tmp_path: Path, update_golden: bool) -> None:
    found = outcomes(PYTHON, tmp_path)
    if update_golden:
        OUTCOMES.write_text(json.dumps(found, indent=1) + "\n")
    assert found == json.loads(OUTCOMES.read_text())
    assert found["not used"] == []


@pytest.mark.full
@pytest.mark.parametrize("version", LATER)
def test_clients_of_later_releases_do_the_same_with_datasets_but_for_what_is_listed(
    version: str, tmp_path: Path, update_golden: bool
) -> None:
    if not LATER[version].exists():
        pytest.skip("make rerun-clients makes the environments of later clients")
    file, known = OUTCOMES.with_stem(f"dataset_outcomes-{version}"), json.loads(OUTCOMES.read_text())
    found = outcomes(LATER[version], tmp_path)
    differences = {name: each for name, each in found.items() if each != known[name]}
    if update_golden:
        file.write_text(json.dumps(differences, indent=1) + "\n")
    assert differences == json.loads(file.read_text())


def outcomes(python: Path, folder: Path) -> dict[str, Any]:
    """Returns what comes of each documented call for datasets in the environment of a client."""
    root = str(folder / "lake")
    with closing(create_store(root)) as store, served(store, root) as url:
        command = [str(python), str(DOCUMENTED), url, str(folder)]
        done = subprocess.run(command, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
