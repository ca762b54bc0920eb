"""Indexes in specs: canonical whatever is written out, and the same through JSON as Pulumi carries it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deployer.specs import load_lake
from deployer.specs.declarations.indexes import index_from_json, index_to_json
from deployer.specs.model import IndexSpec
from deployer.specs.serialized.specs import table_from_json, table_to_json

LAKE = """kind: Instance
name: demo
root: lakes/demo
---
kind: Table
database: air
name: flights
columns:
  - {name: carrier, type: string}
  - {name: gate, type: "struct<hall: string>"}
  - {name: embedding, type: "vector<float32, 96>"}
indexes:
"""

CASES: dict[str, tuple[str, IndexSpec]] = {
    "named-by-column-and-kind": (
        "{columns: [gate.hall], kind: btree}",
        IndexSpec("gate_hall_btree", ("gate.hall",), "btree"),
    ),
    "defaults-left-out": (
        "{name: a, columns: [carrier], kind: inverted, stem: true, language: English, max_token_length: 40}",
        IndexSpec("a", ("carrier",), "inverted"),
    ),
    "defaults-of-ngram": (
        "{name: a, columns: [carrier], kind: inverted, base_tokenizer: ngram, stem: false, remove_stop_words: true}",
        IndexSpec("a", ("carrier",), "inverted", {"base_tokenizer": "ngram", "remove_stop_words": True}),
    ),
    "stop-words": (
        "{name: a, columns: [carrier], kind: inverted, custom_stop_words: [by, fog]}",
        IndexSpec("a", ("carrier",), "inverted", {"custom_stop_words": ["by", "fog"]}),
    ),
    "vectors": (
        "{name: a, columns: [embedding], kind: ivf_hnsw_pq, metric: l2, num_sub_vectors: 8, m: 20, ef_construction: 9}",
        IndexSpec("a", ("embedding",), "ivf_hnsw_pq", {"num_sub_vectors": 8, "ef_construction": 9}),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_index_is_canonical_and_the_same_through_json(tmp_path: Path, case: str) -> None:
    text, index = CASES[case]
    (tmp_path / "lake.yaml").write_text(f"{LAKE}  - {text}\n", encoding="utf-8")
    [table] = load_lake(tmp_path, Path("lake.yaml")).tables
    assert table.indexes == (index,)
    assert table.sources[f"indexes.{index.name}"].line == 13
    assert index_from_json(json.loads(json.dumps(index_to_json(index)), parse_int=float)) == index
    assert table_from_json(table_to_json(table)).indexes == (index,)


def test_the_order_of_indexes_declares_nothing(tmp_path: Path) -> None:
    items = ["  - {columns: [carrier], kind: btree}\n", "  - {columns: [carrier], kind: bitmap}\n"]
    for name, order in (("one.yaml", items), ("other.yaml", items[::-1])):
        (tmp_path / name).write_text(LAKE + "".join(order), encoding="utf-8")
    [one], [other] = (load_lake(tmp_path, Path(name)).tables for name in ("one.yaml", "other.yaml"))
    assert one == other
