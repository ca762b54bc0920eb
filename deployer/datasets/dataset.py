"""A table's Lance dataset, as far as the state store records it: versions, fragments, their files."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from deployer.datasets.errors import as_deployer_error, is_of_lance, missing_file, refused_by_storage, storage_errors
from deployer.datasets.storage.options import manifest_names, objects_at, storage_options
from deployer.errors import Corrupt, DeployerError, NotFound
from deployer.state.model.entities import TableEntry

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

_LARGEST = 2**64 - 1  # Lance names manifests by the distance from it, so that the newest is listed first


def dataset_location(root: str, entry: TableEntry) -> str:
    """Returns the location of the table's dataset: a path or URI."""
    return f"{root.rstrip('/')}/{entry.location}"


def latest_version(location: str) -> int:
    """Returns the newest version of the dataset, from the names of its manifests: nothing is opened.

    Raises NotFound when there is no dataset.
    """
    return version_of(newest_manifest(location))


def newest_manifest(location: str) -> str:
    """Returns the name of the manifest of the dataset's newest version. Raises NotFound when there is no dataset."""
    try:
        names = manifest_names(location)
    except (FileNotFoundError, NotADirectoryError):
        raise _no_dataset(location) from None
    except OSError as failure:
        raise as_deployer_error(failure, location) from failure
    newest = max(names, key=version_of, default="")
    if not version_of(newest):
        raise _no_dataset(location)
    return newest


def manifest_of(location: str, version: int) -> str:
    """Returns the name of the manifest of one of the newest versions. Raises NotFound when it does not exist."""
    newest_manifest(location)
    found = next((name for name in manifest_names(location) if version_of(name) == version), None)
    if found is None:
        raise NotFound(f"there is no version {version}", where=location, remedy="name one that `history` lists")
    return found


def load_lance() -> None:
    """Imports Lance, which takes a part of a second, so that the first call to a server does not wait for it."""
    import lance  # noqa: F401


def versions_written(location: str) -> dict[int, float]:
    """Returns the dataset's versions, and when their manifests were written, in seconds since 1970, as storage reports
    it.

    That is when they were committed, or later where the folder was copied. Nothing is opened.
    """
    found = objects_at(location).described("_versions/")
    written = {version_of(each.path.rpartition("/")[2]): each.changed for each in found}
    return {version: changed for version, changed in written.items() if version}


def version_of(manifest: str) -> int:
    """Returns the version in a manifest's name; 0 for other files and for detached versions."""
    stem, dot, suffix = manifest.partition(".")
    if not dot or suffix != "manifest" or not stem.isdecimal():
        return 0
    return _LARGEST - int(stem) if len(stem) == 20 else int(stem)


def open_dataset(
    location: str, version: int | None = None, *, metadata_cache_bytes: int | None = None
) -> lance.LanceDataset:
    """Returns the dataset at its newest or the given version. Raises NotFound for a dataset or version that is not
    there. `metadata_cache_bytes` limits what Lance keeps of the files that are read, by default to 1 GiB."""
    import lance

    _require_files(location)
    try:
        return lance.dataset(
            location,
            version=version,
            storage_options=storage_options(location),
            metadata_cache_size_bytes=metadata_cache_bytes,
        )
    except BaseException as failure:
        if not is_of_lance(failure):
            raise
        raise _explained(failure, location, version) from failure


def at_version(dataset: lance.LanceDataset, version: int) -> lance.LanceDataset:
    """Returns an open dataset at another version, which shares its caches. Raises NotFound for a version that is not
    there, Corrupt for one that cannot be read."""
    try:
        return dataset.checkout_version(version)
    except BaseException as failure:
        if not is_of_lance(failure):
            raise
        raise _explained(failure, str(dataset.uri), version) from failure


def create_dataset(
    location: str, schema: pa.Schema, data_storage_version: str, *, stable_row_ids: bool
) -> lance.LanceDataset:
    """Creates a dataset without rows. Raises DeployerError where storage refuses the write, and Lance's own failure
    otherwise."""
    import lance
    import pyarrow as pa

    with storage_errors(location):
        return lance.write_dataset(
            pa.Table.from_batches([], schema),  # empty_table() fails for extension types in structs
            location,
            mode="create",
            data_storage_version=data_storage_version,
            enable_stable_row_ids=stable_row_ids,
            storage_options=storage_options(location),
        )


def _require_files(location: str) -> None:
    """Raises Corrupt where a pipe or a device is among the manifests on a disk, because Lance would wait for it
    forever."""
    if "://" in location:
        return
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError), os.scandir(f"{location}/_versions") as found:
        for each in found:
            if not each.is_file() and (each.is_symlink() or not each.is_dir()):
                raise not_a_manifest(each.name, location)


def not_a_manifest(name: str, location: str) -> Corrupt:
    """Returns the error for a pipe, a device or a folder in the place of a manifest."""
    return Corrupt(
        f"the manifest {name} is not a file", where=location, remedy="find out what created it, or remove it"
    )


def _explained(failure: BaseException, location: str, version: int | None) -> DeployerError:
    if refused_by_storage(failure, location) is not None or "not found" not in str(failure).lower():
        return as_deployer_error(failure, location)
    if version is None:
        return _no_dataset(location)
    return NotFound(
        f"the dataset has no version {version} any more",
        where=location,
        remedy="choose one that `deployer history` lists",
    )


def _no_dataset(location: str) -> NotFound:
    return NotFound(
        "there is no Lance dataset",
        where=location,
        remedy="restore the folder from a backup, or delete the table: `deployer table delete TABLE --force`",
    )


@dataclass(frozen=True, slots=True)
class Fragment:
    """One fragment of a version: live rows, bytes of its data files, and the file that holds each Lance field id."""

    fragment_id: int
    rows: int
    bytes: int
    paths: frozenset[str]
    file_of: tuple[tuple[int, str], ...]
    elsewhere: frozenset[str] = frozenset()  #: those of the paths that are in another dataset, as in a shallow clone

    @property
    def own_paths(self) -> frozenset[str]:
        """The paths of files that are in the dataset's own folder."""
        return self.paths - self.elsewhere

    def files_of(self, fields: Iterable[int]) -> tuple[str | None, ...]:
        """Returns the data file of each field id; None where the fragment has no values for it."""
        where = dict(self.file_of)
        return tuple(where.get(field) for field in fields)


def fragments_of(dataset: lance.LanceDataset) -> dict[int, Fragment]:
    """Returns the fragments of the opened version by their id."""
    return {each.fragment_id: fragment_from(each.metadata) for each in dataset.get_fragments()}


class FragmentsById(Mapping[int, Fragment]):
    """The fragments of a version by their id, except those in `without`. A fragment is read only when it is looked up:
    commits touch few of many, and Lance copies the metadata of each fragment that it returns."""

    def __init__(self, dataset: lance.LanceDataset, without: Collection[int] = ()) -> None:
        self._dataset = dataset
        self._ids = dict.fromkeys(each for each in map(int, dataset.fragment_ids()) if each not in without)
        self._read: dict[int, Fragment] = {}

    def __getitem__(self, fragment_id: int) -> Fragment:
        if fragment_id not in self._ids:
            raise KeyError(fragment_id)
        if fragment_id not in self._read:
            self._read[fragment_id] = fragment_of(self._dataset, fragment_id)
        return self._read[fragment_id]

    def __iter__(self) -> Iterator[int]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, fragment_id: object) -> bool:
        return fragment_id in self._ids


def fragment_of(dataset: lance.LanceDataset, fragment_id: int) -> Fragment:
    """Returns one fragment of the opened version."""
    return fragment_from(dataset.get_fragment(fragment_id).metadata)


def fragment_from(metadata: Any) -> Fragment:
    """Returns the fragment of Lance's metadata."""
    files = [(file, _path_of(file)) for file in metadata.files]
    return Fragment(
        metadata.id,
        metadata.num_rows,
        sum(file.file_size_bytes or 0 for file, _ in files),
        frozenset(path for _, path in files),
        tuple((field, path) for file, path in files for field in file.fields),
        frozenset(path for file, path in files if getattr(file, "base_id", None) is not None),
    )


def _path_of(file: Any) -> str:
    """Returns the path of Lance's data file. Lance's own property makes a class at each call. That takes longer than
    reading the rest of a fragment, and the class stays in memory until the garbage collector runs."""
    path: str | None = getattr(file, "_path", None)
    return str(file.path) if path is None else path


def require_files(location: str, paths: Iterable[str]) -> None:
    """Raises Corrupt for the first of a dataset's data files that does not exist."""
    names = {quote(path, safe=""): path for path in paths}  # as Lance calls them on storage
    if not names:
        return
    if "://" in location:
        there = {each.path.rpartition("/")[2] for each in objects_at(location).described("data/")}
        missing = sorted(names.keys() - there)
    else:
        folder = Path(location, "data")
        missing = sorted(name for name in names if not (folder / name).is_file())
    if missing:
        raise missing_file(f"{location}/data/{names[missing[0]]}")


def field_ids(dataset: lance.LanceDataset, columns: Iterable[str]) -> tuple[int, ...]:
    """Lance's ids of top-level columns; columns that the dataset does not have are left out."""
    return tuple(ids_by_name(dataset, columns).values())


def ids_by_name(dataset: lance.LanceDataset, columns: Iterable[str]) -> dict[str, int]:
    """Returns Lance's ids of top-level columns by name; columns that the dataset does not have are left out."""
    ids = {field.name(): field.id() for field in dataset.lance_schema.fields()}
    return {name: ids[name] for name in columns if name in ids}


def ids_by_column(dataset: lance.LanceDataset) -> dict[int, tuple[int, ...]]:
    """Returns Lance's ids of each top-level column and of all fields below it, by the id of the column."""

    def below(field: Any) -> Iterator[int]:
        yield field.id()
        for child in field.children():
            yield from below(child)

    return {field.id(): tuple(below(field)) for field in dataset.lance_schema.fields()}
