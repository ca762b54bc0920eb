"""Commands run in this process, as `main` runs them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.projects import INSTANCE, make_project, table


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


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the tables air.flights and air.planes, nothing applied yet; the current folder."""
    specs = {"demo.yaml": INSTANCE, "flights.yaml": table("flights", "delay: int32"), "planes.yaml": table("planes")}
    folder = make_project(tmp_path / "project", specs)
    monkeypatch.chdir(folder)
    return folder
