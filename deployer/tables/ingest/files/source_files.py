"""Opens files to load, on a disk or on S3, for random access.

Arrow reads files on S3 in its own threads. boto3 provides credentials, region and endpoint. The credentials are read
for each file, so that expired ones are renewed.
"""

from __future__ import annotations

import codecs
import io
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.platform.files.temporary import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

Environment = tuple[tuple[str, str], ...]

SCHEME = "s3://"
STDIN_PURPOSE = "stdin"  #: the purpose, in its name, of the temporary folder that holds standard input
CODECS = {".gz": "gzip", ".zst": "zstd"}  #: Arrow's codec by the suffix of a compressed text file
SCANNED_BYTES = 8 * 1024 * 1024  #: bytes of an object on S3 that a search reads with one request


def is_on_s3(path: str) -> bool:
    """Returns whether a source is an object, and not a file."""
    return path.startswith(SCHEME)


def shown_name(path: str) -> str:
    """Returns the name of a file for messages: "standard input" for the temporary file that holds it."""
    return "standard input" if Path(path).parent.name.startswith(f"{PREFIX}{STDIN_PURPOSE}-") else path


def without_codec(name: str) -> str:
    """Returns a lower-case name without the suffix of a codec."""
    for suffix in CODECS:
        name = name.removesuffix(suffix)
    return name


def file_size(path: str) -> int:
    """Returns the size in bytes."""
    if not is_on_s3(path):
        return Path(path).stat().st_size
    with open_file(path) as file:
        return int(file.size())


def open_file(path: str) -> Any:
    """Returns an Arrow file with random access. Raises InvalidInput for an object that cannot be opened."""
    if not is_on_s3(path):
        return pa.memory_map(path)
    try:
        return _filesystem().open_input_file(path.removeprefix(SCHEME))
    except OSError as failure:
        raise unreadable(path, failure) from None


def open_stream(path: str, *, compressed: bool) -> Any:
    """Returns an Arrow stream over a whole file, uncompressed."""
    codec = CODECS.get(Path(path.lower()).suffix) if compressed else None
    if not is_on_s3(path):
        return pa.input_stream(path, compression=codec)
    file = open_file(path)
    return pa.CompressedInputStream(file, codec) if codec else file


@contextmanager
def open_text(path: str, encoding: str, *, compressed: bool) -> Iterator[tuple[io.TextIOBase, str]]:
    """Yields the file as text with unchanged line ends, and the encoding with which it is read. A byte order mark takes
    precedence over `encoding`, and is left out."""
    with open_stream(path, compressed=compressed) as stream:
        buffered = io.BufferedReader(stream)
        found = _encoding_by_mark(buffered.peek(4)) or encoding
        skips_mark = "utf-8-sig" if found == "utf-8" else found
        yield io.TextIOWrapper(buffered, encoding=skips_mark, newline=""), found


def _encoding_by_mark(start: bytes) -> str | None:
    """Returns the encoding of the byte order mark at the start of a file; None without such a mark."""
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "utf-8" if start.startswith(codecs.BOM_UTF8) else None


class Bytes(Protocol):
    """The part of the interface of `mmap` that reads bytes that are too large for memory."""

    def __getitem__(self, part: slice, /) -> bytes: ...

    def find(self, wanted: bytes, start: int, stop: int, /) -> int: ...


@contextmanager
def open_bytes(path: str) -> Iterator[Bytes]:
    """Yields the bytes of a file. The file must not be empty."""
    if is_on_s3(path):
        with open_file(path) as file:
            yield _ObjectBytes(file)
        return
    with Path(path).open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        yield cast("Bytes", mapped)


class _ObjectBytes:
    def __init__(self, file: Any) -> None:
        self._file, self._size = file, int(file.size())

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self._size)
        return bytes(self._file.read_at(stop - start, start))

    def find(self, wanted: bytes, start: int, stop: int) -> int:
        """Returns the position of a single byte; -1 where it is not found."""
        stop = min(stop, self._size)
        while start < stop:
            block = self._file.read_at(min(SCANNED_BYTES, stop - start), start)
            found = block.find(wanted)
            if found >= 0:
                return int(start + found)
            start += len(block)
        return -1


def unreadable(path: str, failure: Exception) -> InvalidInput:
    """Returns the error for an object that cannot be read from S3."""
    message = str(failure).splitlines()[0]
    denied = any(
        code in message.upper().replace(" ", "_") for code in ("ACCESS_DENIED", "FORBIDDEN", "HTTP_STATUS_403")
    )
    remedy = (
        "allow the user (on a cluster its execution role) s3:GetObject there, or copy it below the lake's root"
        if denied
        else "check the object, and that AWS_REGION is the region of its bucket"
    )
    return InvalidInput(f"it cannot be read from S3: {message}", where=path, remedy=remedy)


def _filesystem() -> Any:
    environment = tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))
    session = _session(environment)
    credentials = session.get_credentials()
    frozen = None if credentials is None else credentials.get_frozen_credentials()
    keys = {} if frozen is None else {
        "access_key": frozen.access_key, "secret_key": frozen.secret_key, "session_token": frozen.token,
    }  # fmt: skip
    return _filesystem_with(environment, tuple(keys.items()))


@cache
def _session(_environment: Environment) -> Any:
    """Returns boto3's session for these environment variables."""
    from deployer.platform.aws.session import aws_session

    return aws_session()


@cache
def _filesystem_with(environment: Environment, keys: tuple[tuple[str, str | None], ...]) -> Any:
    from pyarrow.fs import S3FileSystem

    from deployer.platform.storage.s3_client import endpoint_of

    session = _session(environment)
    settings: dict[str, str | None] = {**dict(keys), "region": session.region_name}
    if (endpoint := endpoint_of(session)) is not None:
        scheme, _, place = endpoint.partition("://")
        settings |= {"scheme": scheme, "endpoint_override": place.rstrip("/")}
    given: Mapping[str, str] = {name: value for name, value in settings.items() if value is not None}
    return S3FileSystem(**given)


def same_place(one: str, other: str) -> bool:
    """Returns whether both are the same folder or address."""
    if is_on_s3(one) or is_on_s3(other):
        return one.rstrip("/") == other.rstrip("/")
    return Path(one).resolve() == Path(other).resolve()
