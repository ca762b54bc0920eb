"""Untrusted ZIP archives: their sizes are checked before anything is unpacked."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

from deployer.errors import InvalidInput
from deployer.platform.files.reading import check_regular, in_mib

MOST_MEMBERS = 1_000_000
MEMBER_BYTES = 2**30  #: of one member, unpacked
MOST_GROWTH = 250  #: largest ratio of all members to the archive; that of text is about ten
_SMALL = 16 * 2**20  # the limit for the smallest archive
_PART = 2**20


def open_archive(path: Path) -> zipfile.ZipFile:
    """Returns the archive. Raises InvalidInput for an archive with more content than allowed, and the errors of
    ZipFile."""
    check_regular(path)
    archive = zipfile.ZipFile(path)
    try:
        _check_sizes(archive, path)
    except BaseException:
        archive.close()
        raise
    return archive


def _check_sizes(archive: zipfile.ZipFile, path: Path) -> None:
    members = archive.infolist()
    limit = max(_SMALL, path.stat().st_size * MOST_GROWTH)
    largest = max(members, key=lambda member: member.file_size, default=None)
    if len(members) > MOST_MEMBERS:
        what = f"it has more than {MOST_MEMBERS:,} members"
    elif largest is not None and largest.file_size > MEMBER_BYTES:
        what = f"its member {largest.filename!r} has more than {in_mib(MEMBER_BYTES)} unpacked"
    elif sum(member.file_size for member in members) > limit:
        what = f"its members have more than {in_mib(limit)} unpacked, {MOST_GROWTH} times what the archive has"
    else:
        return
    raise InvalidInput(what, where=path, remedy="this is not an archive that deployer wrote: use another copy")


def member_digest(archive: zipfile.ZipFile, name: str, size: int) -> bytes:
    """Returns the BLAKE2b digest of `size` bytes of a member, which is read in parts."""
    found = hashlib.blake2b(digest_size=size)
    with archive.open(name) as member:
        while part := member.read(_PART):
            found.update(part)
    return found.digest()
