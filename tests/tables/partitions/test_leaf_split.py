"""Splitting leaves: any rows are parted into valid trees and found by their keys, whoever writes or dies meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deployer.errors import InvalidInput
from deployer.specs.model import KeyValue
from deployer.state.log.updates import FilesReplaced
from deployer.state.model.keys import encode_key
from deployer.state.model.partitions import check_tree
from deployer.tables.admin.tables import update_table
from deployer.tables.layout.partitions.sizes import file_infos, partition_infos, sizes_of
from deployer.tables.layout.partitions.split import SplitResult, declare_split_points, split_after_load, split_leaves
from deployer.tables.read.table import Table
from tests import forks
from tests.projects import folder_of_example
from tests.state.samples import leaf_for
from tests.tables.lakes import Lake, flights, sorted_rows

ONE_KEY = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.string())])


def split(lake: Lake, limit: int | None = None, name: str = "flights") -> SplitResult:
    table = lake.open(name)
    return split_leaves(lake.store, lake.root, table.opened.entry.table_id, limit)


def check(table: Table) -> None:
    """The tree covers every key, every file is recorded where its keys are, and rows add up."""
    state = table.opened.state
    check_tree(dict(state.partitions))
    leaves = state.leaves()
    assert leaves[0].lower == b"" and leaves[-1].upper is None
    assert all(one.upper == other.lower for one, other in pairwise(leaves))
    for file in state.files:
        place = state.partitions[file.partition or ""]
        assert file.min_key is not None and file.max_key is not None
        assert place.holds(file.min_key) and place.holds(file.max_key)
    assert state.files.rows == table.opened.dataset().count_rows()
    sizes = sizes_of(state)
    told = sum(sizes[leaf.partition_id].rows + sizes[leaf.partition_id].across for leaf in leaves)
    assert abs(told - state.files.rows) <= len(leaves)  # shares are rounded


def keys_of(rows: pa.Table, names: Sequence[str]) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows.select(list(names)).to_pylist()]


def int_rows(values: Sequence[int]) -> pa.Table:
    return pa.table([pa.array(values, pa.int64()), pa.array([str(v) for v in values])], schema=ONE_KEY)


CASES: dict[str, tuple[Sequence[int], int, int, int]] = {  # values, limit, leaves, leaves that could not be split
    "below the limit": (range(10), 10, 1, 0),
    "one above it": (range(11), 10, 2, 0),
    "halved twice": (range(40), 10, 4, 0),
    "halved until it fits": (range(41), 10, 8, 0),
    "one row a leaf": (range(5), 1, 5, 0),
    "one key": ([7] * 20, 10, 1, 1),
    "mostly the least key": ([1] * 18 + [2, 3], 10, 2, 0),
    "mostly the largest key": ([1, 2] + [3] * 18, 10, 2, 0),
    "two keys": ([1, 2] * 10, 10, 2, 0),
    "far apart": ([-(2**63), 0, 2**63 - 1], 1, 3, 0),
}


@pytest.mark.parametrize("case", CASES)
def test_leaves_are_halved_until_they_fit(case: str, lake: Lake) -> None:
    values, limit, leaves, unsplit = CASES[case]
    lake.table(ONE_KEY, ("k",), splits=())
    lake.ingest(lake.file(int_rows(list(values))))
    result = split(lake, limit)
    table = lake.open()
    check(table)
    assert (result.leaves, len(table.opened.state.leaves()), len(result.unsplit)) == (leaves, leaves, unsplit)
    assert all(table.keys((value,)).to_table().num_rows == list(values).count(value) for value in set(values))
    again = split(lake, limit)
    assert (again.split, again.leaves) == ((), leaves)


def test_loads_after_a_split_go_into_the_new_leaves_and_lookups_open_only_files_that_can_match(lake: Lake) -> None:
    lake.table(ONE_KEY, ("k",), splits=())
    lake.ingest(lake.file(int_rows(range(0, 100, 2))))
    split(lake, 25)
    lake.ingest(lake.file(int_rows(range(1, 100, 2))))
    table = lake.open()
    check(table)
    assert [f.partition is None for f in file_infos(table.opened)] == [True, False, False]
    found = table.keys((3,))
    assert (found.opened, found.total, found.to_table()["k"].to_pylist()) == (2, 3, [3])
    assert table.keys((99,)).opened == 1  # the first file ends at 98


def test_files_inside_of_a_new_leaf_are_recorded_there(lake: Lake) -> None:
    lake.table(ONE_KEY, ("k",), splits=())
    for start in (0, 50):
        lake.ingest(lake.file(int_rows(range(start, start + 50))))
    assert split(lake, 50).split[0].points == (50,)
    table = lake.open()
    check(table)
    assert [(n.leaf, n.sizes.rows, n.sizes.across) for n in partition_infos(table.opened)] == [
        (False, 0, 0),
        (True, 50, 0),
        (True, 50, 0),
    ]


def test_rows_of_files_across_leaves_count_when_it_is_decided_what_to_split(lake: Lake) -> None:
    lake.table(ONE_KEY, ("k",), splits=())
    lake.ingest(lake.file(int_rows(range(100))))
    assert split(lake, 50).leaves == 2
    lake.ingest(lake.file(int_rows([*range(20), *range(60, 62)])))
    result = split(lake, 60)  # 50 + 20 and 50 + 2
    assert [each.rows for each in result.split] == [70]
    assert result.leaves == 3
    check(lake.open())


def test_foreign_files_are_placed_when_they_fit(lake: Lake) -> None:
    import lance

    table = lake.table(ONE_KEY, ("k",), splits=((50,),))
    lance.write_dataset(int_rows(range(40, 60)), table.opened.location, mode="append")
    lance.write_dataset(int_rows(range(60, 70)), table.opened.location, mode="append")
    assert split(lake, 15).leaves == 3
    state = lake.open().opened.state
    check_tree(dict(state.partitions))
    assert [file.partition is None for file in state.files] == [True, False]


def test_a_limit_is_needed(lake: Lake) -> None:
    lake.table()
    with pytest.raises(InvalidInput, match="the number of rows that a leaf may hold is not given"):
        split(lake)
    with pytest.raises(InvalidInput, match="must hold a row"):
        split(lake, 0)


def test_a_table_without_keys_cannot_be_split(lake: Lake) -> None:
    lake.table(row_keys=())
    with pytest.raises(InvalidInput, match="without row keys"):
        split(lake, 5)


def declare_limit(lake: Lake, limit: int | None, **more: Any) -> None:
    from deployer.live.reader import read_table

    entry = lake.open().opened.entry
    spec = read_table(lake.store, lake.root, entry).spec
    update_table(lake.store, lake.root, entry.table_id, replace(spec, max_rows_per_leaf=limit, **more))


def test_a_declared_limit_splits_after_a_load(lake: Lake) -> None:
    lake.table(splits=())
    declare_limit(lake, 50)
    result = lake.ingest(lake.file(flights(120)))
    assert result.splits is not None and result.splits.leaves == 4 and not result.splits.failure
    check(lake.open())
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(120))
    declare_limit(lake, 10, online=False)
    assert lake.ingest(lake.file(flights(10))).splits is None
    assert len(lake.open().opened.state.leaves()) == 4
    declare_limit(lake, None, online=True)
    assert split_after_load(lake.store, lake.root, lake.open().opened.entry.table_id) is None


def test_splits_are_no_difference_until_they_are_declared(lake: Lake) -> None:
    from deployer.live.reader import read_table

    lake.table(splits=(("DL",),))
    entry = lake.open().opened.entry
    before = read_table(lake.store, lake.root, entry).spec
    lake.ingest(lake.file(flights(100)))
    split(lake, 10)
    assert read_table(lake.store, lake.root, entry).spec == before
    points = declare_split_points(lake.store, lake.root, entry.table_id)
    after = read_table(lake.store, lake.root, entry).spec
    assert len(after.split_points) == len(points) == len(lake.open().opened.state.leaves()) - 1
    version = lake.open().opened.state.version
    update_table(lake.store, lake.root, entry.table_id, after)
    assert lake.open().opened.state.version == version


@pytest.mark.parametrize(
    "point", ["tables.split.before-commit", "tables.split.committed", "tables.split.before-places"]
)
def test_a_killed_split_is_whole_or_not_there(point: str, lake: Lake) -> None:
    lake.table(splits=())
    lake.ingest(lake.file(flights(100)))
    split(lake, 60)
    unplaced(lake)
    ended = start(lake, "split", "20", failpoint=point)
    assert ended.wait(300) == -signal.SIGKILL
    check_all_but_unplaced(lake.open())
    split(lake, 20)
    check(lake.open())
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(pa.concat_tables([flights(100), flights(1)]))


def unplaced(lake: Lake) -> None:
    """A file inside of a leaf is recorded in none, as by a roll-forward that read the tree before it was split."""
    lake.ingest(lake.file(flights(1)))
    state = lake.open().opened.state
    file = max(state.files, key=lambda each: each.fragment_id)
    removed = FilesReplaced((file.fragment_id,), (replace(file, partition=None),), state.lance_version)
    lake.store.commit(state.table_id, [removed])


def test_files_recorded_in_no_leaf_are_placed(lake: Lake) -> None:
    lake.table()
    unplaced(lake)
    assert [split(lake, 1000).files_placed for _ in range(2)] == [1, 0]
    check(lake.open())


def check_all_but_unplaced(table: Table) -> None:
    check_tree(dict(table.opened.state.partitions))
    assert table.count() == table.opened.dataset().count_rows()


def start(lake: Lake, *arguments: str, failpoint: str = "") -> subprocess.Popen[bytes]:
    table_id = lake.open().opened.entry.table_id
    return forks.Popen(
        [sys.executable, "-m", "tests.tables.admin_worker", lake.root, table_id, *arguments],
        env=os.environ | ({"DEPLOYER_FAILPOINT": failpoint} if failpoint else {}),
    )


def test_loads_and_splits_at_once_lose_and_double_nothing(lake: Lake) -> None:
    lake.table(splits=())
    lake.ingest(lake.file(flights(200)))
    batches = [flights(40, 200 + 40 * i) for i in range(12)]
    files = [str(lake.file(batch)) for batch in batches]
    workers = [
        start(lake, "load", *files[:6]),
        start(lake, "load", *files[6:]),
        start(lake, "split-often", *map(str, (150, 120, 90, 70, 50, 30, 20, 10))),
    ]
    assert [worker.wait(300) for worker in workers] == [0, 0, 0]
    table = lake.open()
    check(table)
    assert sorted_rows(table.scan().to_table()) == sorted_rows(flights(680))
    for key in {*keys_of(flights(680), ("carrier", "flight"))}:
        leaf = leaf_for(table.opened.state.partitions, encode_key(table.opened.kinds, key))
        assert leaf.holds(encode_key(table.opened.kinds, key))


def test_a_load_planned_before_a_split_is_recorded_where_its_keys_are(lake: Lake) -> None:
    """The writer stops between its plan and its commit while the leaf that it wrote for is split."""
    lake.table(ONE_KEY, ("k",), splits=())
    lake.ingest(lake.file(int_rows(range(100))))
    late = start(
        lake,
        "load",
        str(lake.file(int_rows([5, 6]))),
        str(lake.file(int_rows([7, 93]))),
        failpoint="tables.commit.before-lance=stop",
    )
    os.waitid(os.P_PID, late.pid, os.WSTOPPED | os.WNOWAIT)
    split(lake, 50)
    os.kill(late.pid, signal.SIGCONT)
    assert late.wait(300) == 0
    table = lake.open()
    check(table)
    assert [table.keys((key,)).to_table().num_rows for key in (6, 93)] == [2, 2]
    split(lake, 1000)  # places what a writer that knew the tree of before recorded above the leaves
    table = lake.open()
    check(table)
    leaves = [leaf.partition_id for leaf in table.opened.state.leaves()]
    assert [f.rows for leaf in leaves for f in table.opened.state.files.for_partition(leaf)] == [2, 1, 1]


TEXT = st.text(st.characters(codec="utf-8"), max_size=5)
KEYS: dict[str, tuple[list[pa.DataType], st.SearchStrategy[Any]]] = {
    "integers": ([pa.int32()], st.tuples(st.integers(-(2**31), 2**31 - 1))),
    "texts": ([pa.string()], st.tuples(TEXT)),
    "bytes": ([pa.binary()], st.tuples(st.binary(max_size=4))),
    "floats": ([pa.float64()], st.tuples(st.floats(allow_nan=False))),
    "flags and texts": ([pa.bool_(), pa.string()], st.tuples(st.booleans(), TEXT)),
    "texts and numbers": ([pa.string(), pa.int64()], st.tuples(st.sampled_from(["", "a", "b\0"]), st.integers(-3, 3))),
    "dates": ([pa.date32()], st.tuples(st.dates())),
    "decimals": ([pa.decimal128(5, 2)], st.tuples(st.decimals(-999, 999, places=2))),
}


@pytest.mark.thinned(4, to="full")
@pytest.mark.parametrize("kind", KEYS)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_any_keys_are_parted_into_a_valid_tree_and_found(kind: str, data: st.DataObject) -> None:
    types, strategy = KEYS[kind]
    schema = pa.schema([pa.field(f"k{i}", each, nullable=False) for i, each in enumerate(types)])
    names: tuple[str, ...] = tuple(schema.names)
    batches = data.draw(st.lists(st.lists(strategy, min_size=1, max_size=12), min_size=1, max_size=3))
    limits = data.draw(st.lists(st.integers(1, 20), min_size=1, max_size=2))
    splits: tuple[tuple[KeyValue, ...], ...] = ()
    with folder_of_example() as folder:
        lake = Lake(Path(folder))
        lake.table(schema, names, splits=splits)
        for batch in batches:
            columns = [pa.array([row[i] for row in batch], each) for i, each in enumerate(types)]
            lake.ingest(lake.file_arrow(pa.table(columns, schema=schema)))
            split(lake, limits[0])
        result = split(lake, limits[-1])
        table = lake.open()
        check(table)
        rows = [row for batch in batches for row in batch]
        wanted = pa.table([pa.array([row[i] for row in rows], each) for i, each in enumerate(types)], schema=schema)
        assert sorted_rows(table.scan().to_table()) == sorted_rows(wanted)
        for key in {*rows}:
            same = [row for row in rows if row == key]
            assert table.keys(key).to_table().num_rows == len(same)
        for leaf, count in result.unsplit:
            assert count > limits[-1] and leaf in table.opened.state.partitions
