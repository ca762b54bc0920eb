"""Modules of a checkout that stand in the current folder: not imported by deployer, nor by what it starts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.projects import REPOSITORY

#: What Python, deployer and its libraries import early or late.
NAMES = ("__future__", "threading", "typing", "contextlib", "atexit", "yaml", "rich", "typer", "json", "pip", "pyarrow")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with hostile modules, each of which leaves a file `ran` when it is imported."""
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write(__name__)\n")
    return tmp_path


def run_in(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env=kept | environment, capture_output=True, text=True, check=False, timeout=60
    )


def test_the_current_folder_is_not_imported_from(checkout: Path) -> None:
    """F33: `python -m deployer` ran a `yaml.py` of the branch."""
    ran = run_in(checkout, "-m", "deployer", "validate")
    assert (ran.returncode, "no Pulumi.yaml found" in ran.stderr) == (1, True), ran.stderr
    assert not (checkout / "ran").exists()


@pytest.mark.parametrize("safe", ["-P", "PYTHONSAFEPATH", "script"])
def test_a_module_of_the_name_is_passed_over_where_the_path_is_safe(safe: str, checkout: Path) -> None:
    """F33: only the interpreter can prevent that `python -m deployer` finds a `deployer.py` of the branch."""
    (checkout / "deployer.py").write_text((checkout / "yaml.py").read_text(encoding="utf-8"), encoding="utf-8")
    if safe == "script":
        script = Path(sys.executable).with_name("deployer")
        ran = subprocess.run([script, "--version"], cwd=checkout, capture_output=True, text=True, check=False)
    elif safe == "-P":
        ran = run_in(checkout, "-P", "-m", "deployer", "--version")
    else:
        ran = run_in(checkout, "-m", "deployer", "--version", PYTHONSAFEPATH="1")
    assert (ran.returncode, ran.stdout.startswith("deployer ")) == (0, True), ran.stderr
    assert not (checkout / "ran").exists()


def test_processes_that_deployer_starts_have_a_safe_path() -> None:
    """F33: a worker, pip and whatever else is started by `sys.executable` imports nothing from the current folder."""
    started = 0
    for file in (REPOSITORY / "deployer").rglob("*.py"):
        for found in re.finditer(r"\(?\[?\*?\(?sys\.executable, (\"[^\"]*\")", file.read_text(encoding="utf-8")):
            started += 1
            assert found[1] == '"-P"', file
    assert started >= 2


@pytest.mark.spark
def test_workers_of_spark_have_a_safe_path(spark: SparkSession, checkout: Path) -> None:
    """F33: Spark starts its workers with `python -m`, in the folder of the command."""

    def seen(_: int) -> tuple[bool, list[str]]:
        import sys

        return bool(sys.flags.safe_path), sys.path

    [(safe, path)] = spark.sparkContext.parallelize([0], 1).map(seen).collect()
    assert safe
    assert "" not in path
