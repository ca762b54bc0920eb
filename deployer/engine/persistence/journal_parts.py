"""The storage of a journal's bytes: one file that grows in a folder, numbered small objects in a bucket.

Objects are never changed: each `append` makes one object, after the previous one is known to exist. Their names begin
with an id of the run, so that a writer that was considered dead cannot add to another run's journal. When a journal is
removed, its first object is removed first: without it, the other objects do not count.
"""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path
from typing import Protocol

from deployer.engine.project.backend_url import Backend
from deployer.errors import Corrupt
from deployer.platform.files.private import create_file, is_shared, make_private_folder, sync_folder
from deployer.platform.files.reading import open_regular
from deployer.platform.storage.objects import ObjectStore

_NAME = re.compile(r"([0-9a-f]{32})\.([0-9]{8})")
_READERS = 16  #: parallel requests to read a journal


class JournalParts(Protocol):
    """The bytes of one stack's journal."""

    where: str  #: the place, for messages

    def exists(self) -> bool: ...

    def read(self) -> bytes | None:
        """Returns all appended bytes; None when there is no journal. A crash may have left an incomplete last line."""
        ...

    def append(self, data: bytes) -> None:
        """Waits until the data is durable. One caller at a time."""
        ...

    def remove(self) -> None: ...


def parts_in(backend: Backend, path: str) -> JournalParts:
    if backend.folder is not None:
        return InFile(backend.folder / path, backend.folder)
    return InObjects(backend.objects, path, backend.where(path))


class InFile:
    """Implements `JournalParts` with a file, which is private, as all files below `top`."""

    def __init__(self, path: Path, top: Path) -> None:
        self._path, self._top, self.where = path, top, str(path)
        self._file: int | None = None

    def exists(self) -> bool:
        return self._path.exists()

    def read(self) -> bytes | None:
        try:
            with os.fdopen(open_regular(self._path), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def append(self, data: bytes) -> None:
        is_new = self._file is None
        if self._file is None:
            make_private_folder(self._path.parent, self._top)
            self._file = create_file(self._path, shared=is_shared(self._top), flags=os.O_WRONLY | os.O_APPEND)
        os.write(self._file, data)
        os.fsync(self._file)
        if is_new:
            sync_folder(self._path.parent)

    def remove(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if self._path.exists():
            self._path.unlink()
            sync_folder(self._path.parent)


class InObjects:
    """Implements `JournalParts` with objects `FOLDER/RUN.NUMBER`."""

    def __init__(self, objects: ObjectStore, folder: str, where: str) -> None:
        self._objects, self._folder, self.where = objects, folder, where
        self._run, self._number = uuid.uuid4().hex, 0

    def exists(self) -> bool:
        return bool(self._names())

    def read(self) -> bytes | None:
        """Raises Missing when it is removed meanwhile."""
        names = self._names()
        if not names:
            return None
        from concurrent.futures import ThreadPoolExecutor  # few runs read a journal on S3

        with ThreadPoolExecutor(_READERS, thread_name_prefix="journal") as pool:
            return b"".join(pool.map(self._objects.get, names))

    def append(self, data: bytes) -> None:
        self._number += 1
        self._objects.put(self._path(self._run, self._number), data)

    def remove(self) -> None:
        paths = sorted(self._objects.list(self._folder))
        first = [path for path in paths if path.endswith(f"{1:08}")]
        self._objects.delete(first)
        self._objects.delete([path for path in paths if path not in first])

    def _names(self) -> list[str]:
        """Returns the journal's objects in order. Raises Corrupt where one in between is missing, or two runs wrote at
        once."""
        runs: dict[str, list[int]] = {}
        for path in self._objects.list(self._folder):
            if named := _NAME.fullmatch(path.rpartition("/")[2]):
                runs.setdefault(named[1], []).append(int(named[2]))
        whole = {run: sorted(numbers) for run, numbers in runs.items() if 1 in numbers}
        if len(whole) > 1:
            raise Corrupt(
                f"{len(whole)} runs wrote a journal at the same time",
                where=self.where,
                remedy="delete the journal of the run that was given up, then run `deployer up`",
            )
        for run, numbers in whole.items():
            if numbers != list(range(1, len(numbers) + 1)):
                raise Corrupt(
                    "a part of the journal is missing",
                    where=self.where,
                    remedy="move the journal away, and import what the parts after the gap name",
                )
            return [self._path(run, number) for number in numbers]
        return []

    def _path(self, run: str, number: int) -> str:
        return f"{self._folder}/{run}.{number:08}"
