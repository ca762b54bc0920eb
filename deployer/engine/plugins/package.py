"""The plug-in that a package of the program needs: its `pulumi-plugin.json` names it, as Pulumi's engine reads it."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from deployer.engine.plugins.machine import Machine
from deployer.engine.values.checkpoint_shape import PACKAGE
from deployer.errors import Corrupt, InvalidInput
from deployer.platform.files.reading import parse_json, read_limited

VERSION = re.compile(r"\d{1,9}\.\d{1,9}\.\d{1,9}(?:-[0-9A-Za-z.-]{1,100})?(?:\+[0-9A-Za-z.-]{1,100})?")
_FILE = "pulumi-plugin.json"
_FILE_BYTES = 2**20
_INSTALLED_IN = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True)
class Plugin:
    """A release of a provider plug-in. `server` is the publisher that its package names; empty is Pulumi."""

    name: str
    version: str
    server: str = ""

    @property
    def executable(self) -> str:
        return f"pulumi-resource-{self.name}"

    @property
    def folder(self) -> str:
        """The name of the plug-in's folder in Pulumi's plug-in folder."""
        return f"resource-{self.name}-v{self.version}"

    def archive(self, machine: Machine) -> str:
        """Returns the name of the published archive for a machine."""
        return f"{self.executable}-v{self.version}-{machine}.tar.gz"

    def __str__(self) -> str:
        return f"{self.executable} {self.version}"


def wanted_plugin(name: str, version: str = "") -> Plugin:
    """Returns the plug-in of that name and version; without a version, the version that the installed Python package
    names.

    Raises InvalidInput for an invalid name or version, and where no version is known.
    """
    if not PACKAGE.fullmatch(name):
        raise InvalidInput(f"{name[:100]!r} is not the name of a provider", remedy="give a name such as aws")
    version = version.removeprefix("v")
    if version and not VERSION.fullmatch(version):
        raise InvalidInput(f"{version[:100]!r} is not a version", remedy="give a version such as 7.30.0")
    packaged = packaged_plugin(name)
    if version:
        return Plugin(name, version) if packaged is None else replace(packaged, version=version)
    if packaged is None:
        raise InvalidInput(
            f"no installed Python package names the version of the provider {name}",
            remedy=f"install the program's packages first (pip install pulumi-{name}), or give the version: "
            f"deployer plugin install {name} VERSION",
        )
    return packaged


def packaged_plugin(name: str) -> Plugin | None:
    """Returns the plug-in that an installed Python package needs; None where no package names it.

    Raises Corrupt for a package whose file cannot be read.
    """
    for folder in sys.path:
        if Path(folder).name in _INSTALLED_IN:  # the project's folder may be on the path too
            for file in sorted(Path(folder).glob(f"*/{_FILE}")):
                found = _read(file)
                if found is not None and found.name == name:
                    return found
    return None


def _read(file: Path) -> Plugin | None:
    """Returns the plug-in that the file names; None where its package needs none."""
    try:
        document = parse_json(read_limited(file, _FILE_BYTES))
    except (OSError, ValueError) as error:
        raise _unreadable(file, str(error)) from None
    if not isinstance(document, dict) or not document.get("resource"):
        return None
    name = document.get("name") or file.parent.name.removeprefix("pulumi_").replace("_", "-")
    version = str(document.get("version") or _version_of_package(file.parent.name)).removeprefix("v")
    server = document.get("server") or ""
    if not isinstance(name, str) or not PACKAGE.fullmatch(name):
        return None
    if not VERSION.fullmatch(version) or not isinstance(server, str):
        raise _unreadable(file, "it names no version of a plug-in")
    return Plugin(name, version, server)


def _version_of_package(module: str) -> str:
    try:
        return metadata.version(module)
    except metadata.PackageNotFoundError:
        return ""


def _unreadable(file: Path, why: str) -> Corrupt:
    return Corrupt(
        f"the file cannot be read: {why}", where=file, remedy="install the Python package that it belongs to again"
    )
