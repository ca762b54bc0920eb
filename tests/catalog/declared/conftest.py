"""Projects with a dataset of recordings, whose commands run in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deployer.catalog.datasets.model.record import DatasetRecord
from deployer.catalog.datasets.model.registry import Datasets
from deployer.cli.main import run
from deployer.state import open_store
from tests.catalog.datasets.recordings import write_recording
from tests.catalog.datasets.test_search import texts
from tests.projects import INSTANCE, make_project

ROOT = "lakes/demo"
COLUMN = "/log:TextLog:text"
DRIVES = """kind: Dataset
name: drives
sources: [{prefix: recordings}]
"""
INDEX = f"search_indexes: [{{column: '{COLUMN}', timeline: tick, kind: text}}]\n"


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
    def call(*arguments: str) -> Ran:
        capsys.readouterr()
        code = run(arguments)
        return Ran(code, *capsys.readouterr())

    return call


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the dataset `drives` of the folder `recordings`, which has none yet; the current folder."""
    folder = make_project(tmp_path / "project", {"demo.yaml": INSTANCE, "drives.yaml": DRIVES})
    (folder / "recordings").mkdir()
    monkeypatch.chdir(folder)
    return folder


def declare(project: Path, text: str) -> None:
    """Writes the dataset's spec."""
    (project / "specs/drives.yaml").write_text(text, encoding="utf-8")


def record_drive(project: Path, segment: str, text: str = "a dog", folder: str = "recordings") -> Path:
    """Writes a recording with a text in `/log`."""
    return write_recording(project / folder / f"{segment}.rrd", segment, [texts([text])])


@contextmanager
def datasets() -> Iterator[Datasets]:
    """The datasets of the project in the current folder."""
    with closing(open_store(ROOT)) as store:
        yield Datasets(store, str(Path(ROOT).absolute()))


def drives() -> DatasetRecord:
    """The record of the dataset `drives`."""
    with datasets() as found:
        return found.by_name("drives")


def changes(ran: Ran) -> list[str]:
    """The kinds of the changes of a plan that was printed as JSON."""
    plan = ran.json.get("plan", ran.json)
    return [change["kind"] for resource in plan["resources"] for change in resource["changes"]]
