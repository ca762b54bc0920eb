"""Writes a new project into an empty folder, and the requirements of an existing project."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from deployer.app.starter.packaged import FILES, packaged
from deployer.app.starter.requirements import OLD_WHEELS, VENDOR, requirement_files
from deployer.compute.packaging.lock_file import PACKAGES, lock_text, version_in
from deployer.errors import InvalidInput, NotFound, Refused

_IGNORED = (".git", ".venv")


def write_project(folder: Path, name: str | None = None) -> list[Path]:
    """Writes a project; returns the files written. `name` is the name of the project; by default that of the folder.

    Raises Refused for a folder that contains anything but .git and .venv; InvalidInput for a name that is not valid.
    """
    if folder.exists() and not folder.is_dir():
        raise Refused("a file of that name exists already", where=folder, remedy="name another folder")
    if folder.exists() and (found := sorted(path.name for path in folder.iterdir() if path.name not in _IGNORED)):
        raise Refused(f"the folder is not empty: {', '.join(found[:3])}", where=folder, remedy="name a new one")
    name = _checked(name) if name else _name_of(folder.resolve().name)
    values = {"NAME": name, "PULUMI": version_in(lock_text(PACKAGES), "pulumi")}
    texts = {}
    for source, target in FILES.items():
        text = packaged(source).decode()
        for key, value in values.items():
            text = text.replace(f"@{key}@", value)
        texts[target] = text.encode()
    return _written(folder, {**texts, **requirement_files()})


def write_requirements(folder: Path) -> list[Path]:
    """Writes only the requirements of a project, for the running deployer, and removes the wheels of other releases.

    Returns the files written. Raises NotFound where there is no project.
    """
    if not (folder / "Pulumi.yaml").is_file():
        raise NotFound("no Pulumi.yaml here", where=folder, remedy="name the project's folder")
    files = requirement_files()
    for old in (folder / VENDOR).glob(OLD_WHEELS):
        if f"{VENDOR}/{old.name}" not in files:
            old.unlink()
    return _written(folder, files)


def _written(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(content)
        Path(file.name).chmod(0o644)
        Path(file.name).replace(path)
    return [folder / name for name in files]


def _name_of(folder: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", folder).strip("-")
    return name if re.match(r"[A-Za-z_]", name) else f"lake-{name}".strip("-")


def _checked(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,99}", name):
        raise InvalidInput(f"{name!r} is not a valid name of a project", remedy="use letters, digits, _ and -")
    return name
