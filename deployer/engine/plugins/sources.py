"""The places where a plug-in is published, in the order of Pulumi's engine: GitHub's releases, then get.pulumi.com.

A package may name another server, and so may the user. Beside the archives there is a file of their checksums,
`pulumi-NAME_VERSION_checksums.txt`: Pulumi's release workflow uploads both together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from deployer.engine.plugins.machine import Machine
from deployer.engine.plugins.package import Plugin
from deployer.errors import InvalidInput, Refused

_GITHUB = "https://github.com"
_PULUMI = "https://get.pulumi.com/releases/plugins"
_PART = re.compile(r"[A-Za-z0-9_.-]{1,100}")


@dataclass(frozen=True, slots=True)
class Source:
    """A folder on a server, with an archive and perhaps a file of checksums."""

    archive: str
    checksums: str


def sources_of(plugin: Plugin, machine: Machine, server: str = "") -> tuple[Source, ...]:
    """Returns the URLs in the order in which to try them.

    `server` is the user's choice. Raises InvalidInput for a text that is not a server, Refused for a server that only
    the Pulumi CLI supports.
    """
    chosen = server or plugin.server
    if not chosen:
        return (_github("pulumi", "", plugin, machine), _at(_PULUMI, "", plugin, machine))
    scheme, _, rest = chosen.partition("://")
    if scheme in ("http", "https"):
        return (_at(_interpolated(chosen, plugin, machine), "", plugin, machine),)
    host, _, path = rest.strip("/").partition("/")
    parts = path.split("/")
    if scheme == "github" and host == "api.github.com" and len(parts) <= 2 and all(map(_PART.fullmatch, parts)):
        return (_github(parts[0], parts[1] if len(parts) == 2 else "", plugin, machine),)
    if scheme in ("github", "gitlab", "git"):
        raise Refused(
            f"deployer does not download plug-ins from {scheme}://{host}",
            where=plugin.executable,
            remedy=f"download {plugin.archive(machine)} yourself and give it by --file, or give --server",
        )
    raise InvalidInput(
        f"{chosen!r} is not the address of a server", remedy="give a URL such as https://mirror.example.com/plugins"
    )


def checksum_in(text: str, archive: str) -> str | None:
    """Returns the checksum of an archive from lines of `HEX ./NAME`; None where no line names the archive."""
    for line in text.splitlines():
        found, _, name = line.partition(" ")
        if name.strip().removeprefix("*").removeprefix("./") == archive:
            return found.lower()
    return None


def _github(owner: str, repository: str, plugin: Plugin, machine: Machine) -> Source:
    repository = repository or f"pulumi-{plugin.name}"
    base = f"{_GITHUB}/{owner}/{repository}/releases/download/v{quote(plugin.version)}"
    return _at(base, repository, plugin, machine)


def _at(base: str, repository: str, plugin: Plugin, machine: Machine) -> Source:
    base = base.rstrip("/")
    checksums = f"{repository or f'pulumi-{plugin.name}'}_{plugin.version}_checksums.txt"
    return Source(f"{base}/{quote(plugin.archive(machine))}", f"{base}/{quote(checksums)}")


def _interpolated(server: str, plugin: Plugin, machine: Machine) -> str:
    values: Mapping[str, str] = {
        "NAME": plugin.name,
        "VERSION": plugin.version,
        "OS": machine.system,
        "ARCH": machine.architecture,
    }
    for name, value in values.items():
        server = server.replace(f"${{{name}}}", quote(value))
    if not urlsplit(server).hostname:
        raise InvalidInput(
            f"{server!r} names no server", remedy="give a URL such as https://mirror.example.com/plugins"
        )
    return server
