"""Reads by an index whose files are damaged: the error names the index, and the remedy that it names repairs it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deployer.errors import Corrupt, InvalidInput
from deployer.specs.model import IndexSpec
from deployer.table import Table, connect
from tests.tables.indexed import BITMAP, LABELS, PQ, SIZE, TEXT, TREE, Indexed
from tests.tables.lakes import Lake

DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": lambda file: file.unlink(),
    "half": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "other bytes": lambda file: file.write_bytes(b"\x07" * file.stat().st_size),
}


def ids(query: Any) -> list[int]:
    return sorted(row["id"] for row in query.select(["id"]).to_list())


READS: dict[str, tuple[IndexSpec, Callable[[Table], Any]]] = {
    "condition": (TREE, lambda table: ids(table.search().where("id = 17"))),
    "deletion": (TREE, lambda table: table.delete("id = 17", dry_run=True).rows),
    "bitmap": (BITMAP, lambda table: ids(table.search().where("carrier = 'c3'").limit(400))),
    "labels": (LABELS, lambda table: ids(table.search().where("array_has(stops, 's4')").limit(400))),
    "words": (TEXT, lambda table: ids(table.search("boarding", query_type="fts").limit(400))),
    "vectors": (PQ, lambda table: ids(table.search([0.5] * SIZE, "embedding").limit(1))),
}


CASES = [("condition", each) for each in DAMAGES] + [(each, "other bytes") for each in READS if each != "condition"]


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize(("read", "damage"), CASES)
def test_a_damaged_index_is_named_and_built_again(lake: Lake, read: str, damage: str) -> None:
    index, reading = READS[read]
    indexed = Indexed(lake, [index])
    indexed.add(400)
    with connect(lake.root) as connection:
        found = reading(connection.open_table("flights"))
        assert found
    for file in (Path(indexed.dataset.uri) / "_indices").rglob("*.*"):
        DAMAGES[damage](file)
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        with pytest.raises(Corrupt, match=f"the index {index.name} is damaged, and no row is lost") as raised:
            reading(table)
        assert f"drop_index('{index.name}')" in str(raised.value.remedy)
        assert not re.search(r"\.rs|rustc|External error", str(raised.value)), raised.value
        table.drop_index(index.name)
        indexed.apply()
        assert reading(table) == found


def test_a_wrong_condition_is_not_taken_for_a_damaged_index(lake: Lake) -> None:
    Indexed(lake, [TREE]).add(400)
    with connect(lake.root) as connection, pytest.raises(InvalidInput, match=r"the condition .* cannot be used"):
        connection.open_table("flights").search().where("id = 'seventeen'").to_list()
