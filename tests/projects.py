"""Small projects for tests: the repository's own program over specs that the test writes."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import chdir
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
CACHES = shutil.ignore_patterns("__pycache__", ".*_cache")  #: of Python and of tools, which no copy is to have

INSTANCE = "kind: Instance\nname: demo\nroot: lakes/demo\nengine: embedded\n"


def folder_of_example() -> tempfile.TemporaryDirectory[str]:
    """A folder for one example of a property, where the folders of tests are, which is in memory where it has room."""
    return tempfile.TemporaryDirectory(dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))


def make_project(folder: Path, specs: Mapping[str, str]) -> Path:
    """A project in `folder` with these spec files, whose provider plugin is the one of this environment."""
    text = (REPOSITORY / "Pulumi.yaml").read_text(encoding="utf-8")
    text = text.replace("path: .venv/bin", f"path: {Path(sys.executable).parent}").replace("specs/nyc", "specs")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Pulumi.yaml").write_text(text, encoding="utf-8")
    shutil.copytree(REPOSITORY / "stacks", folder / "stacks", ignore=CACHES)
    for name, content in specs.items():
        file = folder / "specs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    return folder


_made: dict[object, Path] = {}


def copy_once_made(folder: Path, key: object, make: Callable[[Path], object]) -> Path:
    """A copy, at `folder`, of the folder that `make` fills; one with the same key is filled once in each process.

    `make` runs in the folder that it fills, and its arguments must follow from the key.
    """
    if key not in _made:
        # The folder of this run of pytest, which removes it; a worker of xdist has one of its own.
        place = Path(tempfile.mkdtemp(prefix="made-", dir=folder.parents[1])) / "project"
        place.mkdir()
        with chdir(place):
            make(place)
        _made[key] = place
    return shutil.copytree(_made[key], folder, symlinks=True)


def applied_project(folder: Path, specs: Mapping[str, str], fill: Callable[[], object] | None = None) -> Path:
    """A project in `folder` with these spec files, applied; then `fill` was called in it."""

    def make(place: Path) -> None:
        make_project(place, specs)
        run("up", "--yes")
        if fill is not None:
            fill()

    return copy_once_made(folder, (frozenset(specs.items()), fill), make)


def run(*arguments: str) -> None:
    """Runs `deployer ARGUMENTS` in this process, which must not fail."""
    from deployer.cli.main import run as run_command

    code = run_command(arguments)
    assert code == 0, f"deployer {' '.join(arguments)}: exit code {code}"


def table(name: str, *columns: str, database: str = "air", more: str = "") -> str:
    """The spec of a table keyed by `id`, with further columns such as `delay: int32`."""
    lines = [
        f"kind: Table\ndatabase: {database}\nname: {name}\ncolumns:\n  - {{name: id, type: int64, nullable: false}}\n"
    ]
    for column in columns:
        column_name, column_type = column.split(": ", 1)
        lines.append(f"  - {{name: {column_name}, type: '{column_type}'}}\n")
    return "".join(lines) + "row_keys: [id]\n" + more
