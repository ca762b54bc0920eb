"""`render`: what a stack declares, as specs that declare the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployer.specs import load_lake
from tests.cli.conftest import Deployer
from tests.projects import make_project, table

LAKE = """\
kind: Variables
variables: { root: { default: lakes/dev }, team: { default: blue } }
stacks: { prod: { root: lakes/prod } }
---
kind: Instance
name: demo
root: ${root}
engine: embedded
tags: { team: "${team}", cost: "$${5}" }
---
kind: Overlay
stack: prod
target: table/air.planes
set: { online: false }
"""


@pytest.fixture
def stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = make_project(tmp_path / "project", {"lake.yaml": LAKE, "planes.yaml": table("planes")})
    (folder / "Pulumi.prod.yaml").write_text("config:\n  deployer:team: red\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    ("stack", "root", "team", "online"), [("dev", "lakes/dev", "blue", True), ("prod", "lakes/prod", "red", False)]
)
def test_it_declares_the_same_lake(
    deployer: Deployer, stacks: Path, tmp_path: Path, stack: str, root: str, team: str, online: bool
) -> None:
    ran = deployer("render", "--stack", stack)
    (tmp_path / "rendered.yaml").write_text(ran.out, encoding="utf-8")
    lake = load_lake(tmp_path, tmp_path / "rendered.yaml")
    assert (lake.instance.root, lake.instance.tags) == (root, {"team": team, "cost": "${5}"})
    assert lake.tables[0].online is online
    assert deployer("render", "--stack", stack, "--json").json["instance"]["root"] == root


def test_both_stacks_are_applied_side_by_side(deployer: Deployer, stacks: Path) -> None:
    for stack in ("dev", "prod"):
        assert deployer("up", "--yes", "--stack", stack).code == 0
    for stack in ("dev", "prod"):
        assert deployer("preview", "--exit-code", "--stack", stack).code == 0
    assert "put table online" not in deployer("preview", "--stack", "prod").out
    assert sorted(path.name for path in (stacks / "lakes").iterdir()) == ["dev", "prod"]


def test_a_misspelt_setting_is_said(deployer: Deployer, stacks: Path) -> None:
    (stacks / "Pulumi.dev.yaml").write_text("config:\n  deployer:taem: red\n", encoding="utf-8")
    ran = deployer("validate")
    assert ran.code == 1
    assert "did you mean deployer:team?" in ran.err
