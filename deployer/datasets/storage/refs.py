"""Versions, tags and branches of a Lance dataset: files below `_versions` and `_refs`, which any program may have
written.

Nothing else in deployer asks Lance for them. Each function raises Corrupt for files that Lance cannot read, and the
errors of storage.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from deployer.datasets.errors import first_line, is_of_lance, refused_by_storage
from deployer.errors import Corrupt, DeployerError

if TYPE_CHECKING:
    import lance


def versions_of(dataset: lance.LanceDataset) -> dict[int, dt.datetime]:
    """Returns the versions that the dataset keeps, ascending, and when each was committed (UTC)."""
    with _refs_errors(dataset, "versions", "_versions"):
        found = dataset.versions()
        # Lance gives local time without a zone
        committed = {int(each["version"]): each["timestamp"].astimezone(dt.UTC) for each in found}
    return dict(sorted(committed.items()))


def tags_of(dataset: lance.LanceDataset) -> dict[str, int]:
    """Returns the version of each tag, by its name."""
    with _refs_errors(dataset, "tags", "_refs/tags"):
        return {name: int(tag["version"]) for name, tag in dataset.tags.list().items()}


def branch_points(dataset: lance.LanceDataset) -> set[int]:
    """Returns the versions that branches of the dataset begin at."""
    with _refs_errors(dataset, "branches", "_refs/branches"):
        return {int(branch["parent_version"]) for branch in dataset.branches.list().values()}


def set_tags(dataset: lance.LanceDataset, wanted: Mapping[str, int]) -> None:
    """Makes these tags, or moves them. A tag stays unchanged if its version was removed or another process makes it."""
    there = tags_of(dataset)
    for name, version in wanted.items():
        with _refs_errors(dataset, "tags", "_refs/tags"), suppress(ValueError, OSError):
            if name not in there:
                dataset.tags.create(name, version)
            elif there[name] != version:
                dataset.tags.update(name, version)


def delete_tag(dataset: lance.LanceDataset, name: str) -> None:
    """Deletes the tag; does nothing where another process deleted it."""
    with _refs_errors(dataset, "tags", "_refs/tags"), suppress(ValueError, OSError):
        dataset.tags.delete(name)


@contextmanager
def _refs_errors(dataset: lance.LanceDataset, what: str, folder: str) -> Iterator[None]:
    try:
        yield
    except BaseException as failure:
        if isinstance(failure, DeployerError) or not is_of_lance(failure):
            raise
        location = str(dataset.uri)
        raise refused_by_storage(failure, location) or Corrupt(
            f"the {what} of the dataset cannot be read: {first_line(failure)}",
            where=f"{location}/{folder}",
            remedy="remove the file there that Lance did not write, or restore the folder from a backup",
        ) from failure
