"""What of a dataset holds rows of a condition: data files by reading them, rows that are deleted in them included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from deployer.datasets.dataset import open_dataset, versions_written
from deployer.datasets.errors import is_of_lance
from deployer.datasets.ordering.key_ranges import comparable, key_value
from deployer.datasets.storage.options import objects_at
from deployer.errors import DeployerError
from deployer.platform.storage.objects import Missing
from deployer.state.model.keys import encode_key
from deployer.tables.read.typed_texts import with_typed_texts
from deployer.tables.read.zoned_literals import with_instants

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

SHORTEST = 6  #: bytes of a value that is searched for: shorter ones are found by chance
MOST_VALUES = 10_000  #: distinct values, and row keys, that are kept
SEARCHED = 200  #: values that files are searched for
CHUNK = 64 * 2**20  #: bytes of a file on a disk that are in memory at once

#: Rows of the condition in fragments that were read, by the dataset and the data files of each, which never change.
Counts = dict[tuple[str, tuple[str, ...]], int | None]


@dataclass(frozen=True, slots=True)
class VersionFiles:
    """What a version refers to: data files, and parts of indexes. `rows` are those of the condition in its data files,
    deleted ones included; None where the version lacks a column of the condition, and no other version tells."""

    version: int
    rows: int | None
    files: frozenset[str]
    segments: frozenset[str]


@dataclass(frozen=True, slots=True)
class DatasetScan:
    """A dataset of a table. `holding` are the versions that hold rows of the condition, or their values."""

    number: int
    location: str
    versions: tuple[VersionFiles, ...] = ()
    holding: frozenset[int] = frozenset()
    files: frozenset[str] = frozenset()  #: data files that hold rows of the condition
    unknown: frozenset[int] = frozenset()  #: those of `holding` of which it is not known

    @property
    def rows(self) -> int:
        """The most rows of the condition that one version holds."""
        return max((each.rows or 0 for each in self.versions), default=0)


@dataclass(slots=True)
class Values:
    """What is looked for of rows of the condition: values of text and binary `columns`, and encoded row keys.

    At most MOST_VALUES of each are kept.
    """

    columns: frozenset[str]
    row_keys: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()  #: of the row keys
    found: dict[str, set[bytes]] = field(default_factory=dict)
    keys: set[bytes] = field(default_factory=set)
    counts: Counts = field(default_factory=dict)

    @property
    def read(self) -> frozenset[str]:
        """The columns that are read."""
        return self.columns | {*self.row_keys}

    def add(self, batch: pa.RecordBatch) -> None:
        names = {*batch.schema.names}
        for name in self.columns & names:
            values = self.found.setdefault(name, set())
            for value in pc.unique(batch.column(name)).to_pylist():
                data = value.encode() if isinstance(value, str) else bytes(value or b"")
                if len(data) >= SHORTEST and len(values) < MOST_VALUES:
                    values.add(data)
        if self.row_keys and names.issuperset(self.row_keys) and len(self.keys) < MOST_VALUES:
            columns = [comparable(batch.column(name)) for name in self.row_keys]
            for row in range(min(batch.num_rows, MOST_VALUES)):
                if all(column[row].is_valid for column in columns):
                    self.keys.add(encode_key(self.kinds, [key_value(column[row]) for column in columns]))

    @property
    def all(self) -> frozenset[bytes]:
        return frozenset(each for values in self.found.values() for each in values)


def searchable(schema: pa.Schema, names: Sequence[str]) -> frozenset[str]:
    """Returns those of the columns whose values are stored as their bytes."""
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return frozenset(name for name in names if name in schema.names and any(k(schema.field(name).type) for k in kinds))


def scan_dataset(
    number: int, location: str, where: str, values: Values, sought: frozenset[bytes] = frozenset()
) -> DatasetScan:
    """Looks through all versions of a dataset; each data file is read once, however many versions have it.

    `values` get those of the rows that are found. A version whose manifest or transaction has one of these or of the
    `sought` bytes, such as in the predicate of a deletion, holds them too.
    """
    newest = open_dataset(location)
    counts: dict[tuple[str, ...], int | None] = {}
    known = values.counts
    opened: list[tuple[int, list[tuple[str, ...]], dict[str, frozenset[int]], list[int]]] = []
    for version in sorted(versions_written(location), reverse=True):
        dataset = newest if version == newest.version else newest.checkout_version(version)
        fragments = dataset.get_fragments()
        names = [tuple(file.path for file in each.metadata.files) for each in fragments]
        for fragment, files in zip(fragments, names, strict=True):
            if files not in counts:
                if (location, files) not in known:
                    known[location, files] = _count(dataset, fragment, where, values)
                counts[files] = known[location, files]
        opened.append((version, names, _segments(dataset), [each.fragment_id for each in fragments]))
    counts = _resolved(counts)
    dirty_files = {file for files, rows in counts.items() if rows is None or rows for file in files}
    dirty_segments: set[str] = set()
    for _, names, segments, ids in opened:
        held = {i for i, files in zip(ids, names, strict=True) if dirty_files.intersection(files)}
        dirty_segments |= {uuid for uuid, covered in segments.items() if covered & held}
    named = _versions_naming(location, newest, sought | values.all)
    found, holding, unknown = [], set(), set()
    for version, names, segments, _ in opened:
        paths = frozenset(file for each in names for file in each)
        rows = [counts[each] for each in names]
        sure = [each for each in rows if each is not None]
        found.append(VersionFiles(version, sum(sure) if len(sure) == len(rows) else None, paths, frozenset(segments)))
        if paths & dirty_files or dirty_segments & segments.keys() or version in named:
            holding.add(version)
            if len(sure) < len(rows) and not sum(sure):
                unknown.add(version)
    return DatasetScan(number, location, tuple(found), frozenset(holding), frozenset(dirty_files), frozenset(unknown))


def _count(dataset: LanceDataset, fragment: Any, where: str, values: Values) -> int | None:
    """Returns the rows of the condition in a fragment's files; None where the version has no such column."""
    schema = dataset.schema
    try:
        condition = with_typed_texts(with_instants(where), schema)
        columns = sorted(values.read & {*schema.names})
        scanner = dataset.scanner(
            columns=columns or [_first_plain(schema)],
            filter=condition,
            fragments=[fragment],
            with_row_id=True,
            include_deleted_rows=True,
            use_scalar_index=False,
            late_materialization=False,  # beside which Lance refuses to read deleted rows
        )
        rows = 0
        for batch in scanner.to_batches():
            rows += batch.num_rows
            values.add(batch)
        return rows
    except DeployerError:
        raise
    except BaseException as failure:
        if is_of_lance(failure) and ("No field named" in str(failure) or "does not exist" in str(failure)):
            return None
        raise


def _first_plain(schema: pa.Schema) -> str:
    return str(next((field.name for field in schema if not pa.types.is_nested(field.type)), schema.names[0]))


def _resolved(counts: Mapping[tuple[str, ...], int | None]) -> dict[tuple[str, ...], int | None]:
    """Returns files whose own version lacks a column of the condition, by a later version that has the column and the
    files."""
    known = [(frozenset(files), rows) for files, rows in counts.items() if rows is not None]
    return {
        files: next((n for other, n in known if other >= {*files}), None) if rows is None and files else rows or 0
        for files, rows in counts.items()
    }


def _segments(dataset: LanceDataset) -> dict[str, frozenset[int]]:
    """Returns the fragments that each part of an index covers, by the part's id."""
    return {
        str(part.uuid): frozenset(part.fragment_ids) for index in dataset.describe_indices() for part in index.segments
    }


def _versions_naming(location: str, newest: LanceDataset, sought: frozenset[bytes]) -> frozenset[int]:
    """Returns the versions whose manifest or transaction has one of the bytes."""
    if not sought:
        return frozenset()
    objects, found = objects_at(location), set[int]()
    by_transaction = {}
    for version in versions_written(location):
        transaction = newest.read_transaction(version)
        if transaction is not None:
            by_transaction[str(transaction.uuid)] = version
    for path in objects.list("_transactions"):
        made = next((each for uuid, each in by_transaction.items() if uuid in path), None)
        if made is not None and has_any(objects.get(path), sought):
            found.add(made)
    for path in objects.list("_versions"):
        name = path.rpartition("/")[2].partition(".")[0]
        if name.isdigit() and has_any(objects.get(path), sought):
            found.add(int(name) if len(name) < 20 else 2**64 - 1 - int(name))
    return frozenset(found)


def has_any(data: bytes, sought: frozenset[bytes]) -> bool:
    """Returns whether one of the byte strings is in the data."""
    return any(each in data for each in sought)


def file_has_any(location: str, path: str, sought: frozenset[bytes]) -> bool:
    """Returns whether one of the byte strings is in a file below a folder, a path or URI. One that is gone has none."""
    try:
        if "://" in location:
            return has_any(objects_at(location).get(path), sought)
        return any(has_any(part, sought) for part in _parts(Path(location) / path, max(map(len, sought), default=1)))
    except (Missing, FileNotFoundError):
        return False


def _parts(path: Path, longest: int) -> Iterator[bytes]:
    """Yields the content in parts, of which each begins with the end of the one before."""
    with path.open("rb") as file:
        before = b""
        while part := file.read(CHUNK):
            yield before + part
            before = part[-longest:]
