"""`deployer search`, and the declaration of embedding functions in specs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Deployer
from tests.cli.conftest import deployer as deployer
from tests.projects import INSTANCE, make_project, table

EMBEDDING = "embedding: {function: 'words:vectors', column: note, vector: vector}\n"
INDEXES = "indexes: [{columns: [note], kind: inverted, stem: false, remove_stop_words: false, with_position: true}]\n"
SPEC = table("flights", "note: string", "vector: vector<float32, 3>", more=INDEXES + EMBEDDING)
NOTES = ("late by fog", "on time", "fog all day", "late again")
WORDS = "def vectors(texts):\n    return [[float(len(text)), 0.0, 1.0] for text in texts]\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: Any, deployer: Deployer) -> Path:
    """A project whose table has four rows; the current folder."""
    folder = make_project(tmp_path / "project", {"demo.yaml": INSTANCE, "flights.yaml": SPEC})
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "words", raising=False)
    assert deployer("up", "--yes").code == 0
    vectors = pa.array([[float(len(note)), 0.0, 1.0] for note in NOTES], pa.list_(pa.float32(), 3))
    pq.write_table(pa.table({"id": range(4), "note": NOTES, "vector": vectors}), folder / "rows.parquet")
    assert deployer("ingest", "flights", "rows.parquet").code == 0
    return folder


def ids(ran: Any) -> list[int]:
    return [row["id"] for row in ran.json["rows"]]


def test_words_and_vectors_are_searched(project: Path, deployer: Deployer) -> None:
    shown = deployer("search", "flights", "fog", "--type", "fts", "--columns", "id,note")
    assert shown.code == 0
    assert all(each in shown.out for each in ("late by fog", "fog all day", "_score"))
    assert "on time" not in shown.out
    assert ids(deployer("search", "flights", '"late again"', "--type", "fts", "--json")) == [3]
    np.save(project / "one.npy", np.array([7.0, 0.0, 1.0], np.float32))
    (project / "two.json").write_text(json.dumps([10, 0, 1]))
    (project / "three.txt").write_text("11.2, 0\n1")
    for file, nearest in (("one.npy", 1), ("two.json", 3), ("three.txt", 0)):
        assert ids(deployer("search", "flights", "--vector", file, "-n", "1", "--json"))[0] in (nearest, 2)
    both = deployer("search", "flights", "fog", "--vector", "one.npy", "--where", "id > 0", "--json")
    assert (both.json["type"], ids(both)[0]) == ("hybrid", 2)
    csv = deployer("search", "flights", "again", "--type", "fts", "--columns", "id", "--format", "csv")
    assert csv.out.splitlines()[1].startswith("3,")
    nothing = deployer("search", "flights", "snow", "--type", "fts")
    assert (nothing.code, "no row was found" in nothing.err) == (0, True)


def test_an_embedding_function_is_run_when_it_is_trusted(project: Path, deployer: Deployer) -> None:
    (project / "words.py").write_text(WORDS)
    refused = deployer("search", "flights", "ten chars.")
    assert (refused.code, "words" in sys.modules) == (3, False)
    assert 'allow it: connect(root, trusted_functions=["words:vectors"]), --trust-function words:vectors' in (
        " ".join(refused.err.split())
    )
    found = deployer("search", "flights", "ten chars.", "--trust-function", "words:vectors", "-n", "1", "--json")
    assert (found.json["type"], ids(found)) == ("vector", [3])


def test_bad_files_and_options_are_refused(project: Path, deployer: Deployer) -> None:
    (project / "short.txt").write_text("1 2")
    (project / "words.txt").write_text("one two")
    (project / "nested.json").write_text('{"a": [1]}')
    (project / "broken.npy").write_bytes(b"\x93NUMPY\x01\x00junk")
    cases = {
        "the query vector has 2 values, and the vectors of column 'vector' have 3": ("--vector", "short.txt"),
        "the file has no vector; give a .npy file": ("--vector", "words.txt"),
        "the query is of type dict": ("--vector", "nested.json"),
        "broken.npy: the file has no vector": ("--vector", "broken.npy"),
        "the vector cannot be read: No such file": ("--vector", "absent.npy"),
        "there is nothing to search": (),
        "--type fts takes words or a vector, and both are given": ("fog", "--vector", "short.txt", "--type", "fts"),
        "limit is 0": ("fog", "--type", "fts", "-n", "0"),
        "'os.system' is not the name of a function": ("fog", "--trust-function", "os.system"),
        "the metric is 'cosin'; did you mean cosine": ("--vector", "ok.txt", "--metric", "cosin"),
    }
    (project / "ok.txt").write_text("1 2 3")
    for message, arguments in cases.items():
        ran = deployer("search", "flights", *arguments)
        assert ran.code == 1
        assert message in " ".join(ran.err.split()), ran.err


def test_the_declaration_is_applied_found_as_drift_and_exported(project: Path, deployer: Deployer) -> None:
    spec = project / "specs" / "flights.yaml"
    assert deployer("preview", "--exit-code").code == 0
    spec.write_text(SPEC.replace("words:vectors", "models:words"))
    assert "embedding words:vectors of note for vector → models:words of note for vector" in deployer("preview").out
    assert deployer("up", "--yes").code == 0
    spec.write_text(SPEC.replace(EMBEDDING, ""))
    assert deployer("drift", "--write-spec").code in (0, 2)
    assert deployer("up", "--yes").code == 0
    assert "embedding" not in deployer("render").out
    assert deployer("preview", "--exit-code").code == 0


@pytest.mark.full
def test_no_command_but_a_search_imports_the_function(project: Path) -> None:
    """A module that ends the process when it is imported lies where Python finds it."""
    (project / "words.py").write_text("import os\nos._exit(97)\n")
    code = f"import sys; sys.path.insert(0, {str(project)!r}); from deployer.__main__ import main; sys.exit(main())"
    for command in (["validate"], ["preview"], ["render"], ["drift"], ["search", "flights", "fog", "--type", "fts"]):
        done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, cwd=project)
        assert done.returncode == 0, done.stdout + done.stderr
