"""Modules under the names that programs and scripts of earlier releases import them by."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from deployer.former_names import FORMER
from tests.archives import unpack


@pytest.mark.parametrize("former", [name for name, present in FORMER.items() if " " not in present])
def test_a_former_name_is_the_present_module(former: str) -> None:
    present = import_module(FORMER[former])
    spec = present.__spec__
    with pytest.warns(DeprecationWarning, match=f"{former} is called {FORMER[former]} now"):
        sys.modules.pop(former, None)
        found = import_module(former)
    assert found is present and found.__spec__ is spec and found.__name__ == FORMER[former]


def test_a_module_that_was_parted_has_the_names_of_its_parts() -> None:
    code = "from deployer.compute.aws_access import JOB_LOGS, most_workers, timeout_minutes; "
    code += "from deployer.compute.aws_alarms import Told, failed_runs; print(JOB_LOGS, Told)"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_all_that_an_earlier_program_imports_is_there(tmp_path: Path) -> None:
    """The program that `init` wrote before `deployer.components`; a full test applies a stack with it."""
    unpack(Path(__file__).parent / "stacks" / "program_4c7e83a.tar.gz", tmp_path)
    trees = [ast.parse(program.read_text(encoding="utf-8")) for program in tmp_path.rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    lines = {ast.unparse(node) for node in nodes if str(node.module).startswith("deployer")}
    assert len(lines) > 10
    subprocess.run([sys.executable, "-W", "ignore", "-c", "\n".join(sorted(lines))], check=True)


def test_a_module_of_a_package_that_moved_is_not_imported_twice() -> None:
    code = "import deployer.services.metasync.targets.target as former; "
    code += "import deployer.services.kinds.metasync.targets.target as present; print(former is present)"
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "True\n"


def test_programs_of_earlier_releases_import_them() -> None:
    code = "from deployer.graph import build_graph; from deployer.compute import emr_flow; print(emr_flow.EMR_TAG)"
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout and not ended.stderr


def test_a_name_that_never_was_is_missing() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'deployer\.grahp'"):
        import_module("deployer.grahp")
