"""`init`: a project that is applied unchanged, and nothing written where something is."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from deployer.app.diagnostics.machine import lake_provider
from deployer.app.starter.packaged import FILES, PROGRAM, packaged
from deployer.engine import read_project
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


def contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file below a folder, and every file in the archives among them."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield path.name, path.read_bytes()
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                yield from ((f"{path.name}/{name}", archive.read(name)) for name in archive.namelist())


def test_no_file_names_a_folder_of_this_machine(tmp_path: Path, deployer: Deployer) -> None:
    """The files are committed, and installed on other machines. The environment of these tests is outside of them."""
    deployer("init", str(tmp_path / "new"))
    folders = {tmp_path, REPOSITORY, Path(sys.prefix), Path(sys.base_prefix) / "bin", Path(tempfile.gettempdir())}
    folders |= {Path.home()} - {Path("/")}
    found = [
        (name, str(folder))
        for name, content in contents(tmp_path / "new")
        for folder in folders
        if f"{folder}/".encode() in content
    ]
    assert found == []
    project = yaml.safe_load((tmp_path / "new" / "Pulumi.yaml").read_text(encoding="utf-8"))
    assert "plugins" not in project and project["runtime"] == "python"


@pytest.fixture
def pulumi_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for the Pulumi CLI, alone on PATH but for the system's folders; writes what it gets, and fails."""
    (tmp_path / "bin").mkdir()
    pulumi = tmp_path / "bin" / "pulumi"
    told = tmp_path / "told"
    pulumi.write_text(f'#!/bin/sh\n[ "$1" = version ] && echo v3.250.0 && exit\necho "$PATH" > {told}\nexit 99\n')
    pulumi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.defpath}")
    return told


def test_the_pulumi_cli_finds_the_provider_beside_this_python(
    tmp_path: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch, pulumi_on_path: Path
) -> None:
    """Also where the environment is outside of the project, and not active."""
    deployer("init", str(tmp_path / "new"))
    monkeypatch.chdir(tmp_path / "new")
    assert deployer("preview").code == 1  # of the stand-in
    path = pulumi_on_path.read_text(encoding="utf-8").strip()
    assert shutil.which("pulumi-resource-lake", path=path) == str(Path(sys.executable).parent / "pulumi-resource-lake")


def test_the_pulumi_cli_is_not_started_without_the_provider(
    tmp_path: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch, pulumi_on_path: Path
) -> None:
    deployer("init", str(tmp_path / "new"))
    monkeypatch.chdir(tmp_path / "new")
    with Path("Pulumi.yaml").open("a", encoding="utf-8") as file:
        file.write("plugins: {providers: [{name: lake, path: .venv/bin}]}\n")
    ran = deployer("preview")
    assert (ran.code, "new/.venv/bin: no executable pulumi-resource-lake there" in ran.err) == (1, True), ran.err
    assert not pulumi_on_path.exists()


@pytest.mark.parametrize(
    ("case", "status", "said"),
    [
        pytest.param("active", "ok", "pulumi-resource-lake", id="on-path"),
        pytest.param("", "warning", "a plain `pulumi up` does not", id="beside-this-python"),
        pytest.param("named", "wrong", "no executable pulumi-resource-lake there", id="named-and-not-there"),
        pytest.param("gone", "wrong", "the provider plugin pulumi-resource-lake is not installed", id="nowhere"),
        pytest.param("no-cli", "not applicable", "the Pulumi CLI is not on PATH", id="without-the-cli"),
    ],
)
def test_doctor_says_how_the_pulumi_cli_finds_the_provider(
    case: str,
    status: str,
    said: str,
    tmp_path: Path,
    deployer: Deployer,
    monkeypatch: pytest.MonkeyPatch,
    pulumi_on_path: Path,
) -> None:
    deployer("init", str(tmp_path / "new"))
    folder, here = tmp_path / "new", str(Path(sys.executable).parent)
    match case:
        case "active":
            monkeypatch.setenv("PATH", f"{here}{os.pathsep}{os.environ['PATH']}")
        case "named":
            with (folder / "Pulumi.yaml").open("a", encoding="utf-8") as file:
                file.write("plugins: {providers: [{name: lake, path: .venv/bin}]}\n")
        case "gone":
            monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
        case "no-cli":
            monkeypatch.setenv("PATH", os.defpath)
    found = lake_provider(read_project(folder), "auto")
    assert (found.status, said in found.what) == (status, True), found
    assert bool(found.remedy) is (status in ("warning", "wrong"))
    if case == "":
        assert found.remedy == f"source {here}/activate, or put {here} on PATH"


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
    assert (ran.code, "Not a directory; check the path" in ran.err) == (1, True)


def test_a_root_that_cannot_be_made_is_told_in_words(project: Path, deployer: Deployer) -> None:
    (project / "lakes").write_text("", encoding="utf-8")
    ran = deployer("up", "--yes")
    assert (ran.code, "the root cannot be made: " in ran.err) == (1, True)


def test_the_program_is_a_call_of_the_package_as_in_this_repository() -> None:
    """So that an upgrade of deployer changes what every project declares."""
    assert [target for target in FILES.values() if target.startswith("stacks/")] == ["stacks/__main__.py"]
    assert {path.name for path in (REPOSITORY / "stacks").glob("*.py")} == PROGRAM.keys() == {"__main__.py"}
    program = packaged(PROGRAM["__main__.py"])
    assert program == (REPOSITORY / "stacks" / "__main__.py").read_bytes()
    lines = [line for line in program.decode().splitlines() if line and not line.startswith('"""')]
    assert lines == ["from deployer.components import declare_project", "declare_project()"]


def test_every_packaged_file_is_written() -> None:
    folder = Path(str(files("deployer.app.starter"))) / "files"
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == set(FILES)
