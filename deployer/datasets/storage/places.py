"""The places of an instance's data under its root, and the only removals there."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from deployer.datasets.storage.options import objects_at
from deployer.errors import Refused
from deployer.platform.storage.local_folders import names_in, opened, parts_of, remove_folder
from deployer.platform.text.visible import shortened
from deployer.state.model.location import Location

NOTES = "_rewrite"  #: the folder for notes of a rewrite, in the dataset that it writes; Lance ignores it

#: what a dataset's folder holds beside Lance's names, which begin with `_`, and `_rewrite`
_OF_DATASETS = frozenset({"data", "tree", ".DS_Store"})
_MANIFESTS = "_versions"  #: removed first, so that an interrupted removal does not leave a dataset
_FOLDERS_OF_LANCE = ("_versions", "_transactions", "_refs", "_deletions", "_indices", "data", "tree")


def dataset_uri(root: str, location: str) -> str:
    """Returns the dataset's URI for Lance."""
    return f"{root.rstrip('/')}/{location}"


def erase_dataset(root: str, location: Location) -> None:
    """Removes the files of the dataset at `location`; does nothing when they do not exist.

    Only `removal` may call this. Raises Refused, before anything is removed, where the path contains a link or the
    folder holds files that do not belong to a dataset. The folder of its database stays, empty or not: another process
    may be creating a table in it at this moment.
    """
    location = Location(location)
    require_erasable(root, location)
    if "://" not in root:
        if not os.path.lexists(Path(root) / location):
            return
        with suppress(Refused):  # a link, which is removed with the folder
            remove_folder(Path(root), f"{location}/{_MANIFESTS}")
        remove_folder(Path(root), location)
        return
    objects = objects_at(root)
    found = objects.list(f"{location}/")
    if outside := [each for each in found if not each.startswith(f"{location}/")]:
        raise Refused(
            f"the bucket lists {shortened(outside[0])} below {location}",
            where=root,
            remedy="check it, then try again",
        )
    _refuse_other_content(root, location, {each.removeprefix(f"{location}/").partition("/")[0] for each in found})
    manifests = [each for each in found if each.startswith(f"{location}/{_MANIFESTS}/")]
    objects.delete(manifests)
    objects.delete(set(found).difference(manifests))


def require_erasable(root: str, location: Location) -> None:
    """Raises Refused in the same cases as `erase_dataset`, for a dataset on a disk. In a bucket, the listing shows
    them."""
    if "://" not in root:
        _refuse_other_content(root, location, names_in(Path(root), location))


def require_no_links(root: str, location: Location) -> None:
    """Raises Refused where a folder of the dataset's path on a disk, or one of Lance's folders in it, is a link: a
    removal within would remove files elsewhere."""
    if "://" in root:
        return
    with suppress(FileNotFoundError), opened(Path(root), parts_of(location)) as folder:
        for name in _FOLDERS_OF_LANCE:
            with suppress(FileNotFoundError):
                if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                    raise Refused(
                        f"{name} of the dataset is a link, which may lead out of the lake, so nothing is removed there",
                        where=f"{root}/{location}",
                        remedy="put the folder itself in its place",
                    )


def has_notes(root: str, location: Location) -> bool:
    """Returns whether a rewrite made the dataset, according to its notes, or the folder does not exist."""
    if "://" in root:
        return bool(objects_at(dataset_uri(root, location)).list(f"{NOTES}/"))
    found = names_in(Path(root), location)
    return not found or NOTES in found


def has_data_files(root: str, location: Location) -> bool:
    """Returns whether the dataset's folder has data files: one that was just created holds none."""
    return bool(objects_at(dataset_uri(root, location)).list("data"))


def datasets_beside(root: str, location: Location, table_id: str) -> list[Location]:
    """Returns the datasets in the folder of `location` that carry the table's id: the dataset itself and those that the
    table's rewrites made."""
    folder = location.rpartition("/")[0]
    if "://" not in root:
        names: Iterable[str] = names_in(Path(root), folder) if folder else ()
    else:
        found = objects_at(root).list(location.base(table_id))
        names = {path.removeprefix(f"{folder}/").partition("/")[0] for path in found}
    paths = (f"{folder}/{name}" for name in sorted(names))
    valid = (Location(path) for path in paths if path.endswith(".lance") and Location.fault(path) is None)
    return [each for each in valid if each.carries(table_id) and each.base(table_id) == location.base(table_id)]


def remove_within(location: str, folder: str) -> None:
    """Removes one of deployer's own folders in the dataset at `location`, a path or URI, if it exists."""
    if "://" not in location:
        whole = Path(location)
        remove_folder(whole.parent, f"{whole.name}/{folder}")
        return
    objects = objects_at(location)
    objects.delete(objects.list(f"{folder}/"))


def remove_empty_root(root: str) -> None:
    """Removes the empty folders of databases, and the root folder if it is then empty. Does nothing for buckets."""
    path = Path(root)
    if "://" in root or not path.exists():
        return
    for folder in [*path.iterdir(), path]:
        if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
            folder.rmdir()


def _refuse_other_content(root: str, location: Location, names: Iterable[str]) -> None:
    """Raises Refused for a folder with unknown names: it is not a dataset, or is more than a dataset."""
    others = [name for name in names if not name.startswith(("_", ".nfs")) and name not in _OF_DATASETS]
    if others:
        shown = ", ".join(map(shortened, sorted(others)[:3])) + (", …" if len(others) > 3 else "")
        raise Refused(
            f"it holds {shown}, which no dataset has, so it is not removed",
            where=dataset_uri(root, location),
            remedy="check the folder, and move or delete by hand what does not belong there",
        )
