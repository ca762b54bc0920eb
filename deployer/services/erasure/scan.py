"""The parts of a dataset that hold rows of a condition, found by reading the data files, including deleted rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deployer.datasets.dataset import open_dataset, versions_written
from deployer.datasets.storage.options import objects_at
from deployer.platform.storage.objects import Missing
from deployer.services.erasure.counting import CountTask, Values
from deployer.tables.rows.tasks import TASK_ROWS, RunTasks, first_error, run_here

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

SEARCHED = 200  #: at most this many values are searched for in files
CHUNK = 64 * 2**20  #: bytes of a file on a disk that are in memory at once


@dataclass(frozen=True, slots=True)
class VersionFiles:
    """The files that a version refers to: data files, and parts of indexes. `rows` are those of the condition in its
    data files, deleted ones included; None where the version lacks a column of the condition, and no other version has
    the answer."""

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
    unknown: frozenset[int] = frozenset()  #: those of `holding` for which this is unknown

    @property
    def rows(self) -> int:
        """The most rows of the condition that one version holds."""
        return max((each.rows or 0 for each in self.versions), default=0)


def scan_dataset(
    number: int,
    location: str,
    where: str,
    values: Values,
    sought: frozenset[bytes] = frozenset(),
    run_tasks: RunTasks = run_here,
) -> DatasetScan:
    """Searches all versions of a dataset; each data file is read once, even if many versions have it.

    `values` collects values of the found rows. A version whose manifest or transaction contains one of these or of the
    `sought` bytes, such as in the predicate of a deletion, holds them too. `run_tasks` reads the files elsewhere.
    """
    newest = open_dataset(location)
    unread: dict[tuple[str, ...], tuple[int, int, int]] = {}
    opened: list[tuple[int, list[tuple[str, ...]], dict[str, frozenset[int]], list[int]]] = []
    for version in sorted(versions_written(location), reverse=True):
        dataset = newest if version == newest.version else newest.checkout_version(version)
        fragments = dataset.get_fragments()
        names = [tuple(file.path for file in each.metadata.files) for each in fragments]
        for fragment, files in zip(fragments, names, strict=True):
            if (location, files) not in values.counts:
                unread.setdefault(files, (version, fragment.fragment_id, fragment.metadata.physical_rows))
        opened.append((version, names, _segments(dataset), [each.fragment_id for each in fragments]))
    _count(newest, location, where, values, unread, run_tasks)
    counts = {files: values.counts[location, files] for _, names, _, _ in opened for files in names}
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


def _count(
    newest: LanceDataset,
    location: str,
    where: str,
    values: Values,
    unread: Mapping[tuple[str, ...], tuple[int, int, int]],
    run_tasks: RunTasks,
) -> None:
    """Collects the values of the condition's rows in data files in `values`. `unread` has a version, a fragment of it
    with these files, and their number of rows."""
    groups: list[list[tuple[tuple[str, ...], int]]] = []
    tasks: list[CountTask] = []
    for files, (version, fragment_id, rows) in unread.items():
        if not tasks or tasks[-1].version != version or tasks[-1].rows >= TASK_ROWS:
            groups.append([])
            tasks.append(CountTask(location, version, (), where, values.empty()))
        groups[-1].append((files, fragment_id))
        tasks[-1] = tasks[-1].with_fragment(fragment_id, rows)
    done = run_tasks(newest, tasks)
    if error := first_error(done):
        raise error
    for group, each in zip(groups, done, strict=True):
        values.join(each.values)
        values.counts |= {(location, files): each.counts[fragment_id] for files, fragment_id in group}


def _resolved(counts: Mapping[tuple[str, ...], int | None]) -> dict[tuple[str, ...], int | None]:
    """Returns the counts of files whose own version lacks a column of the condition, from a later version that has the
    column and the files."""
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
    """Returns whether one of the byte strings is in a file below a folder, a path or URI. A missing file has none."""
    try:
        if "://" in location:
            return has_any(objects_at(location).get(path), sought)
        return any(has_any(part, sought) for part in _parts(Path(location) / path, max(map(len, sought), default=1)))
    except (Missing, FileNotFoundError):
        return False


def _parts(path: Path, longest: int) -> Iterator[bytes]:
    """Yields the content in parts. Each part begins with the end of the previous one."""
    with path.open("rb") as file:
        before = b""
        while part := file.read(CHUNK):
            yield before + part
            before = part[-longest:]
