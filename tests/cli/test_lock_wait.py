"""`--lock-timeout`: a run waits for another process that holds the stack, and says for whom."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Deployer

pytestmark = pytest.mark.full

#: Holds the stack until a line comes.
HOLDER = """
import sys
from pathlib import Path
from deployer.app.stack.engine import held
from deployer.app.workspace import open_workspace

workspace = open_workspace(Path(sys.argv[1]), "dev", None)
with held(workspace, workspace.lake()):
    print("held", flush=True)
    sys.stdin.readline()
"""


def hold(project: Path) -> subprocess.Popen[str]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(project)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


@pytest.fixture
def holder(project: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the stack until the test is over."""
    process = hold(project)
    yield process
    process.communicate("\n", timeout=300)


COMMANDS = [pytest.param(("up", "--yes"), id="up"), pytest.param(("destroy", "--yes"), id="destroy")]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_held_stack_is_waited_for(
    project: Path, deployer: Deployer, holder: subprocess.Popen[str], command: tuple[str, ...]
) -> None:
    waiting = subprocess.Popen(
        [sys.executable, "-m", "deployer", *command, "--lock-timeout", "5m"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "300"},
    )
    assert waiting.stderr is not None
    said = waiting.stderr.readline()
    assert f"(process {holder.pid})" in said
    assert "waiting for it, up to 5m" in said
    assert holder.stdin is not None
    holder.stdin.write("\n")
    holder.stdin.flush()
    _, rest = waiting.communicate(timeout=300)
    assert (waiting.returncode, "waiting" in rest) == (0, False), rest


@pytest.mark.parametrize("command", COMMANDS)
def test_it_is_refused_when_the_time_is_over(
    project: Path, deployer: Deployer, holder: subprocess.Popen[str], command: tuple[str, ...]
) -> None:
    ran = deployer(*command, "--lock-timeout", "1s")
    assert ran.code == 1
    assert "another run holds the stack: " in ran.err
    assert f"(process {holder.pid})" in ran.err
    assert "still after 1s" in ran.err
    at_once = deployer(*command)
    assert (at_once.code, "waiting" in at_once.err) == (1, False)
    assert not (project / "lakes").exists()


@pytest.mark.parametrize("text", ["5", "m", "-1s", "1d", "1.5m"])
def test_a_length_of_time_has_a_unit(project: Path, deployer: Deployer, text: str) -> None:
    ran = deployer("up", "--yes", f"--lock-timeout={text}")
    assert ran.code == 1
    assert f"--lock-timeout: '{text}' is not a valid duration; write it as 90s, 5m or 1h" in ran.err
