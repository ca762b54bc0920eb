"""Notes of the files that the tasks of a write have written, beside the data.

By these notes, uncommitted files are removed. A task may be killed, or be one of two that do the same work; then no
message lists its files. So each attempt of a task notes each file as soon as it exists. The files of a killed driver
are found by the next attempt of the same batch of a stream, otherwise by `deployer table gc`.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from deployer.datasets.files.unreferenced_files import WRITING
from deployer.datasets.storage.options import objects_at
from deployer.errors import DeployerError
from deployer.platform.storage.objects import Missing
from deployer.platform.system.failpoints import reached

COMMITTING = "committing"  #: a note that the driver began to commit


@dataclass(slots=True)
class AttemptNotes:
    """The notes of one attempt of a task: it calls `add` for each file, with its path relative to the dataset."""

    location: str
    scope: str
    _paths: list[str] = field(default_factory=list)
    _name: str = field(default_factory=lambda: uuid.uuid4().hex)

    def add(self, path: str) -> None:
        reached("spark.task.file-written")
        self._paths.append(path)
        note = f"{WRITING}/{self.scope}.{self._name}.json"
        data = json.dumps({"files": self._paths}).encode()
        if "://" in self.location:
            objects_at(self.location).put(note, data)
        else:
            place = Path(self.location, note)  # not synced: after a failure of the machine, `table gc` removes the rest
            place.parent.mkdir(exist_ok=True)
            beside = place.with_suffix(".new")
            beside.write_bytes(data)
            beside.replace(place)
        reached("spark.task.file-noted")

    def remove_files(self) -> None:
        """Removes the files of an attempt that failed, and its note."""
        if self._paths:
            with contextlib.suppress(OSError, DeployerError):  # the driver or `table gc` removes them
                objects_at(self.location).delete([*self._paths, f"{WRITING}/{self.scope}.{self._name}.json"])


@dataclass(frozen=True, slots=True)
class WriteNotes:
    """The notes of all attempts of one write, for the driver."""

    location: str
    scope: str

    def begin_commit(self) -> None:
        """Notes that from now on the files may be committed, also by another process."""
        objects_at(self.location).put(f"{WRITING}/{self.scope}.{COMMITTING}", b"")

    @property
    def has_begun_commit(self) -> bool:
        return f"{WRITING}/{self.scope}.{COMMITTING}" in self._paths()

    def _paths(self) -> list[str]:
        found = objects_at(self.location).list(f"{WRITING}/")
        return [path for path in found if path.startswith(f"{WRITING}/{self.scope}.")]

    def remove_files(self, besides: Collection[str] = ()) -> None:
        """Removes the notes and all noted files that are not committed."""
        with contextlib.suppress(OSError, DeployerError):  # `table gc` removes the rest
            objects = objects_at(self.location)
            gone = []
            for path in self._paths():
                if path.endswith(".json"):
                    try:
                        note = json.loads(objects.get(path))
                    except (Missing, ValueError):
                        continue
                    gone += [each for each in note["files"] if each not in besides]
                gone.append(path)
            objects.delete(gone)
