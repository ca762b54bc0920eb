"""What is remembered of indexes, beside what the dataset has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deployer.datasets.indexes.read import (
    ObservedIndex,
    RememberedIndex,
    live_indexes,
    reconciled,
    remembered_indexes,
    with_indexes,
)
from deployer.specs.model import IndexSpec
from deployer.state.model.entities import TableProperties, TableState
from deployer.state.model.location import Location

WANTED = IndexSpec("v", ("e",), "ivf_pq", {"num_partitions": 4, "num_sub_vectors": 8})
PLAIN = replace(WANTED, parameters={"num_sub_vectors": 8})
COSINE = replace(WANTED, parameters={"metric": "cosine", "num_sub_vectors": 8})
TOLD = {"metric": "l2", "num_sub_vectors": 8}
SEEN = ObservedIndex(PLAIN, TOLD, frozenset({"one"}), frozenset({0}))
OTHER = ObservedIndex(COSINE, {**TOLD, "metric": "cosine"}, frozenset({"two"}), frozenset({0}))
READY = RememberedIndex(WANTED, "ready", 2)
OLD = frozenset({"one"})

CASES: dict[str, tuple[RememberedIndex | None, ObservedIndex | None, RememberedIndex | None, IndexSpec | None]] = {
    "as-declared": (READY, SEEN, READY, WANTED),
    "unknown": (None, SEEN, RememberedIndex(PLAIN, "ready", 2), PLAIN),
    "built-otherwise": (READY, OTHER, RememberedIndex(COSINE, "ready", 2), COSINE),
    "dropped": (READY, None, None, None),
    "renamed-column": (
        READY,
        replace(SEEN, index=replace(PLAIN, columns=("f",))),
        replace(READY, index=replace(WANTED, columns=("f",))),
        replace(WANTED, columns=("f",)),
    ),
    "waits": (RememberedIndex(WANTED, "pending", 2), None, RememberedIndex(WANTED, "pending", 2), WANTED),
    "waited": (RememberedIndex(WANTED, "pending", 2), SEEN, READY, WANTED),
    "begun": (RememberedIndex(WANTED, "building", 2), None, RememberedIndex(WANTED, "building", 2), None),
    "built": (RememberedIndex(WANTED, "building", 2), SEEN, READY, WANTED),
    "begun-in-the-place-of-another": (
        RememberedIndex(WANTED, "building", 2, PLAIN, OLD),
        SEEN,
        RememberedIndex(WANTED, "building", 2, PLAIN, OLD),
        PLAIN,
    ),
    "built-in-the-place-of-another": (
        RememberedIndex(WANTED, "building", 2, PLAIN, OLD),
        replace(SEEN, segments=frozenset({"three"})),
        READY,
        WANTED,
    ),
    "left-behind-by-a-rewrite": (replace(READY, dataset=1), None, replace(READY, dataset=1), None),
    "there-again-after-a-rewrite": (replace(READY, dataset=1), SEEN, READY, WANTED),
}


@pytest.mark.parametrize("case", CASES)
def test_declarations_stand_while_the_dataset_fits_them(case: str) -> None:
    remembered, observed, expected, live = CASES[case]
    before = {"v": remembered} if remembered else {}
    after = reconciled(before, {"v": observed} if observed else {}, 2)
    assert after == ({"v": expected} if expected else {})
    properties = TableProperties(declared=with_indexes(TableProperties(declared={"owner": "me"}), after))
    assert (remembered_indexes(properties), properties.declared["owner"]) == (after, "me")
    assert live_indexes(_in_dataset_2(properties)) == ((live,) if live else ())


def _in_dataset_2(properties: TableProperties) -> TableState:
    from deployer.state.model.entities import Dataset

    return TableState(properties=properties, datasets=(Dataset(2, Location("air/t-g2.lance"), "current", 0, 1),))
