"""The changes that a dataset has and its table's log lacks, as the updates that record them.

This module does not write anything. Lance is the source of truth for data. deployer's commits carry metadata
(`deployer.datasets.commit_metadata`) and are recorded as their job would have recorded them. All other commits come
from other programs and are adopted: a new fragment goes to the leaf that holds all of its keys, or stays unplaced.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deployer.datasets.commit_metadata import FENCE, RESTORE, UNDO, CommitMetadata, CommittedFile, each_commit
from deployer.datasets.dataset import (
    Fragment,
    FragmentsById,
    field_ids,
    fragment_of,
    fragments_of,
    open_dataset,
    require_files,
)
from deployer.datasets.indexes.read import index_updates
from deployer.datasets.lance_transactions import TakenRows, metadata_since, transaction_of
from deployer.datasets.ordering.clustering import FileClustering, clustered_fields
from deployer.datasets.ordering.key_ranges import KeyRange, fault_of_keys, key_kinds, key_range
from deployer.datasets.recovery.changed_fragments import changed_fragments
from deployer.datasets.recovery.computed_files import ComputedFiles
from deployer.datasets.recovery.taken_rows import rows_changed
from deployer.errors import DeployerError
from deployer.specs.types.arrow import columns_of, stored_schema
from deployer.state.log.updates import (
    FilesAdded,
    FilesRemoved,
    FilesReplaced,
    SetLanceVersion,
    SetSchema,
    SetTableProperties,
    TableUpdate,
)
from deployer.state.model.entities import File, Partition, TableState

if TYPE_CHECKING:
    import lance
    import pyarrow as pa


def adopted_updates(dataset: lance.LanceDataset, state: TableState) -> list[TableUpdate]:
    """Returns the updates that give `state` the dataset's files and indexes, of any writer: metadata of other lakes
    does not count."""
    return [*_View.of(dataset, state).adopt(), *index_updates(dataset, state)]


def missing_updates(
    dataset: lance.LanceDataset,
    state: TableState,
    without: Collection[int] = (),
    infos: Mapping[int, Sequence[CommitMetadata]] | None = None,
    *,
    only_changed: bool = False,
) -> list[TableUpdate]:
    """Returns the updates that give `state` the content of the opened version of the dataset, `without` some fragments.

    `infos` is the metadata of commits above the state's version, for a caller that has read it, or ignores other
    commits. `only_changed`: fragments that these commits did not change are not compared.
    """
    view = _View.of(dataset, state, without)
    updates: list[TableUpdate] = []
    done = set[str]()
    for version, info in each_commit(metadata_since(dataset, state.lance_version) if infos is None else infos):
        if info.kind == RESTORE:
            continue  # an invalid restore, or one that has to count as a commit of another program (see `roll_restore`)
        if info.job_id in done or info.job_id in state.jobs:
            continue  # a second commit of the job, which was undone
        if info.files or info.counts is not None or info.job_id in state.intents:
            updates.append(view.record(version, info))
            done.add(info.job_id)
    updates += view.adopt(only_changed=only_changed)
    schema = dataset.schema
    if columns_of(schema) != columns_of(recorded_schema(state)):
        updates.append(SetSchema(schema.serialize().to_pybytes(), dataset.version))
        updates += _renamed_keys(dataset, state)
    updates += index_updates(dataset, state)
    if not any(getattr(update, "lance_version", 0) == dataset.version for update in updates):
        updates.append(SetLanceVersion(dataset.version))
    return updates


def lacks_intents(infos: Mapping[int, Sequence[CommitMetadata]], state: TableState) -> bool:
    """Returns whether the state may have been read before the jobs of these commits began.

    An intent is in the log before its commit is in Lance, so a state that is read after the dataset was opened has the
    intent. Without the intent, a commit that adds no file would count as one of another program: neither its job nor
    the definitions of its computed values would be recorded. Returns True for metadata of other lakes too.
    """
    return any(
        not info.files
        and info.counts is None
        and info.kind not in (FENCE, RESTORE, UNDO)
        and info.job_id not in state.intents
        and info.job_id not in state.jobs
        for _, info in each_commit(infos)
    )


def appended(
    dataset: lance.LanceDataset,
    state: TableState,
    infos: Sequence[CommitMetadata],
    removed: Sequence[int] = (),
    taken: TakenRows | None = None,
) -> list[TableUpdate]:
    """Returns the updates that the jobs of one commit record.

    `dataset` is at that commit, which is the version right after that of `state`. The commit appends files, replaces
    the files `removed`, or changes rows (`taken`). Nothing is read, and the time does not depend on the number of
    files, because a commit gives its fragments the highest ids. The result is empty when the fragments are not found
    that way.
    """
    marked = {file.path: file for info in infos for file in info.files}
    newest = sorted(dataset.fragment_ids())[-len(marked) :] if marked else []
    fragments = [fragment_of(dataset, fragment_id) for fragment_id in newest]
    found = _by_path(fragments, marked)
    if len(found) != len(marked):
        return []
    view = _View(dataset, state, {}, frozenset(), {}, state.leaves(), ComputedFiles())
    updates: list[TableUpdate] = []
    version = int(dataset.version)
    for info in infos:
        added = tuple(view.file_of(found[file.path], file) for file in info.files)
        if removed:
            updates.append(FilesReplaced(tuple(removed), added, version, info.job_id, info.kind))
        elif taken is not None:
            updates.append(rows_changed(state.files.get, taken, added, version, info))
        else:
            updates.append(FilesAdded(added, version, info.job_id, info.rows, info.kind, info.sources))
    return updates


def read_again(dataset: lance.LanceDataset, state: TableState, fragment_ids: Iterable[int]) -> list[TableUpdate]:
    """Returns the update that records the current content of these files, as for a commit by another program."""
    view = _View.of(dataset, state)
    files = tuple(view.read_again(fragment_id) for fragment_id in sorted(set(fragment_ids) & view.now.keys()))
    return [FilesReplaced(tuple(file.fragment_id for file in files), files, dataset.version)] if files else []


def _renamed_keys(dataset: lance.LanceDataset, state: TableState) -> list[TableUpdate]:
    """Returns keys with the current names of their columns. A column is identified by its field id, not by its name."""
    keys = {"row_keys": state.properties.row_keys, "sort_keys": state.properties.sort_keys}
    now = {field.id(): field.name() for field in dataset.lance_schema.fields()}
    if all(name in now.values() for names in keys.values() for name in names):
        return []
    try:
        before = open_dataset(dataset.uri, state.lance_version).lance_schema.fields()
    except DeployerError:
        return []  # the version was removed: the column is unknown
    renamed = {field.name(): now.get(field.id(), field.name()) for field in before}
    changes = {
        name: after for name, names in keys.items() if (after := [renamed.get(key, key) for key in names]) != [*names]
    }
    return [SetTableProperties(changes)] if changes else []


def recorded_schema(state: TableState) -> pa.Schema:
    """Returns the schema that the state has. Raises Corrupt for bytes that are not a schema."""
    return stored_schema(state.schema, f"table {state.table_id}")


@dataclass(slots=True)
class _View:
    """The dataset beside the files that the state will have once the updates found so far are applied. `recorded` are
    the fragments that the state has."""

    dataset: lance.LanceDataset
    state: TableState
    now: Mapping[int, Fragment]
    recorded: frozenset[int]
    held: dict[int, File]
    leaves: Sequence[Partition]
    computed: ComputedFiles

    @staticmethod
    def of(dataset: lance.LanceDataset, state: TableState, without: Collection[int] = ()) -> _View:
        held = {file.fragment_id: file for file in state.files}
        now = FragmentsById(dataset, without)
        return _View(dataset, state, now, frozenset(held), held, state.leaves(), ComputedFiles.of(dataset))

    def record(self, version: int, info: CommitMetadata) -> TableUpdate:
        """Returns the update that the job of a commit with metadata would have recorded."""
        marked = {file.path: file for file in info.files}
        written = self._written(version, marked)
        added = tuple(self.file_of(fragment, marked[path]) for path, fragment in written.items())
        operation = getattr(transaction_of(self.dataset, version), "operation", None)
        if (taken := TakenRows.of(operation)) is not None:
            change = rows_changed(self.held.get, taken, added, version, info)
            for fragment_id in change.removed:
                del self.held[fragment_id]
            for each in change.left:
                self.held[each.fragment_id] = replace(self.held[each.fragment_id], rows=each.rows)
            self.held.update((file.fragment_id, file) for file in added)
            return change
        self.computed.note(self.dataset, version, operation, info, self.held, self.now)
        removed = tuple(sorted(_rewritten(operation) & self.held.keys()))
        for fragment_id in removed:
            del self.held[fragment_id]
        self.held.update((file.fragment_id, file) for file in added)
        if removed:
            return FilesReplaced(removed, added, version, info.job_id, info.kind)
        return FilesAdded(added, version, info.job_id, info.rows, info.kind, info.sources)

    def file_of(self, fragment: Fragment, marked: CommittedFile) -> File:
        """Returns the file with its leaf: the leaf that it was written for, or after a split the leaf that holds all
        its keys."""
        partition = marked.partition
        written_for = self.state.partitions.get(partition or "")
        if marked.keys is not None and (written_for is None or not written_for.is_leaf):
            # the leaf was split meanwhile, or a restore undid the split that made it
            partition = self._leaf_of(marked.keys) or (partition if written_for is not None else None)
        made = _of(fragment, partition, marked.keys, is_sorted=marked.sorted, clustered=marked.clustered)
        return replace(made, computed=marked.computed) if marked.computed else made

    def _written(self, version: int, marked: Mapping[str, CommittedFile]) -> dict[str, Fragment]:
        """Returns the fragments of files in commit metadata, by path, from the newest version, or otherwise as they
        were written."""
        found = _by_path(self.now.values(), marked) if marked else {}
        if len(found) == len(marked):
            return found
        return {**_by_path(fragments_of(self.dataset.checkout_version(version)).values(), marked), **found}

    def adopt(self, *, only_changed: bool = False) -> list[TableUpdate]:
        """Returns the updates for the remaining differences, which are commits of other programs."""
        version, updates = self.dataset.version, list[TableUpdate]()
        gone = tuple(sorted(self.held.keys() - self.now.keys()))
        changed = tuple(self._changed(only_changed=only_changed))
        unknown = [self.now[i] for i in sorted(self.now.keys() - self.held.keys())]
        require_files(self.dataset.uri, (path for fragment in unknown for path in fragment.own_paths))
        new = tuple(self._adopted(fragment) for fragment in unknown)
        if gone:
            updates.append(FilesRemoved(gone, version))
        if changed:
            updates.append(FilesReplaced(tuple(file.fragment_id for file in changed), changed, version))
        if new:
            updates.append(FilesAdded(new, version))
        return updates

    def _changed(self, *, only_changed: bool) -> Iterable[File]:
        """Yields files whose fragment lost rows or got other values. Key ranges stay valid unless a key column was
        written."""
        fields = field_ids(self.dataset, self.state.properties.row_keys)
        before = self._fragments_before()
        compares_all = before is None or not only_changed
        changed = None if compares_all else changed_fragments(self.dataset, self.state.lance_version)
        for fragment_id, file in self.held.items():
            if changed is not None and fragment_id in self.recorded and fragment_id not in changed:
                continue
            fragment = self.now.get(fragment_id)
            if fragment is None:
                continue
            was = before.get(fragment_id) if before is not None else None
            if fragment_id in self.recorded and (was is None or was.files_of(fields) != fragment.files_of(fields)):
                yield self._adopted(fragment)
                continue
            own = clustered_fields(file.clustering)
            if own and fragment_id in self.recorded and was is not None and was.files_of(own) != fragment.files_of(own):
                file = replace(file, clustering="", cluster_min=(), cluster_max=())
            computed = self.computed.now(file, fragment, was, is_recorded=fragment_id in self.recorded)
            after = replace(file, rows=fragment.rows, bytes=fragment.bytes, computed=computed)
            if after != self.held[fragment_id]:
                yield after

    def _fragments_before(self) -> Mapping[int, Fragment] | None:
        try:
            return FragmentsById(open_dataset(self.dataset.uri, self.state.lance_version))
        except DeployerError:
            return None  # the version was removed: the fragments that were rewritten in place are unknown

    def read_again(self, fragment_id: int) -> File:
        return self._adopted(self.now[fragment_id])

    def _adopted(self, fragment: Fragment) -> File:
        keys = self._read_range(fragment.fragment_id)
        partition = self._leaf_of(keys) if keys else None
        if not self.state.properties.row_keys and len(self.leaves) == 1:
            partition = self.leaves[0].partition_id
        return _of(fragment, partition, keys, is_sorted=False)

    def _read_range(self, fragment_id: int) -> KeyRange | None:
        import pyarrow as pa

        columns = list(self.state.properties.row_keys)
        if not columns or fault_of_keys(columns_of(self.dataset.schema), columns):
            return None
        scanner = self.dataset.scanner(columns=columns, fragments=[self.dataset.get_fragment(fragment_id)])
        kinds = key_kinds(self.dataset.schema, columns)
        found: KeyRange | None = None
        for batch in scanner.to_batches():
            if batch.num_rows:
                part = key_range(pa.Table.from_batches([batch]).select(columns), kinds)
                if part is None:
                    return None
                found = found.joined(part) if found else part
        return found

    def _leaf_of(self, keys: KeyRange) -> str | None:
        lowers = [leaf.lower for leaf in self.leaves]
        first, last = (bisect_right(lowers, key) - 1 for key in (keys.min_key, keys.max_key))
        return self.leaves[first].partition_id if first == last >= 0 else None


def _rewritten(operation: Any) -> set[int]:
    groups = getattr(operation, "groups", None) or ()
    return {fragment.id for group in groups for fragment in group.old_fragments}


def _by_path(fragments: Iterable[Fragment], paths: Iterable[str]) -> dict[str, Fragment]:
    wanted = set(paths)
    return {path: fragment for fragment in fragments for path in fragment.paths & wanted}


def _of(
    fragment: Fragment,
    partition: str | None,
    keys: KeyRange | None,
    *,
    is_sorted: bool,
    clustered: FileClustering | None = None,
) -> File:
    return File(
        fragment.fragment_id,
        partition,
        fragment.rows,
        fragment.bytes,
        keys.min_key if keys else None,
        keys.max_key if keys else None,
        keys.column_min if keys else (),
        keys.column_max if keys else (),
        is_sorted,
        *((clustered.by, clustered.low, clustered.high) if clustered else ()),
    )
