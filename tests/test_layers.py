"""Imports go down the layers that pyproject.toml lists, and start-up stays light."""

from __future__ import annotations

import subprocess
import sys

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from tests.package_importers import modules
from tests.projects import REPOSITORY


def test_imports_go_down_the_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert lint_imports(config_filename="pyproject.toml", no_cache=True) == EXIT_STATUS_SUCCESS


def test_no_module_is_longer_than_350_lines() -> None:
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in modules().items()}
    assert not {name: length for name, length in lengths.items() if length > 350}


def test_commands_load_what_they_need_only_when_they_run() -> None:
    code = "import sys, deployer.cli.main; print(*{'.'.join(name.split('.')[:2]) for name in sys.modules})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name for name in ended.stdout.split() if name.startswith("deployer.")}
    assert loaded == {"deployer.cli", "deployer.errors", "deployer.former_names", "deployer.platform"}


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        pytest.param("deployer.cli.main", ("pulumi", "lance", "pyspark", "pyarrow", "datafusion", "grpc"), id="cli"),
        pytest.param("deployer.app", ("pulumi", "lance", "pyspark", "pyarrow", "rich", "typer"), id="app"),
        pytest.param("deployer.engine", ("pulumi", "grpc"), id="engine"),
        pytest.param("deployer.specs", ("lance", "pulumi", "pyspark"), id="specs"),
        pytest.param("deployer.state", ("lance", "pulumi", "pyspark"), id="state"),
        pytest.param("deployer.components", ("pulumi_aws", "lance", "pyspark"), id="components"),
    ],
)
def test_importing_it_loads_nothing_heavy(module: str, heavy: tuple[str, ...]) -> None:
    code = f"import sys, {module}; print(*sorted({{name.split('.')[0] for name in sys.modules}} & set({heavy!r})))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == []
