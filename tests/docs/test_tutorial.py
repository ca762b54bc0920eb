"""The tutorial is true: each of its commands runs, in order, and prints what the page shows."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.tutorial import Command, Reader, fits, steps_of
from tests.projects import CACHES, REPOSITORY

TUTORIAL = REPOSITORY / "docs" / "tutorial.md"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of the repository as far as the tutorial needs it, after `make quickstart` has unpacked the data."""
    folder = tmp_path / "deployer"
    folder.mkdir()
    for name in ("Pulumi.yaml", ".gitignore"):
        shutil.copy(REPOSITORY / name, folder / name)
    for name in ("stacks", "specs"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=CACHES)
    spec = importlib.util.spec_from_file_location("quickstart", REPOSITORY / "examples" / "quickstart.py")
    assert spec is not None and spec.loader is not None
    quickstart = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(quickstart)
    quickstart.unpack_flights(folder / "build" / "quickstart" / "data")
    return folder


@pytest.fixture
def reader(clone: Path, tmp_path: Path) -> Reader:
    """Somebody with nothing but the environment's commands and Git."""
    (tmp_path / "home").mkdir()
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        **{f"GIT_{who}_{what}": f"ann{at}" for who in ("AUTHOR", "COMMITTER") for what, at in _WHO},
    }
    for command in ("init -q -b main", "add .", "commit -q -m Start"):
        subprocess.run(["git", *command.split()], cwd=clone, env=environment, check=True)
    return Reader(clone, environment)


_WHO = (("NAME", ""), ("EMAIL", "@example.com"))


@pytest.mark.full
def test_the_tutorial_is_true(reader: Reader) -> None:
    steps = [*steps_of(TUTORIAL.read_text(encoding="utf-8"))]
    assert sum(isinstance(step, Command) for step in steps) > 20
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        output = reader.take(step)
        if isinstance(step, Command):
            where = f"{TUTORIAL.name}:{step.line}: {step.text}"
            told = "error: " in step.shown or (isinstance(following, Command) and following.text == "echo $?")
            assert reader.code == 0 or told, f"{where}\nends with {reader.code}:\n{output}"
            assert fits(step.shown, output), f"{where}\nshows\n{step.shown}\nand prints\n{output}"


@pytest.mark.parametrize(
    ("shown", "output", "expected"),
    [
        pytest.param("a\nb\n", "a\nb\n", True, id="the same"),
        pytest.param("a\nb\n", "a\nc\n", False, id="another line"),
        pytest.param("a\n", "a\nb\n", False, id="more than is shown"),
        pytest.param("a\nb\n", "a\n", False, id="less than is shown"),
        pytest.param("a\n…\nd\n", "a\nb\nc\nd\n", True, id="lines left out"),
        pytest.param("a\n…\nd\n", "a\nb\nc\n", False, id="the end is not left out"),
        pytest.param("a …\n", "a b\n", True, id="text left out"),
        pytest.param("at 2026-01-01 10:00:00\n", "at 2031-12-31 23:59:59\n", True, id="times"),
        pytest.param("done (0.1 s)\n", "done (12.3 s)\n", True, id="durations"),
        pytest.param("3 rows\n", "4 rows\n", False, id="numbers"),
        pytest.param("", "", True, id="nothing"),
        pytest.param("", "a\n", False, id="something where nothing is shown"),
    ],
)
def test_shown_output_is_compared(shown: str, output: str, expected: bool) -> None:
    assert fits(shown, output) is expected
