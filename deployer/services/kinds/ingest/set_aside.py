"""The files of a table's `ingest` that are not loaded: files set aside with their reasons, and changed loaded files.

They are in one document. Each change of it increases its number, so that a change of an outdated document is detected
and made again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace

from deployer.datasets.storage.job_folders import FILE_LISTS
from deployer.datasets.storage.options import objects_at
from deployer.errors import Conflict, Corrupt, DeployerError
from deployer.platform.files.reading import parse_json
from deployer.platform.storage.envelope import seal, unseal
from deployer.platform.storage.objects import Missing

_NAME = re.compile(r"aside-(?P<number>[0-9]{10})")
ATTEMPTS = 20
LONGEST = 600  #: the most characters of a reason


@dataclass(frozen=True, slots=True)
class SetAside:
    """A file that could not be loaded at `at` (ms). It is tried again once its `tag` differs, or on request."""

    path: str
    tag: str
    bytes: int
    reason: str
    at: int
    run_id: str


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A loaded file that has changed; its new content is not loaded. `at` is when the change was first seen (ms)."""

    path: str
    loaded_tag: str
    tag: str
    bytes: int
    at: int


@dataclass(frozen=True, slots=True)
class NotLoaded:
    """The files that were not loaded, by path."""

    files: Mapping[str, SetAside] = field(default_factory=dict)
    changed: Mapping[str, ChangedFile] = field(default_factory=dict)

    def without(self, paths: Collection[str]) -> NotLoaded:
        """Returns the files and changed files whose paths are not in `paths`."""
        gone = frozenset(paths)
        return NotLoaded(
            {path: each for path, each in self.files.items() if path not in gone},
            {path: each for path, each in self.changed.items() if path not in gone},
        )

    def with_files(self, files: Collection[SetAside]) -> NotLoaded:
        """Returns the list with more files set aside."""
        return replace(self, files={**self.files, **{each.path: each for each in files}})


@dataclass(frozen=True, slots=True)
class NotLoadedFiles:
    """The stored document of one table."""

    root: str
    table_id: str

    def read(self) -> NotLoaded:
        """Returns the files that are not loaded. Raises Corrupt for a damaged document."""
        return self._newest()[1]

    def change(self, change: Callable[[NotLoaded], NotLoaded]) -> NotLoaded:
        """Stores a change of the newest document and returns the new one.

        Calls `change` again where another process stored a document first. Raises Conflict where others change it
        continuously.
        """
        for _ in range(ATTEMPTS):
            number, now = self._newest()
            after = change(now)
            if after == now:
                return now
            data = json.dumps(
                {
                    "format": 1,
                    "files": [asdict(each) for each in after.files.values()],
                    "changed": [asdict(each) for each in after.changed.values()],
                },
                separators=(",", ":"),
            )
            objects = objects_at(self.root)
            if objects.replace(self._path(number + 1), seal(data.encode()), None) is not None:
                objects.delete([self._path(number)] if number else [])
                return after
        raise Conflict(
            "other runs keep changing the files that were set aside", where=self._path(0), remedy="try again"
        )

    def _newest(self) -> tuple[int, NotLoaded]:
        for _ in range(ATTEMPTS):
            names = (path.rpartition("/")[2] for path in objects_at(self.root).list(f"{FILE_LISTS}/{self.table_id}"))
            number = max((int(found["number"]) for name in names if (found := _NAME.fullmatch(name))), default=0)
            if not number:
                return 0, NotLoaded()
            path = self._path(number)
            try:
                data = unseal(objects_at(self.root).get(path), f"{self.root}/{path}")
            except Missing:
                continue  # another process has stored a newer one
            try:
                form = parse_json(data.decode())
                aside, changed = (
                    [SetAside(**each) for each in form["files"]],
                    [ChangedFile(**each) for each in form["changed"]],
                )
            except (ValueError, KeyError, TypeError):
                raise Corrupt(
                    "it is not a list of files that were set aside",
                    where=f"{self.root}/{path}",
                    remedy="remove it: the next run sets aside again what cannot be loaded",
                ) from None
            return number, NotLoaded({each.path: each for each in aside}, {each.path: each for each in changed})
        raise DeployerError("the files that were set aside keep changing", where=self.root, remedy="try again")

    def _path(self, number: int) -> str:
        return f"{FILE_LISTS}/{self.table_id}/aside-{number:010d}"
