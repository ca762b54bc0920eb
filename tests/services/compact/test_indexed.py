"""COMPACT of tables with indexes: look-ups by every kind find the same rows before and after."""

from __future__ import annotations

from typing import Any

import lance
import pytest

from deployer.services.kinds.compact import compact_table
from deployer.specs.model import Storage
from tests.services.compact.test_compact import append, differences
from tests.tables.indexed import BITMAP, LABELS, NESTED, PQ, TEXT, TREE, Indexed, rows
from tests.tables.lakes import Lake, flights


def found(table: Indexed) -> dict[str, Any]:
    dataset = table.dataset
    query = rows(1, 5)["embedding"].combine_chunks().flatten().to_numpy()
    text = dataset.to_table(columns=["id"], full_text_query="boarding")
    near = dataset.to_table(
        columns=["id"], nearest={"column": "embedding", "q": query, "k": 10, "nprobes": 4, "refine_factor": 20}
    )
    filters = ("id = 77", "id in (5, 600, 1399)", "carrier = 'c3'", "array_has(stops, 's4')", "gate.number < 3")
    return {
        "text": sorted(text["id"].to_pylist()),
        "near": near["id"].to_pylist(),
        **{each: sorted(dataset.to_table(columns=["id"], filter=each)["id"].to_pylist()) for each in filters},
    }


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "keyless"])
def test_look_ups_find_the_same_rows(lake: Lake, *, keyed: bool) -> None:
    table = Indexed(lake, [TREE, BITMAP, LABELS, TEXT, PQ, NESTED], keyed=keyed)
    for start in range(0, 1400, 200):
        table.add(200, start, indexes=start < 1000)  # the last files are in no index
    lance.dataset(lake.open().opened.location).delete("id % 50 = 7")
    before = found(table)
    assert all(before.values()) or before["id = 77"] == [77]
    done = compact_table(lake.root, "flights")
    assert done.after.files == 1 and done.indexes.failure == ""
    after = found(table)
    assert {name for name in before if before[name] != after[name]} == set()
    assert {info.unindexed_rows for info in table.infos().values()} == {0}
    assert "ScalarIndexQuery" in table.dataset.scanner(filter="id = 77").explain_plan()
    table.add(100, 5000)
    assert table.dataset.to_table(filter="id = 5050").num_rows == 1
    assert differences(lake.root) == []


@pytest.mark.parametrize("stable", [True, False])
def test_a_file_that_no_index_has_is_joined_with_its_neighbours(lake: Lake, *, stable: bool) -> None:
    lake.table(row_keys=(), storage=Storage(stable_row_ids=stable))
    append(lake, flights(300), 3)
    lance.dataset(lake.open().opened.location).create_scalar_index("flight", "BTREE")
    append(lake, flights(100, 300), 1)
    done = compact_table(lake.root, "flights")
    assert done.after.files == 1
    found = lake.open().scan().to_table()
    assert found.equals(flights(400))
    one = found["flight"][350].as_py()
    dataset = lake.open().opened.dataset()
    assert dataset.to_table(filter=f"flight = {one}").num_rows == found["flight"].to_pylist().count(one)
    assert compact_table(lake.root, "flights").status == "SKIPPED"
    assert differences(lake.root) == []
