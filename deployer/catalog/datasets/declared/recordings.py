"""Finds the new and changed recordings below the sources of a declared dataset, and registers the new ones."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from deployer.catalog.datasets.declared.live import declared_places, live_of
from deployer.catalog.datasets.model.record import DatasetRecord, folder_of
from deployer.catalog.datasets.model.registry import Datasets
from deployer.catalog.datasets.model.rows import Task
from deployer.catalog.datasets.reading import SUFFIX, Source
from deployer.catalog.datasets.reads.index import Indexes
from deployer.catalog.datasets.registration import OnDuplicate, Registration
from deployer.datasets.files.named_rows import read_rows
from deployer.errors import DeployerError, InvalidInput, NotFound
from deployer.platform.storage.s3_objects import S3Objects
from deployer.specs.types.dataset import DatasetSpec, RecordingSource
from deployer.specs.values.root import resolve_root


@dataclass(frozen=True, slots=True)
class FoundRecordings:
    """The recordings below the sources of a dataset.

    `new` are the recordings that are not registered, and `bytes` is their total size. `changed` are the files that
    changed after their registration. `unknown` has an error message for each source that could not be listed.
    """

    new: tuple[Source, ...] = ()
    bytes: int = 0
    changed: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Listed:
    url: str
    size: int
    tag: str


def declared_recordings(root: str, record: DatasetRecord) -> FoundRecordings:
    """Returns the recordings below the sources that the dataset declared when it was last applied. Raises InvalidInput
    for a dataset without sources."""
    spec, places = live_of(record).spec, declared_places(record)
    if not spec.recordings:
        raise InvalidInput(
            "the dataset declares no sources", where=record.name, remedy="name files, or declare `sources` in its spec"
        )
    return _found(root, record, spec.recordings, places)


def find_recordings(root: str, record: DatasetRecord | None, spec: DatasetSpec, project: Path) -> FoundRecordings:
    """Returns the recordings below the sources of a spec. Relative sources are below the folder `project`. `record` is
    None for a dataset that does not exist yet."""
    places = {each.prefix: resolve_root(project, each.prefix) for each in spec.recordings}
    return _found(root, record, spec.recordings, places)


def _found(
    root: str, record: DatasetRecord | None, sources: Sequence[RecordingSource], places: Mapping[str, str]
) -> FoundRecordings:
    rows = None if record is None or not record.layers.rows else Indexes(root).of(record)
    known = set[tuple[str, str]]()
    if rows is not None:
        known = set(zip(rows.rows["url"].to_pylist(), rows.rows["layer"].to_pylist(), strict=True))
    if record is not None:
        known |= _skipped(root, record)
    registered = dict[str, tuple[int, str]]()
    if rows is not None:
        live = rows.layers
        columns = (live[name].to_pylist() for name in ("url", "size", "tag"))
        registered = {url: (size, tag) for url, size, tag in zip(*columns, strict=True)}
    new, changed, unknown, total = list[Source](), list[str](), list[str](), 0
    for source in sources:
        try:
            for each in _listed(places.get(source.prefix, source.prefix)):
                if (each.url, source.layer) not in known:
                    new.append(Source(each.url, source.layer))
                    total += each.size
                elif registered.get(each.url, (each.size, each.tag)) != (each.size, each.tag):
                    changed.append(each.url)
        except (DeployerError, OSError) as failure:
            unknown.append(f"{source.prefix}: {failure}")
    return FoundRecordings(tuple(new), total, tuple(changed), tuple(unknown))


def register_recordings(datasets: Datasets, dataset_id: str, found: FoundRecordings) -> list[Task]:
    """Registers the new recordings; returns the task of each. A layer that its segment already has stays unchanged."""
    if not found.new:
        return []
    return Registration(datasets, Indexes(datasets.root)).register(dataset_id, found.new, OnDuplicate.SKIP)


def _skipped(root: str, record: DatasetRecord) -> set[tuple[str, str]]:
    """Returns the URLs and layers of all files whose registration succeeded, including files that were skipped because
    their layer existed."""
    tasks = read_rows(f"{folder_of(root, record.dataset_id)}/tasks.lance", record.tasks.named)
    if tasks is None:
        return set()
    done = tasks.filter(tasks["error"].is_null())
    return set(zip(done["url"].to_pylist(), done["layer"].to_pylist(), strict=True))


def _listed(place: str) -> Iterator[_Listed]:
    """Yields the recordings below a place, sorted by name. Raises NotFound where the folder does not exist."""
    if "://" in place:
        parsed = urlsplit(place)
        bucket, key = f"s3://{parsed.netloc}", parsed.path.strip("/")
        for each in sorted(S3Objects(bucket).described(f"{key}/" if key else ""), key=lambda found: found.path):
            if each.path.lower().endswith(SUFFIX):
                yield _Listed(f"{bucket}/{each.path}", each.bytes, each.tag)
        return
    if not Path(place).is_dir():
        raise NotFound("the folder does not exist", remedy="create it, or correct the source")
    for folder, folders, files in os.walk(place):
        folders.sort()
        for name in sorted(files):
            if name.lower().endswith(SUFFIX):
                path = Path(folder) / name
                about = path.stat()
                yield _Listed(path.as_uri(), about.st_size, str(about.st_mtime_ns))
