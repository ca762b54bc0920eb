"""The versions of the Python functions that specs name. A version is a hash of the module's text; no module is
imported."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

from deployer.errors import DeployerError
from deployer.platform.files.reading import read_limited

MAX_SOURCE = 4 * 2**20  #: bytes of a module that are read
_SHOWN_HASH = 12
VersionOf = Callable[[str], str | None]  #: from `package.module:function` to its version; None where it is unknown


def source_versions(project: Path) -> VersionOf:
    """Returns a function from `package.module:function` to a hash of the module's source text.

    The function returns None where the project has no file of the module. It searches for the file below the project
    and below its folder `src`. It does not read a file that a link places outside the project.
    """

    @cache
    def version_of(module: str) -> str | None:
        parts = module.split(".")
        for folder in (project, project / "src"):
            for path in (folder.joinpath(*parts).with_suffix(".py"), folder.joinpath(*parts, "__init__.py")):
                if path.is_file() and path.resolve().is_relative_to(project):
                    return _hash(path)
        return None

    return lambda udf: version_of(udf.partition(":")[0])


def no_versions(udf: str) -> str | None:
    """Returns None: a `VersionOf` for tables from other sources, which have their versions already."""
    return None


def _hash(path: Path) -> str | None:
    try:
        text = read_limited(path, MAX_SOURCE)
    except (OSError, DeployerError):
        return None
    return hashlib.sha256(text.replace(b"\r\n", b"\n")).hexdigest()[:_SHOWN_HASH]
