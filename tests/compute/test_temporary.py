"""Temporary folders: those of processes that were killed are removed by the next process, and no others."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from deployer.files.temporary import make_temporary_folder, remove_temporary_folder, temporary_folder

PROGRAM = """
import sys
from deployer.files.temporary import make_temporary_folder
print(make_temporary_folder("test"), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_the_folder_of_a_killed_process_is_removed_and_that_of_a_living_one_is_not(place: Path) -> None:
    with (
        subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=-1, stdout=-1, text=True) as killed,
        subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=-1, stdout=-1, text=True) as living,
    ):
        assert killed.stdout is not None and living.stdout is not None
        abandoned, used = Path(killed.stdout.readline().strip()), Path(living.stdout.readline().strip())
        (abandoned / "local" / "blockmgr-1").mkdir(parents=True)
        (abandoned / "local" / "blockmgr-1" / "a").write_text("x")
        killed.kill()
        killed.wait()
        own = make_temporary_folder("test")
        assert not abandoned.exists() and used.is_dir() and own.is_dir()
        living.kill()
    with temporary_folder("other") as folder:
        assert folder.is_dir() and own.is_dir() and not used.exists()
    remove_temporary_folder(own)
    assert list(place.iterdir()) == []


def test_folders_of_others_are_left_alone(place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / ".owner.lock").touch()
    (place / "deployer-link").symlink_to(elsewhere)
    (place / "deployer-without-lock").mkdir()
    (place / "deployer-file").touch()
    (place / "other").mkdir()
    (place / "other" / ".owner.lock").touch()
    with temporary_folder("test"):
        pass
    assert {each.name for each in place.iterdir()} == {
        "deployer-link",
        "deployer-without-lock",
        "deployer-file",
        "other",
    }
    assert (elsewhere / ".owner.lock").exists()
