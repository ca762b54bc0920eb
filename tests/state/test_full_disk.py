"""A store on a disk that is full: a commit is refused at once, and succeeds when there is room again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PRIVATE = ["unshare", "--mount", "--map-root-user"]


def can_mount(folder: Path) -> bool:
    """Returns whether a process may mount a disk that no other process sees."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*PRIVATE, "mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True).returncode == 0


def test_commit_on_a_full_disk_changes_nothing_and_can_be_repeated(tmp_path: Path) -> None:
    if not can_mount(tmp_path):
        pytest.skip("this machine lets no process mount a disk of its own")
    command = [*PRIVATE, sys.executable, "-m", "tests.state.full_disk", str(tmp_path)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert found["message"].endswith(
        "state.db: the disk is full, and the state store was not changed; free some space, then run the command again"
    )
    # The log has the table's creation, all commits that succeeded, and the one that was repeated; nothing else.
    assert found["version"] == found["commits"] + 2 and found["files"] == found["commits"] + 1 > 1
