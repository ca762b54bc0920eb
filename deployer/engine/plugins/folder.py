"""Pulumi's plug-in folder: `$PULUMI_HOME/plugins`, else `~/.pulumi/plugins`.

Each plug-in has a folder `resource-NAME-vVERSION`. Beside the folder, `.lock` is locked by the process that installs or
removes the plug-in, and `.partial` marks it as incomplete.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deployer.engine.plugins.package import VERSION, Plugin
from deployer.engine.values.checkpoint_shape import PACKAGE
from deployer.errors import NotFound
from deployer.platform.files.private import open_lock

_FOLDER = re.compile(rf"resource-(?P<name>{PACKAGE.pattern})-v(?P<version>{VERSION.pattern})")


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """A complete plug-in and its folder."""

    plugin: Plugin
    folder: Path

    @property
    def executable(self) -> Path:
        return self.folder / self.plugin.executable


def plugins_folder() -> Path:
    """Returns the folder of plug-ins, which may not exist."""
    home = os.environ.get("PULUMI_HOME")
    return (Path(home).absolute() if home else Path.home() / ".pulumi") / "plugins"


def make_plugins_folder() -> Path:
    """Makes the folder if it does not exist, for this user only, as Pulumi does, and returns it."""
    folder = plugins_folder()
    for each in (folder.parent, folder):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def installed_plugins() -> list[InstalledPlugin]:
    """Returns the complete plug-ins by name, the newest version of each first."""
    found = []
    for name in _names(plugins_folder()):
        match = _FOLDER.fullmatch(name)
        if match is not None and (plugin := installed(Plugin(match["name"], match["version"]))) is not None:
            found.append(plugin)
    found.sort(key=lambda each: version_order(each.plugin.version), reverse=True)
    return sorted(found, key=lambda each: each.plugin.name)


def installed(plugin: Plugin) -> InstalledPlugin | None:
    """Returns the plug-in if it is completely installed, otherwise None."""
    folder = plugins_folder() / plugin.folder
    if not folder.is_dir() or partial_of(folder).exists():
        return None
    return InstalledPlugin(plugin, folder)


def usable_plugin(name: str, version: str = "") -> InstalledPlugin | None:
    """Returns the installed plug-in for a program that asks for `version`: that version, else the newest of the same
    major version; without a version, the newest. None where there is none."""
    found = [each for each in installed_plugins() if each.plugin.name == name]
    wanted = version.removeprefix("v")
    for each in found:
        if each.plugin.version == wanted:
            return each
    major = wanted.partition(".")[0]
    return next((each for each in found if not wanted or each.plugin.version.partition(".")[0] == major), None)


def version_order(version: str) -> tuple[tuple[int, ...], bool, str]:
    """Returns a key that sorts versions; one with a suffix such as `-rc.1` is before the release."""
    release, _, suffix = version.partition("+")[0].partition("-")
    return tuple(int(part) for part in release.split(".")), not suffix, suffix


@contextmanager
def locked(plugin: Plugin, on_wait: Callable[[], None]) -> Iterator[Path]:
    """Yields the plug-in's folder, locked against installs and removals by other processes, including the Pulumi CLI.
    `on_wait` is called when another process has the lock, before this one waits.
    """
    folder = make_plugins_folder() / plugin.folder
    descriptor = open_lock(folder.with_name(f"{folder.name}.lock"))
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(descriptor)


def partial_of(folder: Path) -> Path:
    """Returns the file that marks a plug-in's folder as incomplete."""
    return folder.with_name(f"{folder.name}.partial")


def remove_plugin(plugin: Plugin, on_wait: Callable[[], None]) -> Path:
    """Removes an installed plug-in; returns the folder that it was in. Raises NotFound."""
    if not (plugins_folder() / plugin.folder).is_dir():
        raise NotFound(
            f"{plugin} is not installed", where=plugins_folder(), remedy="see `deployer plugin list` for those that are"
        )
    with locked(plugin, on_wait) as folder:
        clear(folder)
        partial_of(folder).unlink(missing_ok=True)
    return folder


def clear(folder: Path) -> None:
    """Removes a plug-in's folder. The folder counts as incomplete from the beginning, so also after an interruption."""
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        partial_of(folder).touch(mode=0o600)
        shutil.rmtree(folder)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 -- names are all that is wanted
    except (FileNotFoundError, NotADirectoryError):
        return []
