"""Installs a plug-in into Pulumi's plug-in folder: downloads its archive, checks its digest, and unpacks it.

An archive is checked against every digest that is available: the SHA-256 that the user gives; the checksum that is
published in the same release, which is downloaded over TLS; and the SHA-256 of the same release when it was first
installed here. Pulumi publishes SHA-1 for its own providers, others publish SHA-256; the length shows which one.
Without a digest nothing is unpacked. A plug-in is installed as a whole or not at all: it is unpacked into a temporary
folder, which is then renamed. The archive of an interrupted download is kept, and the next installation downloads the
rest.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from deployer.engine.plugins import folder as places
from deployer.engine.plugins.download import Unreachable, check_address, download, read_text
from deployer.engine.plugins.folder import InstalledPlugin
from deployer.engine.plugins.machine import HEAD_BYTES, Machine, machine_of, this_machine
from deployer.engine.plugins.package import Plugin
from deployer.engine.plugins.sources import Source, checksum_in, sources_of
from deployer.errors import Corrupt, DeployerError, InvalidInput, NotFound
from deployer.platform.files.private import sync_folder, write_private
from deployer.platform.files.reading import open_regular, read_limited
from deployer.platform.files.tar_archives import unpack_tar
from deployer.platform.files.temporary import temporary_folder
from deployer.platform.system.progress import OnProgress, Progress, no_progress

_PART = 2**20
_CHECKSUMS_BYTES = 2**20
_ALGORITHMS = {40: "sha1", 64: "sha256"}  #: by the number of hexadecimal digits


@dataclass(frozen=True, slots=True)
class Installation:
    """An installed plug-in. `is_new` is False when it was installed before. `sha256` is the digest of its archive,
    empty where deployer did not install it."""

    installed: InstalledPlugin
    sha256: str
    is_new: bool


@dataclass(frozen=True, slots=True)
class _ExpectedDigest:
    """A digest that an archive must have, and the source of the digest."""

    digest: str
    by: str


def install_plugin(
    plugin: Plugin,
    *,
    server: str = "",
    file: Path | None = None,
    sha256: str = "",
    on_progress: OnProgress = no_progress,
    on_wait: Callable[[], None] = lambda: None,
) -> Installation:
    """Installs a plug-in if it is missing, from a file, or otherwise from `server`, its package's server, or Pulumi's.

    Raises InvalidInput, NotFound, Refused and Corrupt for input or an archive that is not valid or not trusted, and
    DeployerError where no server can be reached. After an error nothing is installed.
    """
    machine = this_machine()
    if sha256 and _algorithm(sha256) != "sha256":
        raise InvalidInput("--sha256 is not a SHA-256", remedy="give 64 hexadecimal digits")
    sources = () if file is not None else sources_of(plugin, machine, server)
    for source in sources:
        check_address(source.archive, plain=bool(sha256))
    with places.locked(plugin, on_wait) as folder:
        pin = folder.with_name(f"{folder.name}-{machine}.sha256")
        pinned = checksum_in(_read(pin), plugin.archive(machine)) or ""
        if (found := places.installed(plugin)) is not None:
            return Installation(found, pinned, is_new=False)
        expected = [_ExpectedDigest(sha256.lower(), "--sha256")] if sha256 else []
        if pinned:
            expected.append(_ExpectedDigest(pinned, f"{pin}, of its first installation here"))
        if file is not None:
            _refuse_other_release(plugin, machine, file)
            expected += _beside(file, expected)
            digest = _checked(file, expected, on_progress)
            _unpack(plugin, machine, file, folder, on_progress)
        else:
            part = folder.with_name(f".{plugin.archive(machine)}.part")
            digest = _downloaded(plugin, machine, sources, part, expected, on_progress)
            _unpack(plugin, machine, part, folder, on_progress)
            part.unlink()
        write_private(pin, f"{digest}  {plugin.archive(machine)}\n")
        return Installation(InstalledPlugin(plugin, folder), digest, is_new=True)


# --- the archive


def _downloaded(
    plugin: Plugin,
    machine: Machine,
    sources: Sequence[Source],
    part: Path,
    expected: Sequence[_ExpectedDigest],
    on_progress: OnProgress,
) -> str:
    """Downloads the archive from the first source that has it; returns its SHA-256."""
    failures: list[DeployerError] = []
    for source in sources:
        try:
            published = _published(plugin, machine, source, expected)
            return _fetched(source, part, [*expected, *published], on_progress)
        except (NotFound, Unreachable) as failure:
            failures.append(failure)
    reasons = "; ".join(f"{each.where}: {each.what}" for each in failures)
    if all(isinstance(each, NotFound) for each in failures):
        raise NotFound(
            f"{plugin} for {machine} is not published there: {reasons}",
            remedy="correct the version; for a server without a file of checksums, give the archive's digest by "
            "--sha256",
        )
    raise DeployerError(f"{plugin} cannot be downloaded: {reasons}", remedy=_by_hand(plugin, machine, sources[0], part))


def _by_hand(plugin: Plugin, machine: Machine, source: Source, part: Path) -> str:
    """Returns the remedy for a machine without a network."""
    copy = shlex.quote(str(part.with_name(plugin.archive(machine))))
    return (
        "check the network, HTTPS_PROXY and SSL_CERT_FILE; or download on another machine "
        f"{source.archive} and {source.checksums}, copy both files into {part.parent}, and run "
        f"`deployer plugin install {plugin.name} {plugin.version} --file {copy}`"
    )


def _published(
    plugin: Plugin, machine: Machine, source: Source, known: Sequence[_ExpectedDigest]
) -> list[_ExpectedDigest]:
    """Returns the published checksum of the release. Returns None when the user gave a digest, or when the release has
    no checksum and another digest is known."""
    if any(each.by == "--sha256" for each in known):
        return []
    try:
        text = read_text(source.checksums, plain=False)
    except NotFound:
        if known:
            return []
        raise
    return [_ExpectedDigest(_found(text, plugin.archive(machine), source.checksums), source.checksums)]


def _fetched(source: Source, part: Path, expected: Sequence[_ExpectedDigest], on_progress: OnProgress) -> str:
    is_rest = part.exists()
    plain = any(each.by == "--sha256" for each in expected)

    def on_bytes(done: int, total: int | None) -> None:
        on_progress(Progress("downloading", done, total, "bytes"))

    download(source.archive, part, on_bytes, plain=plain)
    try:
        return _checked(part, expected, on_progress, source.archive)
    except Corrupt:
        part.unlink()
        if not is_rest:
            raise
    return _fetched(source, part, expected, on_progress)  # the rest of an earlier download belongs to another archive


def _beside(file: Path, known: Sequence[_ExpectedDigest]) -> list[_ExpectedDigest]:
    """Returns the checksum from a file of checksums beside the archive. Raises InvalidInput where no digest is
    known."""
    for checksums in sorted(file.absolute().parent.glob("*_checksums.txt")):
        if (digest := checksum_in(_read(checksums), file.name)) is not None:
            return [_ExpectedDigest(_valid(digest, checksums), str(checksums))]
    if known:
        return []
    raise InvalidInput(
        "the digest of this archive is unknown",
        where=file,
        remedy="copy the release's file of checksums beside it (NAME_VERSION_checksums.txt), or give --sha256",
    )


def _refuse_other_release(plugin: Plugin, machine: Machine, file: Path) -> None:
    """Raises InvalidInput for an archive whose name is that of another plug-in, version or machine."""
    name = file.name
    if name.startswith("pulumi-resource-") and name.endswith(".tar.gz") and name != plugin.archive(machine):
        raise InvalidInput(
            f"it is not the archive of {plugin} for {machine}",
            where=file,
            remedy=f"give {plugin.archive(machine)}, or name the version of this one",
        )


# --- digests


def _found(text: str, archive: str, where: str) -> str:
    digest = checksum_in(text, archive)
    if digest is None:
        raise NotFound(f"the release has no {archive}", where=where)
    return _valid(digest, where)


def _valid(digest: str, where: object) -> str:
    if not _algorithm(digest):
        raise Corrupt("it has neither SHA-256 nor SHA-1 of the archive", where=where, remedy="give --sha256")
    return digest


def _algorithm(digest: str) -> str:
    is_hexadecimal = all(each in "0123456789abcdef" for each in digest.lower())
    return _ALGORITHMS.get(len(digest), "") if is_hexadecimal else ""


def _checked(file: Path, expected: Sequence[_ExpectedDigest], on_progress: OnProgress, origin: object = None) -> str:
    """Returns the SHA-256 of an archive. Raises Corrupt when a digest is not as expected."""
    sums = {name: hashlib.new(name, usedforsecurity=False) for name in {"sha256", *map(_algorithm_of, expected)}}
    with os.fdopen(open_regular(file), "rb") as archive:
        total, done = os.fstat(archive.fileno()).st_size, 0
        while data := archive.read(_PART):
            done += len(data)
            for digest in sums.values():
                digest.update(data)
            on_progress(Progress("checking", done, total, "bytes"))
    for each in expected:
        found = sums[_algorithm_of(each)].hexdigest()
        if found != each.digest:
            raise Corrupt(
                f"the archive is not the one that was published: its {_algorithm_of(each).upper()} is {found}, and "
                f"{each.by} says {each.digest}; nothing was installed",
                where=origin or file,
                remedy="get it from another server or as a file; if the publisher replaced the release, compare the "
                "digests with the publisher's first",
            )
    return sums["sha256"].hexdigest()


def _algorithm_of(expected: _ExpectedDigest) -> str:
    return _algorithm(expected.digest)


def _read(file: Path) -> str:
    try:
        return read_limited(file, _CHECKSUMS_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return ""


# --- unpacking


def _unpack(plugin: Plugin, machine: Machine, archive: Path, folder: Path, on_progress: OnProgress) -> None:
    with temporary_folder("plugin", folder.parent) as beside:
        unpacked = beside / plugin.folder
        unpacked.mkdir(mode=0o700)
        unpack_tar(archive, unpacked, lambda done: on_progress(Progress("unpacking", done, None, "bytes")))
        _check_program(plugin, machine, unpacked / plugin.executable, archive)
        places.clear(folder)
        places.partial_of(folder).touch(mode=0o600)
        unpacked.rename(folder)
        sync_folder(folder.parent)
        places.partial_of(folder).unlink()


def _check_program(plugin: Plugin, machine: Machine, program: Path, archive: Path) -> None:
    if not program.is_file():
        raise InvalidInput(f"it has no {plugin.executable}", where=archive, remedy=f"get the archive of {plugin}")
    with program.open("rb") as file:
        made_for = machine_of(file.read(HEAD_BYTES))
    if made_for is not None and made_for != machine:
        raise InvalidInput(
            f"its program is for {made_for}, and this machine is {machine}",
            where=archive,
            remedy=f"get {plugin.archive(machine)}",
        )
    program.chmod(0o700)
