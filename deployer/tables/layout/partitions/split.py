"""Splits leaves with more rows than the limit, at quantiles of their keys.

No row is moved. A split is one transaction on the table's log: the leaf becomes an inner partition with leaves below
it. Each of its files whose keys are all in one new leaf is recorded in that leaf. The other files stay recorded in the
former leaf. Look-ups find them by their ranges of keys, and therefore open the same files as before. Later loads write
into the new leaves. Concurrent writers are not affected: a file that is written for the former leaf is recorded in the
same way.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from deployer.datasets.ordering.sort_order import Splitter
from deployer.errors import CommitTimedOut, Conflict, DeployerError, Interrupted, InvalidInput
from deployer.live.reader import leaf_limit
from deployer.platform.system.failpoints import reached
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.specs.serialized.specs import key_to_json
from deployer.state.log.requirements import TableRequirement
from deployer.state.log.updates import FilesReplaced, PartitionSplit, TableUpdate
from deployer.state.model.declared_properties import SPLIT_POINTS
from deployer.state.model.entities import JSON, File, Partition, TableState
from deployer.state.model.keys import decode_key
from deployer.state.store import StateStore
from deployer.state.transactions.tables import to_place_files, to_split
from deployer.tables.layout.partitions.key_sketch import KeySketch
from deployer.tables.layout.partitions.sizes import key_document, leaf_of, reach, sizes_of
from deployer.tables.open_table import OpenTable, open_entry

ATTEMPTS = 20  #: attempts to split a leaf while others keep committing


@dataclass(frozen=True, slots=True)
class LeafSplit:
    """A leaf with `rows` rows that was split at `points` (in the form of specs) into `leaves`."""

    partition: str
    rows: int
    points: tuple[Any, ...]
    leaves: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SplitResult:
    """The result of a split. `unsplit` has the leaves above the limit whose rows all have the same key, with their
    number of rows.

    `failure` is the reason why an automatic split ended early; completed splits stay.
    """

    max_rows: int = 0
    split: tuple[LeafSplit, ...] = ()
    unsplit: tuple[tuple[str, int], ...] = ()
    leaves: int = 0
    files_placed: int = 0
    failure: str = ""


def split_leaves(
    store: StateStore,
    root: str,
    table_id: str,
    max_rows: int | None = None,
    on_progress: OnProgress = no_progress,
    *,
    dry_run: bool = False,
) -> SplitResult:
    """Splits every leaf that has more than `max_rows` rows (None: the table's declared limit). Can be repeated.

    A leaf is halved until no part is above the limit, as estimated from a sample of its keys. Raises InvalidInput for a
    table without row keys, and where neither the caller nor the table gives a limit.
    """
    table = _opened(store, root, table_id)
    limit = max_rows if max_rows is not None else leaf_limit(table.state)
    if not table.kinds:
        raise InvalidInput("a table without row keys cannot be split", where=table.address, remedy="give it row keys")
    if limit is None or limit < 1:
        raise InvalidInput(
            "the number of rows that a leaf may hold is not given"
            if limit is None
            else "a leaf must hold a row at least",
            where=table.address,
            remedy="give --max-rows, or declare `partitions: {max_rows_per_leaf: …}`",
        )
    placed = 0 if dry_run else place_files(table)
    table = _again(table) if placed else table
    done: list[LeafSplit] = []
    unsplit: list[tuple[str, int]] = []
    sizes = sizes_of(table.state)
    over = [
        leaf for leaf in table.state.leaves() if sizes[leaf.partition_id].rows + sizes[leaf.partition_id].across > limit
    ]
    for number, leaf in enumerate(over):
        on_progress(Progress("splitting", number, len(over), "leaves"))
        sketch = _sketch(table, leaf)
        if sketch.rows <= limit:
            continue  # the files that lie across it have fewer of its rows than their share
        points = _inside(leaf, sketch.split_points(_parts(sketch.rows, limit)))
        if not points:
            unsplit.append((leaf.partition_id, sketch.rows))
            continue
        splits = planned_splits(leaf.partition_id, points)
        if not dry_run and not _commit(table, leaf.partition_id, splits):
            continue  # another process split it
        shown = tuple(key_document(table, point) for point in points)
        done.append(LeafSplit(leaf.partition_id, sketch.rows, shown, _leaves_of(leaf.partition_id, splits)))
    after = table if dry_run else _again(table)
    leaves = len(after.state.leaves()) + (sum(len(each.points) for each in done) if dry_run else 0)
    return SplitResult(limit, tuple(done), tuple(unsplit), leaves, placed)


def split_after_load(
    store: StateStore, root: str, table_id: str, on_progress: OnProgress = no_progress
) -> SplitResult | None:
    """Runs `split_leaves` where the table declares a limit and is online; otherwise returns None. A failure is part of
    the result and does not affect the load before it."""
    try:
        state = store.table(table_id)
        if leaf_limit(state) is None or not state.properties.online or not state.properties.row_keys:
            return None
        return split_leaves(store, root, table_id, on_progress=on_progress)
    except Interrupted:
        raise
    except DeployerError as failure:
        return SplitResult(failure=str(failure))


def declare_split_points(store: StateStore, root: str, table_id: str) -> tuple[Any, ...]:
    """Records the current leaves as the declared ones, so that a spec can declare them; returns their split points."""
    table = _opened(store, root, table_id)
    lowers = [leaf.lower for leaf in table.state.leaves()[1:]]
    declared: list[JSON] = [key_to_json(decode_key(table.kinds, lower)) for lower in lowers]
    store.declare(table_id, {SPLIT_POINTS: declared})
    return tuple(key_document(table, lower) for lower in lowers)


def planned_splits(leaf: str, points: Sequence[bytes]) -> list[PartitionSplit]:
    """Returns the splits that divide a leaf at all of the points, with the middle point first; ids are random."""
    if not points:
        return []
    middle = len(points) // 2
    left, right = uuid.uuid4().hex[:12], uuid.uuid4().hex[:12]
    return [
        PartitionSplit(leaf, points[middle], left, right),
        *planned_splits(left, points[:middle]),
        *planned_splits(right, points[middle + 1 :]),
    ]


def _leaves_of(leaf: str, splits: Sequence[PartitionSplit]) -> tuple[str, ...]:
    children = {each.partition_id: (each.left_id, each.right_id) for each in splits}

    def below(name: str) -> Iterator[str]:
        if name in children:
            for child in children[name]:
                yield from below(child)
        else:
            yield name

    return tuple(below(leaf))


def _opened(store: StateStore, root: str, table_id: str) -> OpenTable:
    return open_entry(store, root, store.instance().tables[table_id])


def _again(table: OpenTable) -> OpenTable:
    """Returns the table with its newest state, even if its dataset is still at the same version."""
    return _opened(table.store, table.root, table.entry.table_id)


def _parts(rows: int, limit: int) -> int:
    """Returns the smallest power of two for which no part is above the limit. A part is then at least half full."""
    parts = 1
    while rows > parts * limit:
        parts *= 2
    return parts


def _inside(leaf: Partition, points: Sequence[bytes]) -> list[bytes]:
    return [point for point in points if point > leaf.lower and (leaf.upper is None or point < leaf.upper)]


def _sketch(table: OpenTable, leaf: Partition) -> KeySketch:
    """Returns a sketch of the keys of the leaf's rows, whichever partition their files are recorded in. Its `rows` is
    exact."""
    names = list(table.row_keys)
    files = table.state.files.overlapping(leaf.lower, leaf.upper)
    dataset = table.dataset()
    fragments = [each for file in files if (each := dataset.get_fragment(file.fragment_id)) is not None]
    sketch = KeySketch(table.kinds, sum(file.rows for file in files))
    if not fragments:
        return sketch
    bounds = [bound for bound in (leaf.lower, leaf.upper) if bound]
    splitter = Splitter(
        [table.schema.field(name).type for name in names], [decode_key(table.kinds, bound) for bound in bounds]
    )
    own = 1 if leaf.lower else 0
    for batch in dataset.scanner(columns=names, fragments=fragments).to_batches():
        keys = [batch.column(name) for name in names]
        if bounds:
            inside = pa.array(splitter.ranges(keys, batch.num_rows) == own)
            keys = [column.filter(inside) for column in keys]
        if len(keys[0]):
            sketch.add(keys)
    return sketch


def _commit(table: OpenTable, partition: str, splits: Sequence[PartitionSplit]) -> bool:
    """Commits the splits with the new places of files; returns False when the leaf no longer exists as a leaf."""
    dataset = table.state.dataset
    for _ in range(ATTEMPTS):
        table = _again(table)
        state = table.state
        now = state.partitions.get(partition)
        if now is None or not now.is_leaf or state.dataset != dataset:
            return False
        leaves = _new_leaves(now, splits)
        lowers = [leaf.lower for leaf in leaves]
        moved = []
        for file in state.files.overlapping(now.lower, now.upper):
            if not _is_within(file, now):
                continue
            first, last = reach(lowers, file.min_key, file.max_key)
            if first == last:
                moved.append(replace(file, partition=leaves[first].partition_id))
        reached("tables.split.before-commit")
        unchanged = to_split(partition, _ids(moved), state.lance_version, dataset)
        if _record(table, [*splits, *_replaced(state, moved)], unchanged):
            reached("tables.split.committed")
            return True
    raise _too_busy(table)


def _new_leaves(leaf: Partition, splits: Sequence[PartitionSplit]) -> list[Partition]:
    points = sorted(each.split_point for each in splits)
    names = _leaves_of(leaf.partition_id, splits)
    ends = [leaf.lower, *points, leaf.upper]
    return [
        Partition(name, None, lower or b"", upper) for name, lower, upper in zip(names, ends, ends[1:], strict=False)
    ]


def _is_within(file: File, leaf: Partition) -> bool:
    return (
        file.min_key is not None and file.max_key is not None and leaf.holds(file.min_key) and leaf.holds(file.max_key)
    )


def place_files(table: OpenTable) -> int:
    """Records files in the leaf that holds all of their rows, if they are recorded elsewhere; returns the number of
    files."""
    for _ in range(ATTEMPTS):
        state = table.state
        leaves = {leaf.partition_id for leaf in state.leaves()}
        moved = [
            replace(file, partition=leaf.partition_id)
            for file in _elsewhere(state, leaves)
            if (leaf := leaf_of(state, file)) is not None
        ]
        if not moved:
            return 0
        reached("tables.split.before-places")
        if _record(table, _replaced(state, moved), to_place_files(_ids(moved), state.lance_version, state.dataset)):
            return len(moved)
        table = _again(table)
    raise _too_busy(table)


def _elsewhere(state: TableState, leaves: set[str]) -> Iterator[File]:
    for name in [None, *(name for name in state.partitions if name not in leaves)]:
        yield from state.files.for_partition(name)


def _replaced(state: TableState, moved: Sequence[File]) -> list[TableUpdate]:
    if not moved:
        return []
    return [FilesReplaced(_ids(moved), tuple(moved), state.lance_version)]


def _ids(files: Sequence[File]) -> tuple[int, ...]:
    return tuple(file.fragment_id for file in files)


def _record(table: OpenTable, updates: Sequence[TableUpdate], unchanged: Sequence[TableRequirement]) -> bool:
    """Commits the updates. Returns False where the table has changed, because they may then be out of date."""
    try:
        table.store.commit(table.state.table_id, updates, unchanged)
    except Conflict:
        return False
    return True


def _too_busy(table: OpenTable) -> CommitTimedOut:
    return CommitTimedOut(
        "other processes commit to the table faster than its leaves can be split",
        where=table.address,
        remedy="run it again when there are fewer writers",
        attempts=ATTEMPTS,
    )
