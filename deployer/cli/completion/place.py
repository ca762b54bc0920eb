"""The project in the shell's folder: its stacks, and the root of the lake that a stack declares.

Reading the root from the specs would make people wait. So the root is cached, with the times and sizes of the files
that it was read from; when any of these changes, the specs are read again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from deployer.cli.completion.kept import keep, recall

DEFAULT_STACK = "dev"
_PROJECT_FILES = ("Pulumi.yaml", "Pulumi.yml")


def project_folder(given: Mapping[str, str]) -> Path | None:
    """Returns the folder of the project: that of `--project`, or else the nearest one with a Pulumi.yaml."""
    start = Path(given.get("project") or "").absolute()
    upwards = () if given.get("project") else start.parents
    return next((each for each in (start, *upwards) if any((each / name).is_file() for name in _PROJECT_FILES)), None)


def stacks(given: Mapping[str, str]) -> list[str]:
    """Returns the stacks that have a settings file in the project, or a state in the project's own backend."""
    folder = project_folder(given)
    if folder is None:
        return []
    found = {_middle(file.name) for file in folder.glob("Pulumi.*.y*ml")}
    for file in folder.glob(".pulumi/stacks/*/*.json"):
        found.add(file.stem)
    return sorted(name for name in found if name)


def _middle(name: str) -> str:
    return name.removeprefix("Pulumi.").rpartition(".")[0]


def root_of(given: Mapping[str, str]) -> str | None:
    """Returns the root of the lake: a folder or a URI; None without a project, or where its specs do not set it.

    Raises DeployerError for a project that cannot be read.
    """
    folder = project_folder(given)
    if folder is None:
        return None
    stack = given.get("stack") or os.environ.get("DEPLOYER_STACK") or DEFAULT_STACK
    specs = given.get("specs")
    key = "\n".join(("root", str(folder), stack, specs or ""))
    kept = recall(key)
    if kept is not None and kept["files"] == _signs(kept["files"]):
        found: str | None = kept["root"]
        return found
    root, files = _read_root(folder, stack, specs)
    keep(key, {"root": root, "files": _signs(files)})
    return root


def _read_root(folder: Path, stack: str, specs: str | None) -> tuple[str | None, list[str]]:
    """Returns the root, and the files and folders on which it depends."""
    from deployer.app.workspace import open_workspace
    from deployer.specs import declared_root
    from deployer.specs.loading.lake import read_files
    from deployer.specs.values.root import resolve_root

    workspace = open_workspace(folder, stack, specs)
    declared = declared_root(workspace.dir, workspace.specs, workspace.stack, workspace.values)
    read = [workspace.dir / name for name in read_files(workspace.dir, workspace.specs, workspace.stack)]
    settings = [folder / name for name in (*_PROJECT_FILES, f"Pulumi.{stack}.yaml")]
    files = {*settings, workspace.specs, *read, *(file.parent for file in read)}
    root = None if declared is None else resolve_root(workspace.dir, declared)
    return root, sorted(map(str, files))


def _signs(files: Iterable[str]) -> dict[str, list[int]]:
    """Returns modification times, sizes and inodes of files. The time of a folder changes when a file is added or
    removed."""
    found = {}
    for name in files:
        found[name] = [0, 0, 0]
        with suppress(OSError):
            about = Path(name).stat()
            found[name] = [about.st_mtime_ns, about.st_size, about.st_ino]
    return found
