"""`init`: a project that is applied unchanged, and nothing written where something is."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from deployer.starter.write import FILES, PROGRAM, packaged
from tests.cli.conftest import Deployer
from tests.projects import REPOSITORY, table


@pytest.mark.parametrize("name", ["my lake 1", "2nd", "plain"])
def test_the_project_is_applied_unchanged(
    deployer: Deployer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert deployer("init", str(tmp_path / name)).code == 0
    monkeypatch.chdir(tmp_path / name)
    assert deployer("validate").code == 0
    for stack in ("dev", "prod"):
        assert deployer("up", "--yes", "--stack", stack).code == 0
        assert deployer("preview", "--exit-code", "--stack", stack).code == 0
    assert (Path("lakes/dev").is_dir(), Path("lakes/prod").is_dir()) == (True, True)
    assert "deletion_protection" in deployer("render").out
    assert "deletion_protection" not in deployer("render", "--stack", "prod").out


def test_the_printed_commands_load_the_example_data(
    deployer: Deployer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = [line.strip() for line in deployer("init", str(tmp_path / "new")).out.partition("now: ")[2].splitlines()]
    assert printed[0] == f"cd {tmp_path / 'new'}" and len(printed) == 4
    monkeypatch.chdir(tmp_path / "new")
    for command in printed[1:]:
        ran = deployer(*command.removeprefix("deployer ").split(), *(["--yes"] if command.endswith(" up") else []))
        assert ran.code == 0, ran
    assert "Harbour" in ran.out
    rows = len(Path("data/trips.csv").read_text(encoding="utf-8").splitlines()) - 1
    assert len(deployer("query", "trips", "--json", "--limit", "0").json["rows"]) == rows


def test_specs_in_subfolders_are_read(deployer: Deployer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deployer("init", str(tmp_path / "new"))
    monkeypatch.chdir(tmp_path / "new")
    Path("specs/sales/north").mkdir(parents=True)
    Path("specs/sales/north/orders.yaml").write_text(table("orders", database="sales"), encoding="utf-8")
    ran = deployer("validate", "--json").json
    assert sorted(ran["tables"]) == ["demo.trips", "sales.orders"] and ran["unread"] == []


def test_the_provider_is_found_where_the_requirements_are_installed(tmp_path: Path, deployer: Deployer) -> None:
    """The file is committed, so it names no folder of this machine."""
    deployer("init", str(tmp_path / "new"), "--name", "lake")
    project = yaml.safe_load((tmp_path / "new" / "Pulumi.yaml").read_text(encoding="utf-8"))
    assert project["name"] == "lake"
    assert project["plugins"]["providers"] == [{"name": "lake", "path": ".venv/bin"}]


def test_the_pulumi_cli_is_not_started_without_the_provider(
    tmp_path: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployer("init", str(tmp_path / "new"))
    (tmp_path / "pulumi").write_text("#!/bin/sh\nexit 99\n", encoding="utf-8")
    (tmp_path / "pulumi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path / "new")
    ran = deployer("preview")
    assert (ran.code, "new/.venv/bin: no executable pulumi-resource-lake there" in ran.err) == (1, True), ran.err


@pytest.mark.parametrize("inside", [".git", ".venv"])
def test_what_is_no_part_of_a_project_may_be_there(tmp_path: Path, deployer: Deployer, inside: str) -> None:
    (tmp_path / inside).mkdir()
    assert deployer("init", str(tmp_path), "--name", "lake").code == 0


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path, deployer: Deployer) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    ran = deployer("init", str(tmp_path))
    assert (ran.code, [path.name for path in tmp_path.iterdir()]) == (3, ["notes.txt"])
    assert "not empty: notes.txt" in ran.err


def test_a_folder_that_cannot_be_made_is_told_in_words(tmp_path: Path, deployer: Deployer) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    ran = deployer("init", str(tmp_path / "file" / "new"))
    assert (ran.code, "Not a directory; look at the path" in ran.err) == (1, True)


def test_a_root_that_cannot_be_made_is_told_in_words(project: Path, deployer: Deployer) -> None:
    (project / "lakes").write_text("", encoding="utf-8")
    ran = deployer("up", "--yes")
    assert (ran.code, "the root cannot be made: " in ran.err) == (1, True)


def test_the_program_is_the_one_of_this_repository() -> None:
    assert PROGRAM.keys() == {path.name for path in (REPOSITORY / "stacks").glob("*.py")}
    for own, source in PROGRAM.items():
        assert packaged(source) == (REPOSITORY / "stacks" / own).read_bytes()


def test_every_packaged_file_is_written() -> None:
    folder = Path(str(files("deployer.starter"))) / "files"
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == set(FILES)
