"""Prints the oldest and the newest Python of this machine that the project supports, one path a line.

It searches PATH and pyenv's folder for the versions that the classifiers of pyproject.toml name. It prints only one
path if there is only one version.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
_CLASSIFIER = re.compile(r"Programming Language :: Python :: (\d+)\.(\d+)")
_PROGRAM = re.compile(r"python3(\.\d+)?")
_VERSION = "import ensurepip, sys, venv; print(*sys.version_info[:3]) if sys.prefix == sys.base_prefix else sys.exit(1)"

Version = tuple[int, ...]


def main() -> None:
    found = pythons([*os.environ.get("PATH", "").split(os.pathsep), *pyenv_folders()])
    if not found:
        sys.exit("no Python that the project supports is on PATH; install one of those that pyproject.toml names")
    for version in sorted({min(found), max(found)}):
        print(found[version])


def supported() -> set[Version]:
    """Returns the versions that the project supports, such as (3, 11)."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    matches = (_CLASSIFIER.fullmatch(each) for each in project["classifiers"])
    return {(int(match[1]), int(match[2])) for match in matches if match}


def pythons(folders: Iterable[str]) -> dict[Version, Path]:
    """Returns a program for each supported version in the folders, without those of environments."""
    wanted, found = supported(), dict[Version, Path]()
    for folder in folders:
        for path in sorted(Path(folder).glob("python3*")) if folder else ():
            if _PROGRAM.fullmatch(path.name) and (version := version_of(path)) and version[:2] in wanted:
                found.setdefault(version, path)
    return found


def version_of(program: Path) -> Version | None:
    """Returns the version; None for a program that does not start or cannot make environments."""
    try:
        ended = subprocess.run([program, "-c", _VERSION], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return tuple(map(int, ended.stdout.split())) if ended.returncode == 0 else None


def pyenv_folders() -> Iterator[str]:
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from (str(folder) for folder in sorted(root.glob("versions/3.*/bin")))


if __name__ == "__main__":
    main()
