"""Reading and writing of the records of tables in the folders of their datasets, below an instance's root.

On a disk, each folder of the path is opened relative to the one before, so that a link cannot lead out of the root. A
record is written to a temporary file in the same folder, flushed, and renamed. So it is complete or does not exist.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from deployer.errors import Corrupt, NotFound, Refused
from deployer.platform.storage.local_folders import opened, parts_of
from deployer.platform.storage.objects import Missing
from deployer.state.model.location import Location
from deployer.state.records.document import FOLDER, LARGEST

if TYPE_CHECKING:
    from deployer.platform.storage.s3_objects import S3Objects

_VERSIONS = "_versions"  #: Lance's folder of manifests, which every dataset has
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class RecordFiles(Protocol):
    """Access to the records of all datasets below one root."""

    def read(self, location: Location, name: str) -> bytes | None:
        """Returns one document of the dataset at `location`; None if it does not exist. Raises Corrupt and Refused."""
        ...

    def write(self, location: Location, name: str, data: bytes) -> bool:
        """Writes the document durably. Returns False, and writes nothing, if `location` does not have a dataset."""
        ...


class LocalRecords:
    """Access to records below a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, location: Location, name: str) -> bytes | None:
        where = f"{self._root}/{location}/{FOLDER}/{name}"
        try:
            with opened(self._root, parts_of(f"{location}/{FOLDER}")) as folder:
                descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _unreadable(error.strerror or str(error), where) from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise _unreadable("it is not a file", where)
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise _unreadable(f"it has more than {LARGEST:,} bytes", where)
        return data

    def write(self, location: Location, name: str, data: bytes) -> bool:
        try:
            with opened(self._root, parts_of(location)) as dataset:
                if not stat.S_ISDIR(os.stat(_VERSIONS, dir_fd=dataset, follow_symlinks=False).st_mode):
                    return False
                with suppress(FileExistsError):
                    os.mkdir(FOLDER, dir_fd=dataset)
                self._put(dataset, name, data)
                return True
        except FileNotFoundError:
            return False
        except NotADirectoryError:
            raise Refused(
                f"{FOLDER} of the dataset is not a folder, so no record is written there",
                where=f"{self._root}/{location}",
                remedy="check it, and remove it by hand",
            ) from None

    def _put(self, dataset: int, name: str, data: bytes) -> None:
        folder = os.open(FOLDER, _FOLDER, dir_fd=dataset)
        try:
            beside = f".{name}.{secrets.token_hex(16)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                with os.fdopen(os.open(beside, flags, 0o666, dir_fd=folder), "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                with suppress(FileNotFoundError):
                    os.unlink(beside, dir_fd=folder)
                raise
            with suppress(OSError):  # some file systems cannot flush a folder
                os.fsync(folder)
        finally:
            os.close(folder)


class S3Records:
    """Access to records below `s3://bucket/prefix`."""

    def __init__(self, root: str) -> None:
        self._root = root.rstrip("/")

    def read(self, location: Location, name: str) -> bytes | None:
        objects, path = self._objects(), f"{location}/{FOLDER}/{name}"
        try:
            if objects.size(path) > LARGEST:
                raise _unreadable(f"it has more than {LARGEST:,} bytes", f"{self._root}/{path}")
            return objects.get(path)
        except (Missing, NotFound):
            return None

    def write(self, location: Location, name: str, data: bytes) -> bool:
        objects = self._objects()
        if not objects.first_page(f"{location}/{_VERSIONS}/"):
            return False
        objects.put(f"{location}/{FOLDER}/{name}", data)
        return True

    def _objects(self) -> S3Objects:
        from deployer.platform.storage.s3_objects import S3Objects

        return S3Objects(self._root)


def records_at(root: str) -> RecordFiles:
    """Returns access to the records below a root, which is a folder or s3://bucket/prefix."""
    return S3Records(root) if root.startswith("s3://") else LocalRecords(Path(root))


def _unreadable(why: str, where: str) -> Corrupt:
    if why == os.strerror(errno.ELOOP):
        why = "it is a link"
    return Corrupt(f"the record of the table cannot be read: {why}", where=where, remedy="remove it by hand")
