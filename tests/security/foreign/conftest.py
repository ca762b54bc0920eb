"""A project that was applied and loaded by the commands themselves, made once and copied for each test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Deployer, Ran, deployer
from tests.projects import INSTANCE, make_project, table

__all__ = ["Deployer", "Ran", "deployer"]

LOADED = ("flights", "planes")


@pytest.fixture(scope="session")
def applied_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables air.flights, air.planes (three rows each, keyed) and air.notes (three rows, no keys) of one stack."""
    from deployer.cli.main import run

    specs = {
        "demo.yaml": INSTANCE,
        "flights.yaml": table("flights", "delay: int32"),
        "planes.yaml": table("planes"),
        "notes.yaml": "kind: Table\ndatabase: air\nname: notes\ncolumns:\n  - {name: text, type: string}\n",
    }
    folder = make_project(tmp_path_factory.mktemp("applied") / "project", specs)
    (folder / "flights.csv").write_text("id,delay\n1,5\n2,\n3,7\n")
    (folder / "planes.csv").write_text("id\n1\n2\n3\n")
    (folder / "notes.csv").write_text("text\na\nb\nc\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run(["up", "--yes", "--json"]) == 0
        for name in ("flights", "planes", "notes"):
            assert run(["ingest", name, f"{name}.csv", "--json"]) == 0
    return folder


@pytest.fixture
def project(applied_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, which is the current folder."""
    folder = tmp_path / "project"
    shutil.copytree(applied_once, folder, symlinks=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def root(project: Path) -> Path:
    """Where the lake is."""
    return project / "lakes" / "demo"
