"""The feed of tables whose rows are not found by keys of one column: blobs, row ids, and keys in several blocks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import lance
import numpy as np
import pyarrow as pa
import pytest

from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.compact import compact_table
from deployer.services.restore import restore_tables
from deployer.services.restore.planning import preview_restore_at
from deployer.specs.model import Storage
from deployer.table import connect
from deployer.tables.changes import pairing
from deployer.tables.changes.feed import open_feed
from deployer.tables.changes.pairing import Keys, paired
from deployer.tables.changes.sides import Side
from tests.tables.lakes import Lake

BLOB = pa.field("data", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
WITH_BLOBS = pa.schema([pa.field("id", pa.int32(), nullable=False), ("note", pa.string()), BLOB])
PLAIN = pa.schema([("id", pa.int32()), ("note", pa.string())])

Change = tuple[str, int, Any]


def changes(lake: Lake, since: int, columns: Sequence[str], until: int | None = None) -> list[Change]:
    """The feed as its kinds of changes, versions and rows."""
    rows = open_feed(lake.open("rows").opened, since, until, columns).to_table().to_pylist()
    found = [(row["_change"], row["_commit_version"], tuple(row[name] for name in columns)) for row in rows]
    return sorted(found, key=lambda each: (each[1], each[0], str(each[2])))


def load(lake: Lake, schema: pa.Schema, rows: Sequence[tuple[Any, ...]], **request: Any) -> None:
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
    lake.ingest(lake.file(table), table="rows", **request)


def test_values_of_blobs_are_those_of_before_and_after(lake: Lake) -> None:
    lake.table(WITH_BLOBS, ("id",), splits=((3,),), name="rows", unique=True)
    load(lake, WITH_BLOBS, [(n, "a", b"%d" % n * 1000 if n else None) for n in range(6)])
    load(lake, WITH_BLOBS, [(1, "b", b"one"), (7, "b", b"")], mode="upsert", on=("id",))
    with connect(lake.root) as connection:
        table = connection.open_table("air.rows")
        table.update("id = 2", {"note": "c"})
        table.delete("id in (0, 1)", allow_destroy=True)
    compact_table(lake.root, "air.rows", {"target_rows": 100})
    assert changes(lake, 2, WITH_BLOBS.names) == [
        ("insert", 3, (7, "b", b"")),
        ("update", 3, (1, "b", b"one")),
        ("update", 4, (2, "c", b"2" * 1000)),
        ("delete", 5, (0, "a", None)),
        ("delete", 5, (1, "b", b"one")),
    ]
    first = [value for _, _, (value,) in changes(lake, 1, ["data"], 2)]
    assert first == [None, *(b"%d" % n * 1000 for n in range(1, 6))]


def test_a_restore_and_a_load_compare_the_values_of_blobs(lake: Lake) -> None:
    lake.table(WITH_BLOBS, ("id",), splits=(), name="rows", unique=True)
    load(lake, WITH_BLOBS, [(n, "a", b"%d" % n * 1000) for n in range(4)])
    load(lake, WITH_BLOBS, [(1, "a", b"1" * 1000), (2, "a", b"other")], mode="upsert", on=("id",))
    entry = lake.open("rows").opened.entry
    planned = preview_restore_at(lake.store, lake.root, entry, "1:2")
    restore_tables(lake.store, lake.root, [planned], save_first=False)
    restored = changes(lake, 3, WITH_BLOBS.names)
    assert [each[2] for each in restored] == [(2, "a", b"2" * 1000)]  # the other row has the same bytes as before
    assert restored[0][0] == "update"


REWRITES: Mapping[str, tuple[Callable[..., object], Mapping[str, Any]]] = {
    "COMPACT": (compact_table, {"target_rows": 100}),
    "CLUSTER": (cluster_table, {"columns": ["note", "id"]}),
}


@pytest.mark.parametrize("keys", [("id",), ()], ids=["by row keys", "by row ids"])
@pytest.mark.parametrize("service", REWRITES)
def test_compact_and_cluster_contribute_nothing(lake: Lake, service: str, keys: Sequence[str]) -> None:
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False), ("note", pa.string())])
    lake.table(schema, keys, splits=(), name="rows", storage=Storage(stable_row_ids=True))
    for start in (0, 10, 20):
        load(lake, schema, [(n, str(n % 3)) for n in range(start, start + 10)])
    loaded = lake.open("rows").opened.state.lance_version
    rewrite, options = REWRITES[service]
    rewrite(lake.root, "air.rows", options)
    rewritten = lake.open("rows").opened.state
    assert rewritten.lance_version > loaded and rewritten.files.count == 1
    assert changes(lake, loaded, schema.names) == []
    load(lake, schema, [(30, "0")])
    assert [(change, row) for change, _, row in changes(lake, loaded, schema.names)] == [("insert", (30, "0"))]
    assert sorted(row for _, _, row in changes(lake, 0, schema.names)) == [(n, str(n % 3)) for n in range(31)]


def by_row_id(lake: Lake, since: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = open_feed(lake.open("rows").opened, since).to_table().to_pylist()
    return found


@pytest.mark.parametrize("compacted", [False, True], ids=["as written", "compacted"])
def test_rows_without_keys_are_known_by_stable_row_ids(lake: Lake, *, compacted: bool) -> None:
    lake.table(PLAIN, (), name="rows", storage=Storage(stable_row_ids=True))
    load(lake, PLAIN, [(n % 3, "a") for n in range(6)])  # values repeat; row ids do not
    if compacted:
        load(lake, PLAIN, [(9, "z")])
        compact_table(lake.root, "air.rows", {"target_rows": 100})
    before = lake.open("rows").opened.state.lance_version
    state = {row["_rowid"]: (row["id"], row["note"]) for row in by_row_id(lake, 0)}
    with connect(lake.root) as connection:
        table = connection.open_table("air.rows")
        table.update("id = 1", {"note": "b"})
        table.delete("id = 2", allow_destroy=True)
        table.update("id = 1", {"id": 4})
    found = by_row_id(lake, before)
    assert Counter(row["_change"] for row in found) == {"update": 4, "delete": 2}
    for row in found:
        known = state.pop(row["_rowid"])
        assert known == (row["id"], row["note"]) or row["_change"] == "update"
        if row["_change"] == "update":
            state[row["_rowid"]] = (row["id"], row["note"])
    dataset = lance.dataset(lake.open("rows").opened.location)
    there = dataset.to_table(with_row_id=True).to_pylist()
    assert state == {row["_rowid"]: (row["id"], row["note"]) for row in there}


def test_rows_without_keys_and_stable_row_ids_are_deleted_and_inserted(lake: Lake) -> None:
    lake.table(PLAIN, (), name="rows", storage=Storage(stable_row_ids=False))
    load(lake, PLAIN, [(n, "a") for n in range(3)])
    with connect(lake.root) as connection:
        connection.open_table("air.rows").update("id = 1", {"note": "b"})
    assert changes(lake, 2, PLAIN.names) == [("delete", 3, (1, "a")), ("insert", 3, (1, "b"))]
    assert "_rowid" not in open_feed(lake.open("rows").opened, 2).schema.names


class Rows:
    """One side of a commit: the keys of rows, in batches; the address of each is its place."""

    def __init__(self, keys: Sequence[int], batch: int) -> None:
        self.keys, self.batch, self.size = keys, batch, len(keys)
        self.readings = 0


def read(side: Side) -> Iterator[Keys]:
    rows = cast(Rows, side)
    rows.readings += 1
    for start in range(0, rows.size, rows.batch):
        part = rows.keys[start : start + rows.batch]
        places = np.arange(start, start + len(part), dtype=np.uint64)
        spread = (places % np.uint64(3) << np.uint64(32)) | places  # in three fragments
        yield spread, [pa.array(part, pa.int32()), pa.array([f"k{key}" for key in part])]


def expected(took: Sequence[int], put: Sequence[int]) -> tuple[set[int], set[int]]:
    """The places of the rows whose key is on either side once."""
    out, back = Counter(took), Counter(put)
    once = {key for key in out if out[key] == 1 == back[key]}
    return ({i for i, key in enumerate(took) if key in once}, {i for i, key in enumerate(put) if key in once})


#: Keys that a commit took out and put in.
SIDES: Mapping[str, Callable[[random.Random], tuple[list[int], list[int]]]] = {
    "all updated": lambda dice: (list(range(20)), dice.sample(range(20), 20)),
    "more put": lambda dice: (dice.sample(range(30), 9), dice.sample(range(30), 25)),
    "more took": lambda dice: (dice.sample(range(30), 25), dice.sample(range(30), 9)),
    "keys twice": lambda dice: (dice.choices(range(12), k=20), dice.choices(range(12), k=15)),
    "nothing in common": lambda dice: (list(range(10)), list(range(20, 40))),
    "one side empty": lambda dice: ([], list(range(5))),
}


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("block", [1, 3, 7, 100])
@pytest.mark.parametrize("name", SIDES)
def test_keys_are_paired_across_blocks(monkeypatch: pytest.MonkeyPatch, name: str, block: int) -> None:
    monkeypatch.setattr(pairing, "BLOCK_ROWS", block)
    dice = random.Random(block)  # noqa: S311 (the same rows each time)
    for _ in range(10):
        keys = SIDES[name](dice)
        took, put = (Rows(each, dice.randrange(1, 6)) for each in keys)
        pairs = paired(cast(Side, took), cast(Side, put), read)
        for rows, marks, wanted in zip((took, put), (pairs.took, pairs.put), expected(*keys), strict=True):
            places = np.arange(rows.size, dtype=np.uint64)
            found = marks.of((places % np.uint64(3) << np.uint64(32)) | places)
            assert set(np.flatnonzero(found)) == wanted, keys


@pytest.mark.parametrize("block", [2, 1000])
def test_updates_are_found_where_their_keys_do_not_fit_one_block(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(pairing, "BLOCK_ROWS", block)
    lake.table(WITH_BLOBS, ("id",), splits=((5,), (9,)), name="rows", unique=True)
    load(lake, WITH_BLOBS, [(n, "a", b"x") for n in range(12)])
    load(lake, WITH_BLOBS, [(n, "b", b"y") for n in range(2, 15)], mode="upsert", on=("id",))
    found = changes(lake, 2, ["id", "note"])
    assert found == sorted(
        [*(("update", 3, (n, "b")) for n in range(2, 12)), *(("insert", 3, (n, "b")) for n in range(12, 15))],
        key=lambda each: (each[1], each[0], str(each[2])),
    )
