"""The partition tree of a table with the sizes of its partitions, read only from the state store.

A file is recorded in the leaf that contains all of its keys. A file may have keys of several leaves, because these were
split after it was written, or because another program wrote it. Such a file is recorded in a partition above the leaves
or in none. Look-ups find it by its range of keys, like any file. Its rows are counted in equal shares for these leaves.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from deployer.errors import NotFound
from deployer.specs.editing.write import split_point_document
from deployer.state.model.entities import File, Partition, TableState
from deployer.state.model.keys import decode_key
from deployer.state.model.partitions import root_of
from deployer.tables.open_table import ReadTable


@dataclass(frozen=True, slots=True)
class Sizes:
    """The rows, bytes and files that are recorded in one partition. `across` is the estimated number of its rows in
    files that have keys of several leaves."""

    rows: int = 0
    bytes: int = 0
    files: int = 0
    across: int = 0


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """A node of the tree. Its keys are from `lower` (None: the first) to below `upper` (None: the last), in the form of
    specs. `depth` is 0 for the root."""

    partition: str
    parent: str | None
    depth: int
    leaf: bool
    lower: Any
    upper: Any
    split_point: Any
    sizes: Sizes


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file by the id of its fragment. Keys are in the form of specs; None where they are unknown.

    `partition` is the leaf that contains all of its keys; None for a file with keys of several leaves.
    """

    fragment: int
    partition: str | None
    rows: int
    bytes: int
    first_key: Any
    last_key: Any
    sorted: bool


def sizes_of(state: TableState) -> dict[str, Sizes]:
    """Returns the sizes of every partition by its id."""
    files = state.files.to_arrow()
    grouped = files.group_by("partition").aggregate([("rows", "sum"), ("bytes", "sum"), ("rows", "count")])
    found = {
        row["partition"]: Sizes(row["rows_sum"], row["bytes_sum"], row["rows_count"])
        for row in grouped.to_pylist()
        if row["partition"] in state.partitions
    }
    across = _across(state, files)
    return {
        each: Sizes(size.rows, size.bytes, size.files, round(across.get(each, 0)))
        for each in state.partitions
        for size in [found.get(each, Sizes())]
    }


def _across(state: TableState, files: pa.Table) -> dict[str, float]:
    """Returns the estimated number of rows in each leaf that are in files with keys of several leaves."""
    leaves = state.leaves()
    ids = pa.array([leaf.partition_id for leaf in leaves], pa.string())
    inside = pc.is_in(pc.cast(files["partition"], pa.string()), value_set=ids)
    others = files.filter(pc.invert(inside)).select(["rows", "min_key", "max_key"])
    lowers = [leaf.lower for leaf in leaves]
    shares: dict[str, float] = {}
    for row in others.to_pylist():
        first, last = reach(lowers, row["min_key"], row["max_key"])
        for leaf in leaves[first : last + 1]:
            shares[leaf.partition_id] = shares.get(leaf.partition_id, 0) + row["rows"] / (last + 1 - first)
    return shares


def reach(lowers: list[bytes], min_key: bytes | None, max_key: bytes | None) -> tuple[int, int]:
    """Returns the indexes of the first and the last leaf with keys from `min_key` to `max_key`. Returns all leaves for
    an unknown range."""
    if min_key is None or max_key is None:
        return 0, len(lowers) - 1
    return bisect_right(lowers, min_key) - 1, bisect_right(lowers, max_key) - 1


def leaf_of(state: TableState, file: File) -> Partition | None:
    """Returns the leaf that contains all keys of the file; None where the file has keys of several leaves, or its keys
    are unknown."""
    leaves = state.leaves()
    if len(leaves) == 1:
        return leaves[0]
    first, last = reach([leaf.lower for leaf in leaves], file.min_key, file.max_key)
    return leaves[first] if first == last else None


def partition_infos(table: ReadTable) -> list[PartitionInfo]:
    """Returns the tree, beginning with the root. Each partition is before its children, which are in key order."""
    sizes = sizes_of(table.state)
    return list(_below(table, root_of(table.state.partitions), 0, sizes))


def _below(table: ReadTable, node: Partition, depth: int, sizes: Mapping[str, Sizes]) -> Iterator[PartitionInfo]:
    yield PartitionInfo(
        node.partition_id,
        node.parent,
        depth,
        node.is_leaf,
        key_document(table, node.lower) if node.lower else None,
        None if node.upper is None else key_document(table, node.upper),
        None if node.split_point is None else key_document(table, node.split_point),
        sizes[node.partition_id],
    )
    for child in node.children:
        yield from _below(table, table.state.partitions[child], depth + 1, sizes)


def file_infos(table: ReadTable, partition: str | None = None) -> list[FileInfo]:
    """Returns the files by the order of their first keys, or those of one partition. Raises NotFound for one that is
    not there.

    Of a partition that was split, those in the leaves below it are among them.
    """
    state = table.state
    wanted = None
    if partition is not None:
        if partition not in state.partitions:
            raise NotFound(
                f"there is no partition {partition!r}",
                where=table.address,
                remedy="`deployer table partitions` shows their names",
            )
        wanted = _names_below(state, partition)
    leaves = {leaf.partition_id for leaf in state.leaves()}
    files = state.files.to_arrow().drop_columns(["column_min", "column_max"]).to_pylist()
    return [
        FileInfo(
            file["fragment_id"],
            file["partition"] if file["partition"] in leaves else None,
            file["rows"],
            file["bytes"],
            None if file["min_key"] is None else key_document(table, file["min_key"]),
            None if file["max_key"] is None else key_document(table, file["max_key"]),
            file["sorted"],
        )
        for file in files
        if wanted is None or file["partition"] in wanted
    ]


def _names_below(state: TableState, partition: str) -> set[str]:
    found, open_ = set[str](), [partition]
    while open_:
        name = open_.pop()
        found.add(name)
        open_ += state.partitions[name].children
    return found


def key_document(table: ReadTable, encoded: bytes) -> Any:
    """Returns an encoded key, or a prefix of one, in the form of specs."""
    return split_point_document(decode_key(table.kinds, encoded), table.key_columns)
