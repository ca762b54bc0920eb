"""`deployer validate` and `deployer schema` as processes, on a project of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deployer.specs.schema.editor import editor_schema

PROJECT = "name: lakes\nruntime: python\nmain: stacks\nbackend:\n  url: file://.\n"
INSTANCE = "kind: Instance\nname: lake\nroot: lakes/lake\n"
TABLE = "---\nkind: Table\ndatabase: db\nname: t\ncolumns:\n  - {name: id, type: %s}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text(PROJECT)
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "__main__.py").write_text("")
    (tmp_path / "specs").mkdir()
    return tmp_path


def deployer(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "deployer", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}  # which folds lines
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_sound_specs_are_counted(project: Path) -> None:
    (project / "specs" / "lake.yaml").write_text(INSTANCE + TABLE % "int64")
    done = deployer(project, "validate")
    assert (done.returncode, done.stdout) == (0, "lake: 1 table in 1 file without a problem\n")
    assert json.loads(deployer(project, "validate", "--json").stdout) == {
        "instance": "lake",
        "tables": ["db.t"],
        "files": ["specs/lake.yaml"],
        "problems": [],
        "unread": [],
    }


def test_problems_are_lines_with_their_place(project: Path) -> None:
    (project / "specs" / "lake.yaml").write_text(INSTANCE + "colour: blue\n" + TABLE % "in64")
    done = deployer(project, "validate")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines()[:2] == [
        "specs/lake.yaml:4:1: unknown field `colour` of Instance; remove it, or use one of description, state, engine, "
        "clusters, notify, services, aws, tags",
        "specs/lake.yaml:10:22: unknown type `in64`; did you mean int64?",
    ]
    problems = json.loads(deployer(project, "validate", "--json").stdout)["error"]["problems"]
    assert [(problem["line"], problem["rule"]) for problem in problems] == [(4, "unknown-field"), (10, "unknown-type")]


def test_the_schema_is_printed_as_json(tmp_path: Path) -> None:
    done = deployer(tmp_path, "schema")
    assert done.returncode == 0
    assert json.loads(done.stdout) == editor_schema()
