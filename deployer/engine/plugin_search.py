"""Where the executable of a provider plugin is looked for: `pulumi-resource-NAME`.

Pulumi's state names providers too, and may be anybody's. So a name is only ever a name, and a folder of the checkout is
used where Pulumi.yaml says so under `plugins.providers`, not because it is on PATH.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from deployer.engine.checkpoint_shape import PACKAGE
from deployer.errors import NotFound, Refused


def find_plugin(name: str, folders: Mapping[str, Path], project: Path) -> Path:
    """The executable of a provider: in the folder that Pulumi.yaml names for it, beside this Python, or on PATH.

    Raises Refused for what is not the name of a package, NotFound.
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
    raise NotFound(
        f"the provider plugin {executable} is not installed",
        where=name,
        remedy=f"put {executable} on PATH, outside of the project, or name its folder under `plugins.providers` in "
        "Pulumi.yaml",
    )


def _searched(project: Path) -> Iterator[Path]:
    yield Path(sys.executable).parent
    checkout = _checkout(project.resolve())
    for entry in os.get_exec_path():
        folder = Path(entry)
        if folder.is_absolute() and not folder.resolve().is_relative_to(checkout):
            yield folder


def _checkout(project: Path) -> Path:
    """The work tree that the project is in; the project's folder where it is in none."""
    return next((folder for folder in (project, *project.parents) if (folder / ".git").exists()), project)


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
