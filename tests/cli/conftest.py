"""Commands run in this process, as `main` runs them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.projects import INSTANCE, applied_project, make_project, table

TWO_TABLES = {
    "demo.yaml": INSTANCE,
    "flights.yaml": table("flights", "delay: int32"),
    "planes.yaml": table("planes"),
}


@dataclass(frozen=True)
class Ran:
    """How a command ended: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Deployer = Callable[..., Ran]


@pytest.fixture
def deployer(capsys: pytest.CaptureFixture[str]) -> Deployer:
    """Runs `deployer ARGUMENTS` where the test stands."""
    from deployer.cli.main import run

    def call(*arguments: str) -> Ran:
        capsys.readouterr()
        code = run(arguments)
        return Ran(code, *capsys.readouterr())

    return call


@pytest.fixture(scope="module")
def four_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of four tables, applied; tests work on copies."""
    from deployer.cli.main import run
    from tests.cli.target_project import SPECS

    folder = make_project(tmp_path_factory.mktemp("four") / "project", SPECS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run(["up", "--yes"]) == 0
    return folder


@pytest.fixture
def four_applied(four_tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project of four tables, applied; the current folder."""
    folder = shutil.copytree(four_tables, tmp_path / "project")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the tables air.flights and air.planes, nothing applied yet; the current folder."""
    folder = make_project(tmp_path / "project", TWO_TABLES)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project of `project`, applied; the current folder."""
    folder = applied_project(tmp_path / "project", TWO_TABLES)
    monkeypatch.chdir(folder)
    return folder
