"""Compares the state store's record of a table with its Lance dataset: version, files, keys, columns, indexes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deployer.datasets.dataset import Fragment, dataset_location, fragments_of, latest_version, open_dataset
from deployer.datasets.errors import first_line
from deployer.datasets.indexes.read import index_updates
from deployer.datasets.ordering.clustering import bounds_of, clustered_fields, kind_of, path_of, value_of
from deployer.datasets.ordering.key_ranges import KeyRange, comparable, key_kinds, key_range
from deployer.datasets.ordering.sort_order import sorted_rows
from deployer.datasets.recovery.unrecorded import recorded_schema
from deployer.datasets.storage.options import objects_at
from deployer.datasets.storage.places import dataset_uri
from deployer.errors import DeployerError, NotFound
from deployer.live.reader import has_unique_keys
from deployer.specs.types.arrow import columns_of
from deployer.specs.types.column_names import listed
from deployer.state.audit.differences import Difference
from deployer.state.model.entities import File, Partition, TableEntry, TableState
from deployer.tables.ingest.keys.repeated import repeated_keys

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

SAMPLE = 20  #: number of files whose keys are read if not all files are read
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class DatasetAudit:
    """The differences found; `files_read` is the number of files whose keys were read.

    `stale` are the fragment ids of files in the dataset whose record differs from their content. `newest` is the
    dataset's newest version; 0 means that the dataset cannot be opened.
    """

    differences: tuple[Difference, ...] = ()
    files_read: int = 0
    stale: tuple[int, ...] = ()
    newest: int = 0


def audit_dataset(root: str, entry: TableEntry, state: TableState, *, full: bool = False) -> DatasetAudit:
    """Compares the recorded version of the dataset with `state`, and reports newer versions in Lance.

    Reads the keys of `SAMPLE` files, or with `full` of all files. If the keys of all files are read, it also reports
    unique keys that several rows have. It records and changes nothing.
    """
    where = f"table/{entry.full_name}"
    location = dataset_location(root, entry)
    try:
        newest = latest_version(location)
        if newest < state.lance_version:
            return DatasetAudit((_behind(where, newest, state),), newest=newest)
        dataset = open_dataset(location, state.lance_version)
    except DeployerError as error:
        return DatasetAudit((Difference(where, f"{error.what} ({location})", lasting=True),))
    audit = _DatasetAudit(dataset, location, state, where)
    found = [*audit.columns(), *audit.files(), *_savepoints(root, location, state, where)]
    chosen = audit.chosen(full)
    by_file = {file.fragment_id: [*audit.keys(file), *audit.clustering(file)] for file in chosen}
    found += [difference for differences in by_file.values() for difference in differences]
    if full or len(chosen) == state.files.count:
        found += audit.repeated_keys()
    if newest > state.lance_version:
        missing = newest - state.lance_version
        commits = "1 commit" if missing == 1 else f"{missing:,} commits"
        message = f"Lance has {commits} that the log lacks (versions {state.lance_version + 1} to {newest})"
        found.append(
            Difference(where, f"{message}; the next writer of the table, or `deployer state repair`, records them")
        )
    stale = tuple(each for each, differences in by_file.items() if any(not one.lasting for one in differences))
    return DatasetAudit(tuple(found), len(chosen), stale, newest)


def _behind(where: str, newest: int, state: TableState) -> Difference:
    message = f"the dataset is at version {newest}, but version {state.lance_version} was recorded"
    return Difference(where, f"{message}: an older copy replaced it", lasting=True)


def _savepoints(root: str, location: str, state: TableState, where: str) -> Iterator[Difference]:
    """Yields the savepoints whose version of the dataset does not exist. Only other programs remove such a version."""
    old = {each.number: dataset_uri(root, each.location) for each in state.datasets}
    for savepoint in sorted(state.savepoints.values(), key=lambda each: each.name):
        place = location if savepoint.dataset == state.dataset else old.get(savepoint.dataset, location)
        try:
            open_dataset(place, savepoint.lance_version)
        except NotFound:
            message = (
                f"savepoint {savepoint.name} is of version {savepoint.lance_version} of dataset {savepoint.dataset}"
            )
            yield Difference(where, f"{message}, which does not exist any more", lasting=True)


@dataclass(slots=True)
class _DatasetAudit:
    dataset: LanceDataset
    location: str
    state: TableState
    where: str
    listed: dict[str, int] | None = None  #: the data files with their bytes; None until they are first needed

    def columns(self) -> Iterator[Difference]:
        recorded = recorded_schema(self.state)
        has, says = columns_of(self.dataset.schema), columns_of(recorded)
        if has != says:
            names = [each.name for each in has], [each.name for each in says]
            detail = f"{listed(names[0])}; recorded are {listed(names[1])}" if names[0] != names[1] else "types"
            yield Difference(self.where, f"its columns are not those that are recorded: {detail}")
        for name in (*self.state.properties.row_keys, *self.state.properties.sort_keys):
            if name not in self.dataset.schema.names:
                yield Difference(self.where, f"it has no column {name}, which is a key", lasting=True)
        if index_updates(self.dataset, self.state):
            yield Difference(self.where, "its indexes are not those that are recorded")

    def files(self) -> Iterator[Difference]:
        held = {file.fragment_id: file for file in self.state.files}
        now = fragments_of(self.dataset)
        for message, ids in (
            ("recorded, and not in the dataset", held.keys() - now.keys()),
            ("in the dataset, and not recorded", now.keys() - held.keys()),
        ):
            if ids:
                yield Difference(self.where, f"{_fragments(sorted(ids))} {message}")
        for fragment_id in sorted(held.keys() & now.keys()):
            yield from self._sizes(held[fragment_id], now[fragment_id])

    def _sizes(self, file: File, fragment: Fragment) -> Iterator[Difference]:
        name = f"fragment {file.fragment_id}"
        if file.rows != fragment.rows:
            yield Difference(self.where, f"{name} has {fragment.rows:,} rows; recorded are {file.rows:,}")
        if file.bytes != fragment.bytes:
            yield Difference(self.where, f"{name} has {fragment.bytes:,} bytes; recorded are {file.bytes:,}")
        for each in self.dataset.get_fragment(file.fragment_id).metadata.files:
            size = self._data_files().get(each.path)
            if size is None:
                yield Difference(self.where, f"{name}: its data file data/{each.path} is missing", lasting=True)
            elif each.file_size_bytes and size != each.file_size_bytes:
                message = f"has {size:,} bytes; {each.file_size_bytes:,} were written"
                yield Difference(self.where, f"{name}: its data file data/{each.path} {message}", lasting=True)

    def _data_files(self) -> Mapping[str, int]:
        if self.listed is None:
            found = objects_at(self.location).described("data")
            self.listed = {each.path.removeprefix("data/"): each.bytes for each in found}
        return self.listed

    def chosen(self, full: bool) -> list[File]:
        """Returns the files whose keys and clustered columns are read: with `full` all files, otherwise at most
        `SAMPLE` random ones."""
        keyed = bool(self.state.properties.row_keys)
        there = {fragment.fragment_id for fragment in self.dataset.get_fragments()}
        files = [file for file in self.state.files if file.fragment_id in there and (keyed or file.clustering)]
        if full or len(files) <= SAMPLE:
            return files
        return random.sample(files, SAMPLE)

    def repeated_keys(self) -> Iterator[Difference]:
        """Yields a difference for rows with the same unique keys. Only other programs add such rows."""
        keys = self.state.properties.row_keys
        if not has_unique_keys(self.state) or not all(name in self.dataset.schema.names for name in keys):
            return
        try:
            repeated = repeated_keys(self.dataset, keys, files=self.state.files)
        except Exception as failure:
            yield Difference(self.where, f"its row keys cannot be read: {first_line(failure)[:200]}", lasting=True)
            return
        if repeated.rows:
            have = "row has the row key" if repeated.rows == 1 else "rows have the row keys"
            message = f"{repeated.rows:,} {have} of another, such as {' and '.join(repeated.examples)}"
            yield Difference(
                self.where, f"{message}: its keys are unique; others added them, remove all but one of each"
            )

    def clustering(self, file: File) -> Iterator[Difference]:
        """Yields a difference where rows are outside of the recorded bounds of the columns that the file is clustered
        by."""
        paths = [path_of(self.dataset, field_id) for field_id in clustered_fields(file.clustering)]
        left = [(place, path) for place, path in enumerate(paths) if path is not None]  # others were dropped since
        if not left:
            return
        name = f"fragment {file.fragment_id}"
        try:
            columns = list(dict.fromkeys(path.partition(".")[0] for _, path in left))
            rows = self.dataset.get_fragment(file.fragment_id).to_table(columns=columns)
            kinds = [kind_of(rows.schema, path) for _, path in left]
            found = bounds_of([value_of(rows, path) for _, path in left], kinds)
        except Exception as failure:
            message = first_line(failure)[:200]
            yield Difference(self.where, f"{name} cannot be read: {message}", lasting=True)
            return
        if found is not None and not all(
            file.cluster_min[place] <= low and high <= file.cluster_max[place]
            for (place, _), low, high in zip(left, *found, strict=True)
        ):
            yield Difference(self.where, f"{name} has values outside of the bounds that CLUSTER recorded of it")

    def keys(self, file: File) -> Iterator[Difference]:
        name = f"fragment {file.fragment_id}"
        keys, order = self.state.properties.row_keys, self.state.properties.sort_keys
        if not keys:
            return
        columns = list(dict.fromkeys((*keys, *order))) if file.sorted else list(keys)
        try:
            rows = self.dataset.get_fragment(file.fragment_id).to_table(columns=columns)
        except Exception as failure:
            message = first_line(failure)[:200]
            yield Difference(self.where, f"{name} cannot be read: {message}", lasting=True)
            return
        if not rows.num_rows:
            return
        found = key_range(rows.select(list(keys)), key_kinds(rows.schema, keys))
        if found is None:
            yield Difference(self.where, f"{name} has rows whose key is null", lasting=True)
            return
        if file.min_key is not None and file.max_key is not None and not _holds(file, found):
            yield Difference(self.where, f"{name} has keys outside of the range that is recorded of it")
        if not _within(self.state.partitions, file.partition, found):
            yield Difference(self.where, f"{name} has keys outside of its partition {file.partition}")
        if file.sorted and not _is_sorted(rows, columns):
            yield Difference(self.where, f"{name} is recorded as sorted, and is not")


def _holds(file: File, found: KeyRange) -> bool:
    assert file.min_key is not None and file.max_key is not None  # noqa: S101
    return (
        file.min_key <= found.min_key
        and found.max_key <= file.max_key
        and all(low <= now for low, now in zip(file.column_min, found.column_min, strict=True))
        and all(now <= high for high, now in zip(file.column_max, found.column_max, strict=True))
    )


def _within(partitions: Mapping[str, Partition], partition_id: str | None, found: KeyRange) -> bool:
    partition = partitions.get(partition_id) if partition_id is not None else None
    return partition is None or (partition.holds(found.min_key) and partition.holds(found.max_key))


def _is_sorted(rows: Any, columns: list[str]) -> bool:
    """Returns whether the rows are in the order that ingest writes: ascending, null and NaN last."""
    in_order = sorted_rows(rows.select(columns), columns)
    return all(_same(comparable(rows[name]), comparable(in_order[name])) for name in columns)


def _same(one: Any, other: Any) -> bool:
    """Returns whether the values at all places are equal. Two nulls are equal, and so are two NaN."""
    import pyarrow as pa
    import pyarrow.compute as pc

    same = pc.or_(pc.fill_null(pc.equal(one, other), False), pc.and_(pc.is_null(one), pc.is_null(other)))
    if pa.types.is_floating(one.type):
        same = pc.or_(same, pc.fill_null(pc.and_(pc.is_nan(one), pc.is_nan(other)), False))
    return bool(pc.all(same).as_py())


def _fragments(ids: list[int]) -> str:
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    many = "fragment" if len(ids) == 1 else "fragments"
    return f"{many} {', '.join(map(str, ids[:_SHOWN]))}{more} {'is' if len(ids) == 1 else 'are'}"
