"""Lakes that tests of hostile content begin with: made once by the commands themselves, and copied for each test."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Deployer, Ran, deployer
from tests.projects import INSTANCE, make_project, table

__all__ = ["Deployer", "Ran", "deployer"]

TABLES = ("flights", "planes")


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose tables air.flights and air.planes are applied and hold three rows each, as `copied` copies it."""
    from deployer.cli.main import run

    specs = {"demo.yaml": INSTANCE, "flights.yaml": table("flights", "delay: int32"), "planes.yaml": table("planes")}
    folder = make_project(tmp_path_factory.mktemp("made") / "project", specs)
    (folder / "flights.csv").write_text("id,delay\n1,5\n2,\n3,7\n")
    (folder / "planes.csv").write_text("id\n1\n2\n3\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run(["up", "--yes", "--json"]) == 0
        for name in TABLES:
            assert run(["ingest", name, f"{name}.csv", "--json"]) == 0
    return folder


@pytest.fixture
def copied(made_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Copies the project into a folder of that name, and makes it the current one."""

    def copy(name: str = "project") -> Path:
        folder = tmp_path / name
        shutil.copytree(made_once, folder, symlinks=True)
        monkeypatch.chdir(folder)
        return folder

    return copy


@pytest.fixture
def project(copied: Callable[[str], Path]) -> Path:
    return copied("project")


@pytest.fixture
def root(project: Path) -> Path:
    """Where the lake is."""
    return project / "lakes" / "demo"


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder that is nobody's business; the test fails when anything in it changed."""
    folder = tmp_path / "outside"
    (folder / "deep").mkdir(parents=True)
    (folder / "keep.txt").write_text("keep")
    (folder / "deep" / "keep.lance").write_text("keep")
    before = {path.relative_to(folder): path.is_dir() or path.read_bytes() for path in folder.rglob("*")}
    yield folder
    assert {path.relative_to(folder): path.is_dir() or path.read_bytes() for path in folder.rglob("*")} == before
