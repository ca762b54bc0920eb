"""The bytes of a recording: a file of this machine, or an object in S3."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from deployer.errors import InvalidInput, NotFound
from deployer.platform.files.reading import open_regular
from deployer.platform.storage.s3_objects import S3Objects


class ByteSource(Protocol):
    """Ranges of bytes. `tag` differs where the content does: the ETag of an object; the time in nanoseconds of a file's
    last change."""

    @property
    def url(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def tag(self) -> str: ...

    def read(self, offset: int, length: int) -> bytes:
        """Returns that many bytes; fewer only at the end."""
        ...


@dataclass(frozen=True, slots=True)
class _File:
    url: str
    size: int
    tag: str
    number: int  #: of the open file

    def read(self, offset: int, length: int) -> bytes:
        return os.pread(self.number, length, offset)


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


@contextmanager
def open_source(url: str) -> Iterator[ByteSource]:
    """Opens a path, a `file://` URL or `s3://bucket/key` for the time of a block.

    Raises NotFound where there is nothing, InvalidInput for another kind of URL and for what is not a file.
    """
    parsed = urlsplit(url)
    if parsed.scheme == "s3":
        yield _object(url, S3Objects(f"s3://{parsed.netloc}"), parsed.path.lstrip("/"))
    elif parsed.scheme in ("", "file"):
        path = Path(unquote(parsed.path) if parsed.scheme else url).absolute()
        number = _opened(path)
        try:
            found = os.fstat(number)
            yield _File(path.as_uri(), found.st_size, str(found.st_mtime_ns), number)
        finally:
            os.close(number)
    else:
        raise InvalidInput(
            f"{parsed.scheme}:// is not a known kind of URL",
            where=url,
            remedy="give a path, file:// or s3://bucket/key",
        )


def _opened(path: Path) -> int:
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
