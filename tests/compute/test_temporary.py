"""Temporary folders: those of processes that were killed are removed by the next process, and no others."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from pathlib import Path

import pytest

from deployer.platform.files import temporary
from deployer.platform.files.temporary import make_temporary_folder, remove_temporary_folder, temporary_folder
from tests import forks
from tests.cli.conftest import Deployer, deployer, project  # noqa: F401 (fixtures)

PROGRAM = """
import sys
from deployer.platform.files.temporary import make_temporary_folder
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
        forks.Popen([sys.executable, "-c", PROGRAM], stdin=-1, stdout=-1, text=True) as killed,
        forks.Popen([sys.executable, "-c", PROGRAM], stdin=-1, stdout=-1, text=True) as living,
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


def test_a_folder_elsewhere_is_removed_too_and_none_is_left_where_nothing_can_be_written(
    place: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    program = PROGRAM.replace('"test"', f'"test", __import__("pathlib").Path({str(elsewhere)!r})')
    with forks.Popen([sys.executable, "-c", program], stdin=-1, stdout=-1, text=True) as killed:
        assert killed.stdout is not None
        abandoned = Path(killed.stdout.readline().strip())
        assert abandoned.parent == elsewhere
        killed.kill()
    with temporary_folder("test"):
        assert abandoned.exists()
    with temporary_folder("test", elsewhere) as own:
        assert list(elsewhere.iterdir()) == [own]

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(OSError, match="No space left"):
        make_temporary_folder("test")
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [("ingest", "air.planes", "-", "--format", "csv"), ("schema", "infer", "-", "--format", "csv")],
    ids=["ingest", "infer"],
)
def test_what_a_killed_command_left_is_removed_by_the_next_load(
    place: Path,
    project: Path,  # noqa: F811
    deployer: Deployer,  # noqa: F811
    command: tuple[str, ...],
) -> None:
    assert deployer("up", "--yes").code == 0
    with forks.Popen([sys.executable, "-m", "deployer", *command], stdin=-1, stdout=-1, stderr=-1) as killed:
        assert killed.stdin is not None
        killed.stdin.write(b"id\n" + b"1\n" * 1_000_000)
        killed.stdin.flush()
        while not list(place.glob("deployer-stdin-*")):
            assert killed.poll() is None
        killed.kill()
        killed.stdin.close()
    assert list(place.glob("deployer-*"))
    Path("rows.csv").write_text("id\n1\n", encoding="utf-8")
    assert deployer("ingest", "air.planes", "rows.csv").code == 0
    assert list(place.glob("deployer-*")) == []


def test_folders_are_made_in_no_other_way() -> None:
    package = Path(temporary.__file__).parents[2]
    by_others = ("TemporaryDirectory", "mkdtemp")
    found = {file.name for file in package.rglob("*.py") if any(word in file.read_text() for word in by_others)}
    assert found == {"temporary.py", "project.py"}  # doctor tries whether a root can be written to


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
