"""Files of a dataset that no version needs: data, deletion and index files that failed or killed work left."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deployer.datasets.dataset import open_dataset, versions_written
from deployer.datasets.storage.options import objects_at
from deployer.platform.storage.objects import ObjectInfo
from deployer.platform.system.failpoints import reached

if TYPE_CHECKING:
    import lance

WRITING = "_writing"  #: notes of tasks that write; the notes of a killed driver are not needed
_FOLDERS = ("data", "_deletions", "_indices", WRITING)


@dataclass(slots=True)
class Unit:
    """Files that a version needs together or not at all: a data file with its blobs, a deletion file, an index."""

    name: str
    files: list[ObjectInfo]

    @property
    def changed(self) -> float:
        return max(each.changed for each in self.files)


def unneeded(location: str, before: float) -> tuple[list[Unit], int]:
    """Returns the older units that no version has, and the number of younger ones."""
    left = _units(location)
    newest = open_dataset(location)
    for version in sorted(versions_written(location), reverse=True):
        if not left:  # the other versions, of which there may be thousands, are read only for the remaining units
            break
        for name in _needed_by(newest.checkout_version(version)):
            left.pop(name, None)
    old = [unit for _, unit in sorted(left.items()) if unit.changed < before]
    return old, len(left) - len(old)


def _units(location: str) -> dict[str, Unit]:
    found: dict[str, Unit] = {}
    objects = objects_at(location)
    for folder in _FOLDERS:
        for each in objects.described(folder):
            item, below, _ = each.path.removeprefix(f"{folder}/").partition("/")
            name = f"data/{item}.lance" if folder == "data" and below else f"{folder}/{item}"
            found.setdefault(name, Unit(name, [])).files.append(each)
    return found


def _needed_by(dataset: lance.LanceDataset) -> set[str]:
    needed = set()
    for fragment in dataset.get_fragments():
        metadata = fragment.metadata
        needed |= {f"data/{file.path}" for file in metadata.files}
        if metadata.deletion_file is not None:
            needed.add(metadata.deletion_file.path(metadata.id))
    return needed | {f"_indices/{part.uuid}" for index in dataset.describe_indices() for part in index.segments}


def remove(location: str, units: list[Unit]) -> None:
    """Removes the files of the units; each unit is removed as a whole."""
    objects = objects_at(location)
    for unit in units:
        objects.delete([each.path for each in unit.files])
        if "://" not in location:
            for folder in sorted({(Path(location) / each.path).parent for each in unit.files}, reverse=True):
                if folder.parent != Path(location):  # only an index or a file's blobs have a folder
                    shutil.rmtree(folder, ignore_errors=True)
            if unit.name.startswith("_indices/"):  # the files of an index may be in a folder below
                shutil.rmtree(Path(location) / unit.name, ignore_errors=True)
        reached("tables.collect.removed")
