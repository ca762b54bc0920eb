"""Reads the bytes of a recording, which is a local file or an object in S3."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from deployer.errors import InvalidInput, NotFound
from deployer.platform.files.reading import open_regular
from deployer.platform.storage.s3_objects import S3Objects

_FILE = "file://"
#: The URL that `Path.as_uri` returns for a path without characters that need quoting; most URLs match.
_PLAIN = re.compile(r"file://(?:/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)+")
_SMALL = 1 << 16  #: bytes from which a file is read by ranges; smaller files are read at once


class ByteSource(Protocol):
    """A source of byte ranges. `tag` changes with the content: it is the ETag of an object, or the time of a file's
    last change in nanoseconds."""

    @property
    def url(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def tag(self) -> str: ...

    def read(self, offset: int, length: int) -> bytes:
        """Returns `length` bytes from `offset` on; fewer only at the end of the source."""
        ...


@dataclass(frozen=True, slots=True)
class _File:
    url: str
    size: int
    tag: str
    number: int  #: the file descriptor
    content: bytes | None = None  #: the content of a small file, which is read once

    def read(self, offset: int, length: int) -> bytes:
        if self.content is not None:
            return self.content[offset : offset + length]
        return os.pread(self.number, length, offset)


@dataclass(frozen=True, slots=True)
class SmallFile:
    """A file whose whole content is in memory."""

    url: str
    size: int
    tag: str
    content: bytes

    def read(self, offset: int, length: int) -> bytes:
        return self.content[offset : offset + length]


@dataclass(frozen=True, slots=True)
class _Object:
    url: str
    size: int
    tag: str
    bucket: S3Objects
    key: str

    def read(self, offset: int, length: int) -> bytes:
        end = min(offset + length, self.size)
        return self.bucket.get_range(self.key, offset, end) if end > offset else b""


class ChangedObject(Exception):
    """The error for an object whose tag differs from the expected one. The caller reports it."""


@dataclass(frozen=True, slots=True)
class _KnownObject:
    """An object with a known size and tag. Each read compares the tag."""

    url: str
    size: int
    tag: str
    bucket: S3Objects
    key: str

    def read(self, offset: int, length: int) -> bytes:
        """Returns the bytes, as `ByteSource.read` does. Raises ChangedObject where the object has another tag, and
        Missing where it is gone."""
        end = min(offset + length, self.size)
        if end <= offset:
            return b""
        found = self.bucket.get_range_of(self.key, offset, end, self.tag)
        if found is None:
            raise ChangedObject(self.url)
        return found


@contextmanager
def open_known(url: str, size: int, tag: str) -> Iterator[ByteSource]:
    """Opens a source as `open_source` does, but requests no size and tag of an object in S3: each read compares its
    tag. The caller compares the size and tag of a file."""
    parsed = urlsplit(url)
    if parsed.scheme == "s3":
        yield _KnownObject(url, size, tag, S3Objects(f"s3://{parsed.netloc}"), parsed.path.lstrip("/"))
        return
    with open_source(url) as opened:
        yield opened


def url_of_file(path: str) -> str:
    """Returns the `file://` URL of an absolute path."""
    url = f"{_FILE}{path}"
    return url if _PLAIN.fullmatch(url) else Path(path).as_uri()


def url_of(source: str) -> str:
    """Returns the URL of a recording that is named by a path or a URL."""
    if _PLAIN.fullmatch(source) or urlsplit(source).scheme:
        return source
    return url_of_file(str(Path(source).absolute()))


def small_file(url: str) -> SmallFile | None:
    """Returns a small file with its content; None for a large file, an object in S3, or a file that changed during the
    read. Raises NotFound for a missing file, and InvalidInput for a path that is not a readable file."""
    if not _PLAIN.fullmatch(url):
        if urlsplit(url).scheme:
            return None
        url = url_of_file(str(Path(url).absolute()))
    number = _opened(unquote(url.removeprefix(_FILE)))
    try:
        found = os.fstat(number)
        content = os.pread(number, _SMALL, 0) if found.st_size < _SMALL else b""
    finally:
        os.close(number)
    if not content or len(content) != found.st_size:
        return None
    return SmallFile(url, found.st_size, str(found.st_mtime_ns), content)


@contextmanager
def open_source(url: str) -> Iterator[ByteSource]:
    """Opens a path, a `file://` URL or `s3://bucket/key` for the duration of a `with` block.

    Raises NotFound where nothing exists there, and InvalidInput for another kind of URL and for a path that is not a
    file.
    """
    if _PLAIN.fullmatch(url):
        with _opened_file(url.removeprefix(_FILE), url) as found:
            yield found
        return
    parsed = urlsplit(url)
    if parsed.scheme == "s3":
        yield _object(url, S3Objects(f"s3://{parsed.netloc}"), parsed.path.lstrip("/"))
    elif parsed.scheme in ("", "file"):
        path = Path(unquote(parsed.path) if parsed.scheme else url).absolute()
        with _opened_file(path, path.as_uri()) as found:
            yield found
    else:
        raise InvalidInput(
            f"{parsed.scheme}:// is not a known kind of URL",
            where=url,
            remedy="give a path, file:// or s3://bucket/key",
        )


@contextmanager
def _opened_file(path: str | Path, url: str) -> Iterator[_File]:
    number = _opened(path)
    try:
        found = os.fstat(number)
        content = os.pread(number, _SMALL, 0) if found.st_size < _SMALL else None
        yield _File(url, found.st_size, str(found.st_mtime_ns), number, content)
    finally:
        os.close(number)


def _opened(path: str | Path) -> int:
    try:
        return open_regular(path)
    except FileNotFoundError:
        raise NotFound("the file does not exist", where=path, remedy="check the path") from None
    except OSError as failure:
        raise InvalidInput(str(failure.strerror), where=path, remedy="give a file that can be read") from None


def _object(url: str, bucket: S3Objects, key: str) -> _Object:
    found = bucket.about(key)
    if found is None:
        raise NotFound("the object does not exist", where=url, remedy="check the bucket and the key")
    return _Object(url, found.bytes, found.tag, bucket, key)
