"""Named objects of bytes, such as snapshots: files of a folder here, a bucket behind the same protocol.

obstore's LocalStore renames into place without a promised fsync: a power failure could leave a pointer to an empty
file; `LocalObjects` writes plain files durably instead.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from deployer.platform.files.private import is_shared, make_folder, make_private_folder, new_file_beside, sync_folder
from deployer.platform.files.reading import open_regular
from deployer.platform.storage.local_folders import remove_files


class Missing(Exception):
    """The object does not exist."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object without its content; `changed` is in seconds since 1970. `tag` is the bucket's tag of its content, and
    empty for files."""

    path: str
    bytes: int
    changed: float
    tag: str = ""


class ObjectReader(Protocol):
    """The reading half of a store of objects. Paths are relative, separated by `/`."""

    def get(self, path: str) -> bytes:
        """Raises Missing."""
        ...

    def tagged(self, path: str) -> tuple[bytes, str] | None:
        """Returns an object and a tag of its content; None when there is none."""
        ...

    def size(self, path: str) -> int:
        """Returns the bytes of an object. Raises Missing."""
        ...

    def list(self, prefix: str) -> Sequence[str]:
        """Returns the paths of all objects in the folder `prefix` and below."""
        ...

    def described(self, prefix: str) -> Sequence[ObjectInfo]:
        """Returns all objects in the folder `prefix` and below."""
        ...


class ObjectStore(ObjectReader, Protocol):
    """The reading and the writing half of a store of objects."""

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Puts an object, and replaces an existing one. When this returns, the object outlives the process. A `durable`
        object also survives a power failure; another may then be lost or damaged."""
        ...

    def replace(self, path: str, data: bytes, tag: str | None, *, durable: bool = True) -> str | None:
        """Replaces the object with this tag (None: creates it), and returns the new tag; None where the object has
        another tag now.

        `durable` as for `put`.
        """
        ...

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes the existing objects of the paths. Raises Refused for a path that may lead out of the store's own
        folder."""
        ...


class LocalObjects:
    """Objects as files below a folder: written beside, fsynced, renamed into place, the folder fsynced; without the
    fsyncs where they need not be durable.

    `private` is the folder below which only the owner has access (see `files.private`). If omitted, as for the files of
    datasets, the umask sets who may use the objects.
    """

    def __init__(self, root: Path, *, keeps_folders: bool = False, private: Path | None = None) -> None:
        self._root, self._keeps_folders, self._private = root, keeps_folders, private

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self._put(path, data, lambda beside, target: beside.replace(target), durable=durable)

    def get(self, path: str) -> bytes:
        try:
            with os.fdopen(open_regular(self._root / path), "rb") as file:
                return file.read()
        except FileNotFoundError:
            raise Missing(path) from None

    def tagged(self, path: str) -> tuple[bytes, str] | None:
        try:
            data = self.get(path)
        except Missing:
            return None
        return data, _tag(data)

    def replace(self, path: str, data: bytes, tag: str | None, *, durable: bool = True) -> str | None:
        """Implements the protocol. Two processes that replace the same object at the same time may both succeed;
        callers take a lock where that matters."""
        if tag is None:
            try:
                self._put(path, data, lambda beside, target: target.hardlink_to(beside), durable=durable)
            except FileExistsError:
                return None
            return _tag(data)
        found = self.tagged(path)
        if found is None or found[1] != tag:
            return None
        self.put(path, data, durable=durable)
        return _tag(data)

    def size(self, path: str) -> int:
        try:
            return (self._root / path).stat().st_size
        except FileNotFoundError:
            raise Missing(path) from None

    def list(self, prefix: str) -> Sequence[str]:
        # os.walk skips folders that other processes remove meanwhile; Path.rglob raises an error
        found: list[str] = []
        for folder, _, names in os.walk(self._root / prefix):
            below = Path(folder).relative_to(self._root).as_posix()  # once for each folder: some hold 10,000 files
            found += names if below == "." else [f"{below}/{name}" for name in names]
        return found

    def described(self, prefix: str) -> Sequence[ObjectInfo]:
        found = []
        for path in self.list(prefix):
            with suppress(FileNotFoundError):  # another process is removing it
                about = os.stat(f"{self._root}/{path}")  # noqa: PTH116 (a dataset has 10,000 files and more)
                found.append(ObjectInfo(path, about.st_size, about.st_mtime))
        return found

    def delete(self, paths: Iterable[str]) -> None:
        with suppress(FileNotFoundError):
            remove_files(self._root, paths, keeps_folders=self._keeps_folders)

    def _put(self, path: str, data: bytes, place: Callable[[Path, Path], object], *, durable: bool = True) -> None:
        target = self._root / path
        opened, beside = self._opened(target)
        try:
            with opened as file:
                file.write(data)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            place(beside, target)
        finally:
            beside.unlink(missing_ok=True)
        if durable:
            sync_folder(target.parent)

    def _opened(self, target: Path) -> tuple[BinaryIO, Path]:
        """Returns a new file beside the target, and makes the folder; again if a `delete` removes the empty folder
        meanwhile."""
        while True:
            with suppress(FileNotFoundError):
                if self._private is not None:
                    make_private_folder(target.parent, self._private)
                    descriptor, beside = new_file_beside(target, shared=is_shared(self._private))
                    return os.fdopen(descriptor, "wb"), beside
                make_folder(target.parent)
                beside = target.with_name(f".{target.name}.{secrets.token_hex(16)}")
                return beside.open("xb"), beside


def _tag(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
