"""Parts of the proof of an erasure, which Spark's tasks and this process run in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from deployer.datasets.files.writer import WrittenFragment
from deployer.errors import DeployerError
from deployer.platform.storage.objects import ObjectInfo
from deployer.services.erasure.scan import file_has_any
from deployer.tables.rows.tasks import TASK_ROWS

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

TASK_BYTES = 256 * 2**20  #: bytes of the files of one task, unless one file is larger


@dataclass(frozen=True, slots=True)
class SearchTask:
    """Searches files below `folder` for byte strings. `location` and `version` are the table's dataset's; `rows` are
    about those that the files have."""

    location: str
    version: int
    folder: str
    paths: tuple[str, ...]
    sought: frozenset[bytes]
    rows: int

    def done(self, _: LanceDataset) -> SearchDone:
        """Returns the files that have one of the strings."""
        try:
            return SearchDone(tuple(path for path in self.paths if file_has_any(self.folder, path, self.sought)))
        except DeployerError as error:
            return SearchDone(error=error)


@dataclass(frozen=True, slots=True)
class SearchDone:
    """Files that have one of the byte strings, or the error that the task ended with."""

    paths: tuple[str, ...] = ()
    written: tuple[WrittenFragment, ...] = ()  #: always empty
    error: DeployerError | None = None


@dataclass(frozen=True, slots=True)
class StayingTask:
    """Finds which of the `values` rows of some fragments have, by column."""

    location: str
    version: int
    fragment_ids: tuple[int, ...]
    values: Mapping[str, frozenset[bytes]]
    rows: int

    def done(self, dataset: LanceDataset) -> StayingDone:
        """Returns the values that live rows have; `dataset` is open at `version`."""
        try:
            return StayingDone({name: self._kept(dataset, name, found) for name, found in self.values.items()})
        except DeployerError as error:
            return StayingDone(error=error)

    def _kept(self, dataset: LanceDataset, name: str, found: frozenset[bytes]) -> frozenset[bytes]:
        kind = dataset.schema.field(name).type
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        wanted = pa.array([each.decode() if is_text else each for each in sorted(found)], kind)
        fragments = [dataset.get_fragment(number) for number in self.fragment_ids]
        kept: set[bytes] = set()
        for batch in dataset.scanner(columns=[name], fragments=fragments).to_batches():
            column = batch.column(0)
            for value in pc.unique(column.filter(pc.is_in(column, wanted))).to_pylist():
                kept.add(value.encode() if isinstance(value, str) else bytes(value))
        return frozenset(kept)


@dataclass(frozen=True, slots=True)
class StayingDone:
    """The values that rows have, by column, or the error that the task ended with."""

    values: Mapping[str, frozenset[bytes]] = field(default_factory=dict)
    written: tuple[WrittenFragment, ...] = ()  #: always empty
    error: DeployerError | None = None


def staying_tasks(
    location: str, dataset: LanceDataset, values: Mapping[str, frozenset[bytes]]
) -> Iterator[StayingTask]:
    """Yields tasks that search for the values in all fragments."""
    ids, rows = list[int](), 0
    for fragment in dataset.get_fragments() if values else ():
        ids.append(fragment.fragment_id)
        rows += int(fragment.metadata.physical_rows)
        if rows >= TASK_ROWS:
            yield StayingTask(location, int(dataset.version), tuple(ids), values, rows)
            ids, rows = [], 0
    if ids:
        yield StayingTask(location, int(dataset.version), tuple(ids), values, rows)


def grouped_files(files: Iterable[ObjectInfo]) -> Iterator[tuple[str, ...]]:
    """Yields the paths of files that one task searches."""
    paths, size = list[str](), 0
    for each in files:
        if paths and size + each.bytes > TASK_BYTES:
            yield tuple(paths)
            paths, size = [], 0
        paths.append(each.path)
        size += each.bytes
    if paths:
        yield tuple(paths)
