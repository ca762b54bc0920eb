"""A shell's request, answered by a process of its own as a shell starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Complete = Callable[..., list[str]]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where this test's completions are kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "deployer" / "completion"


def asked_by_bash(line: str) -> dict[str, str]:
    """The environment that Bash makes for a line with the cursor at its end."""
    words = line.split(" ")
    return {
        **os.environ,
        "_DEPLOYER_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }


@pytest.fixture
def complete() -> Complete:
    """Completes `deployer …` in the current folder, and returns the names."""

    def call(line: str) -> list[str]:
        command = [str(Path(sys.executable).with_name("deployer"))]
        done = subprocess.run(command, env=asked_by_bash(line), capture_output=True, text=True, check=False)
        assert done.returncode == 0 and not done.stderr, done.stderr
        return done.stdout.splitlines()

    return call
