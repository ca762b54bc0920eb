"""The search for the executable of a provider plugin: `pulumi-resource-NAME`.

Pulumi's state names providers too, and is untrusted. So a name is never used as a path. A folder of the checkout is
used only where Pulumi.yaml names it under `plugins.providers`, not because it is on PATH or in PULUMI_HOME.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from deployer.engine.plugins.folder import plugins_folder, usable_plugin
from deployer.engine.plugins.package import VERSION
from deployer.engine.values.checkpoint_shape import PACKAGE
from deployer.errors import NotFound, Refused


def find_plugin(name: str, folders: Mapping[str, Path], project: Path, version: str = "") -> Path:
    """Returns the executable of a provider: in the folder that Pulumi.yaml names for it, beside this Python, on PATH,
    or in Pulumi's plug-in folder, where the program's `version` counts (see `usable_plugin`).

    Raises Refused for a text that is not the name of a package, and NotFound.
    """
    if not PACKAGE.fullmatch(name):
        raise Refused(
            f"{name[:100]!r} is not the name of a provider's package, so no plugin is started for it",
            remedy="restore Pulumi's state of the stack (its .bak), or take the resource out of the program",
        )
    executable = f"pulumi-resource-{name}"
    if name in folders:
        if _is_executable(path := folders[name] / executable):
            return path
        raise NotFound(
            f"no executable {executable} there",
            where=folders[name],
            remedy="install the provider, or correct `plugins.providers` in Pulumi.yaml",
        )
    for folder in _searched(project):
        if _is_executable(path := folder / executable):
            return path
    inside = is_in_checkout(plugins_folder(), project)
    version = (
        version if VERSION.fullmatch(version) else ""
    )  # it may come from Pulumi's state, and the remedy contains it
    found = None if inside else usable_plugin(name, version)
    if found is not None and _is_executable(found.executable):
        return found.executable
    raise NotFound(
        f"the provider plugin {executable} is not installed",
        where=name,
        remedy=f"run `deployer plugin install {name}{f' {version}' if version else ''}`, put {executable} on PATH, "
        "outside of the project, or name its folder under `plugins.providers` in Pulumi.yaml"
        + (f"; {plugins_folder()} is inside of the project, so it is not searched" if inside else ""),
    )


def is_in_checkout(folder: Path, project: Path) -> bool:
    """Returns whether a folder is in the project's work tree: a program that a branch adds is not run by its name."""
    return folder.resolve().is_relative_to(_checkout(project.resolve()))


def _searched(project: Path) -> Iterator[Path]:
    yield Path(sys.executable).parent
    for entry in os.get_exec_path():
        folder = Path(entry)
        if folder.is_absolute() and not is_in_checkout(folder, project):
            yield folder


def _checkout(project: Path) -> Path:
    """Returns the work tree that the project is in, or the project's folder if it is not in a work tree."""
    return next((folder for folder in (project, *project.parents) if (folder / ".git").exists()), project)


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
