"""`up` that is killed (SIGKILL) while it applies a dataset: the next one ends it, and nothing is there twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deployer.catalog.datasets.declared.live import live_of
from tests.catalog.declared.conftest import DRIVES, INDEX, Deployer, changes, datasets, declare, drives, record_drive
from tests.catalog.declared.test_up import blueprint

pytestmark = pytest.mark.full

POINTS = (
    "catalog:dataset-created",
    "catalog:dataset-declared",
    "catalog:dataset-blueprint-registered",
    "catalog:dataset-changed",
    "catalog:before-registering",
    "catalog:after-registering",
    "catalog:before-naming-index",
    "catalog:dataset-index-built",
)


@pytest.mark.parametrize("point", POINTS)
def test_an_up_that_is_killed_is_ended_by_the_next(project: Path, deployer: Deployer, point: str) -> None:
    blueprint(project, "first")
    declare(project, DRIVES + INDEX + "default_blueprint: drives.rbl\n")
    record_drive(project, "one")
    killed = subprocess.run(
        [sys.executable, "-m", "deployer", "up", "--yes"],
        cwd=project,
        env={**os.environ, "DEPLOYER_FAILPOINT": point},
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert deployer("up", "--yes").code == 0
    record = drives()
    assert (record.default_blueprint, record.layers.rows) == ("first", 1)
    assert [each.column for each in record.searches] == [("/log", "TextLog:text")]
    assert live_of(record).owner.endswith("/dev")
    assert changes(deployer("preview", "--format", "json")) == []
    assert deployer("drift").code == 0
    with datasets() as found:
        assert [each.name for each in found.all() if each.kind == "dataset"] == ["drives"]


def test_a_deletion_that_is_killed_is_ended_by_the_next(project: Path, deployer: Deployer) -> None:
    record_drive(project, "one")
    assert deployer("up", "--yes").code == 0
    (project / "specs/drives.yaml").unlink()
    up = [sys.executable, "-m", "deployer", "up", "--yes", "--allow-destroy", "dataset/drives"]
    environment = {**os.environ, "DEPLOYER_FAILPOINT": "catalog:before-removing-files"}
    killed = subprocess.run(up, cwd=project, env=environment, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert deployer("up", "--yes").code == 0
    assert changes(deployer("preview", "--format", "json")) == []
    with datasets() as found:
        assert list(found.all()) == []
