"""The stored form of bytes: a format version and a checksum in front of every body."""

from __future__ import annotations

import hashlib
import zlib

from deployer.errors import Corrupt, Refused

MAGIC = b"DST"
FORMAT = 1  #: format of stores and sealed bodies; it is raised when an older reader would misread them
_COMPRESSED = 1
_COMPRESS_ABOVE = 2048  # bytes
DIGEST_BYTES = 16  #: bytes of a checksum
MAX_PAYLOAD = 2**30  #: bytes of one body
MAX_GROWTH = 250  #: largest ratio of a large body to its stored form
_SMALL = 16 * 2**20
_HEAD = len(MAGIC) + 2 + DIGEST_BYTES


def digest(data: bytes | memoryview) -> bytes:
    """Returns the checksum of stored bytes: 16 bytes of BLAKE2b."""
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


def seal(payload: bytes) -> bytes:
    """Returns `DST`, format, flags, checksum of the rest, payload (deflated when that is shorter)."""
    flags = 0
    if len(payload) > _COMPRESS_ABOVE:
        payload, flags = zlib.compress(payload, 1), _COMPRESSED
    return MAGIC + bytes([FORMAT, flags]) + digest(payload) + payload


def unseal(data: bytes, where: str) -> bytes:
    """Returns the payload. Raises Corrupt when the checksum differs, Refused when the format is newer than this
    library."""
    if len(data) < _HEAD or data[:3] != MAGIC:
        raise Corrupt("the state store did not write this content", where=where, remedy=RECOVERY)
    refuse_newer(data[3], where)
    payload = data[_HEAD:]
    if digest(payload) != data[5:_HEAD]:
        raise Corrupt("the checksum does not match", where=where, remedy=RECOVERY)
    return _inflated(payload, where) if data[4] & _COMPRESSED else payload


def _inflated(payload: bytes, where: str) -> bytes:
    """Returns the inflated bytes. Deflated JSON is about ten times smaller; a store never writes bytes that grow more
    than `MAX_GROWTH` times."""
    limit = min(MAX_PAYLOAD, max(_SMALL, len(payload) * MAX_GROWTH))
    inflating = zlib.decompressobj()
    try:
        found = inflating.decompress(payload, limit)
    except zlib.error:
        raise Corrupt("the state store did not write this content", where=where, remedy=RECOVERY) from None
    if not inflating.eof:
        what = f"its body has more than {limit:,} bytes, or is cut off"
        raise Corrupt(what, where=where, remedy=RECOVERY)
    return found


def refuse_newer(found: int, where: object, newest: int = FORMAT) -> None:
    """Raises Refused when a format is newer than this library can read."""
    if found > newest:
        raise Refused(
            f"written by a newer deployer (format {found}), this one reads up to {newest}",
            where=where,
            remedy="upgrade",
        )


RECOVERY = (
    "`deployer state repair` repairs what it can, else restore the instance's _state folder from a backup; without "
    "one, run `deployer state rebuild`"
)
#: text that no repair handles: deployer never writes it, so another program wrote the log
FORGED = (
    "deployer does not write this, so find out what changed the state; `deployer state verify` lists all of it, and a "
    "backup of the instance's _state folder or an earlier export restores it"
)
