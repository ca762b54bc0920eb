"""Untrusted archives of programs (.tar.gz), which are unpacked so that nothing is written outside of one folder.

They may have regular files and folders with relative names. Everything else is refused: links, devices, names that lead
out of the folder, repeated names, and content above the limits.
"""

from __future__ import annotations

import gzip
import os
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from deployer.errors import InvalidInput
from deployer.platform.files.archives import MOST_GROWTH
from deployer.platform.files.private import kind_of
from deployer.platform.files.reading import check_regular, in_mib

MOST_MEMBERS = 100_000
UNPACKED_BYTES = 8 * 2**30
_SMALL = 16 * 2**20  # what may be in the smallest archive
_PART = 2**20
_HEADER_BYTES = 4 * 2**20  #: limit of a header with a long name; `tarfile` reads it at once


def unpack_tar(archive: Path, folder: Path, on_bytes: Callable[[int], None] = lambda done: None) -> None:
    """Unpacks into `folder`, which exists and is empty.

    The files are for this user only, and are flushed to the disk. `on_bytes` is called with the number of unpacked
    bytes. Raises InvalidInput for an archive that is damaged or has forbidden members; files that were unpacked before
    stay.
    """
    check_regular(archive)
    limit = min(UNPACKED_BYTES, max(_SMALL, archive.stat().st_size * MOST_GROWTH))
    try:
        with gzip.open(archive) as unzipped:
            source = cast(IO[bytes], _Limited(unzipped, limit, archive))
            with tarfile.open(fileobj=source, mode="r:") as tar:
                _unpack(tar, folder, archive, limit, on_bytes)
    except (tarfile.TarError, zlib.error, EOFError, gzip.BadGzipFile, ValueError) as error:
        raise InvalidInput(f"it is not a whole .tar.gz archive: {error}", where=archive, remedy=_OTHER) from None


_OTHER = "get another copy of the archive"


def _unpack(tar: tarfile.TarFile, folder: Path, archive: Path, limit: int, on_bytes: Callable[[int], None]) -> None:
    done = 0
    for number, member in enumerate(tar):
        if number >= MOST_MEMBERS:
            raise _refusal(archive, f"it has more than {MOST_MEMBERS:,} members")
        _check_member(member, archive)
        done += member.size
        if done > limit:
            raise _refusal(archive, f"its members have more than {in_mib(limit)} unpacked")
        path = folder / PurePosixPath(member.name)
        if member.isdir():
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            continue
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        contents = tar.extractfile(member)
        assert contents is not None  # noqa: S101 -- it is a regular file
        try:
            _write(contents, path, 0o700 if member.mode & 0o100 else 0o600)
        except FileExistsError:
            raise _refusal(archive, f"it has {member.name!r} twice") from None
        on_bytes(done)


def _check_member(member: tarfile.TarInfo, archive: Path) -> None:
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts or "\\" in member.name or "\0" in member.name:
        raise _refusal(archive, f"its member {member.name!r} leads out of the folder")
    if not (member.isdir() or (member.isreg() and not member.issparse())):
        raise _refusal(archive, f"its member {member.name!r} is {_kind(member)}")


def _kind(member: tarfile.TarInfo) -> str:
    if member.issym() or member.islnk():
        return "a link"
    return kind_of(0o010000) if member.isfifo() else "neither a file nor a folder"


def _write(contents: IO[bytes], path: Path, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        while part := contents.read(_PART):
            file.write(part)
        file.flush()
        os.fsync(descriptor)


def _refusal(archive: Path, what: str) -> InvalidInput:
    return InvalidInput(f"{what}; nothing of it is used", where=archive, remedy=_OTHER)


class _Limited:
    """A stream that raises an error after `limit` bytes, including headers and padding."""

    def __init__(self, stream: Any, limit: int, archive: Path) -> None:
        self._stream, self._archive = stream, archive
        self._limit = limit + _SMALL

    def read(self, size: int = -1) -> bytes:
        if size > _HEADER_BYTES:
            raise _refusal(self._archive, "a header of it is too long")
        data: bytes = self._stream.read(size)
        self._check()
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        if whence == 0 and offset > self._limit:
            raise _refusal(self._archive, f"its members have more than {in_mib(self._limit)} unpacked")
        return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        return int(self._stream.tell())

    def _check(self) -> None:
        if self._stream.tell() > self._limit:
            raise _refusal(self._archive, f"its members have more than {in_mib(self._limit)} unpacked")
