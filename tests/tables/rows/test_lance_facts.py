"""What Lance does with two commits that were prepared on one version, of which one changes rows: the table in
`deployer.tables.rows`. A new release of Lance that does otherwise fails here."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.file import LanceFileWriter
from lance.fragment import DataFile, write_fragments

ROWS = 10
OP = lance.LanceOperation
Prepare = Callable[[Any], Any]


def dataset_of(path: Path) -> Any:
    """Three fragments of ten rows: ids 0 to 29."""
    for start in (0, 10, 20):
        rows = pa.table({"id": range(start, start + ROWS), "v": [0.0] * ROWS})
        dataset = lance.write_dataset(rows, str(path), mode="append" if start else "create")
    return dataset


def new_rows(dataset: Any, *ids: int) -> Any:
    return write_fragments(pa.table({"id": ids, "v": [1.0] * len(ids)}), dataset)


def append(dataset: Any) -> Any:
    return OP.Append(new_rows(dataset, 100, 101))


def deletion(number: int, *, guard: bool = False) -> Prepare:
    def prepared(dataset: Any) -> Any:
        first = [dataset.get_fragment(0).metadata] if guard else []
        return OP.Delete([*first, dataset.get_fragment(number).delete_rows([1, 2])], [], "true")

    return prepared


def update(number: int | None, *, guard: bool = False) -> Prepare:
    def prepared(dataset: Any) -> Any:
        changed = [dataset.get_fragment(0).metadata] if guard else []
        changed += [] if number is None else [dataset.get_fragment(number).delete_rows([5, 6])]
        return OP.Update(updated_fragments=changed, new_fragments=new_rows(dataset, 200, 201), fields_modified=[])

    return prepared


def rewrite(number: int) -> Prepare:
    def prepared(dataset: Any) -> Any:
        fragment = dataset.get_fragment(number)
        return OP.Rewrite([OP.RewriteGroup([fragment.metadata], write_fragments(fragment.to_table(), dataset))], [])

    return prepared


def column_file(number: int) -> Prepare:
    def prepared(dataset: Any) -> Any:
        name, values = f"{uuid.uuid4().hex}.lance", pa.table({"v": [9.0] * ROWS})
        with LanceFileWriter(f"{dataset.uri}/data/{name}", values.schema) as writer:
            writer.write_batch(values)
        file = DataFile(path=name, fields=[1], column_indices=[0], file_major_version=2, file_minor_version=1)
        return OP.DataReplacement([OP.DataReplacementGroup(number, file)])

    return prepared


def projection(dataset: Any) -> Any:
    return OP.Project(dataset.lance_schema)


CASES: list[tuple[str, Prepare, Prepare, bool]] = [
    ("deletion, append", deletion(0), append, True),
    ("append, deletion", append, deletion(0), True),
    ("update, append", update(0), append, True),
    ("append, update", append, update(0), True),
    ("deletions of other rows of one fragment", deletion(0), update(0), False),
    ("deletions of one fragment", deletion(0), deletion(0), False),
    ("deletions of two fragments", deletion(1), deletion(2), True),
    ("updates of two fragments", update(1), update(2), True),
    ("updates of two fragments with a guard", update(1, guard=True), update(2, guard=True), False),
    ("inserts with a guard", update(None, guard=True), update(None, guard=True), False),
    ("deletion and update of two fragments with a guard", deletion(1, guard=True), update(2, guard=True), False),
    ("update and deletion of two fragments with a guard", update(1, guard=True), deletion(2, guard=True), False),
    ("deletions of two fragments with a guard", deletion(1, guard=True), deletion(2, guard=True), False),
    ("append, update with a guard", append, update(2, guard=True), True),
    ("rewrite, deletion of its fragment", rewrite(0), deletion(0), False),
    ("deletion, rewrite of its fragment", deletion(0), rewrite(0), False),
    ("rewrite, update of its fragment", rewrite(0), update(0), False),
    ("rewrite, update of another", rewrite(1), update(0), True),
    ("column file, deletion of its fragment", column_file(0), deletion(0), False),
    ("deletion, column file of its fragment", deletion(0), column_file(0), True),
    ("column file, update of its fragment", column_file(0), update(0), False),
    ("update, column file of its fragment", update(0), column_file(0), False),
    ("column file, update of another", column_file(0), update(1), True),
    ("projection, deletion", projection, deletion(0), True),
    ("deletion, projection", deletion(0), projection, True),
    ("projection, update", projection, update(0), False),
    ("update, projection", update(0), projection, False),
]


@pytest.mark.parametrize(("first", "second", "both"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_two_commits_on_one_version(tmp_path: Path, first: Prepare, second: Prepare, both: bool) -> None:
    dataset = dataset_of(tmp_path / "rows.lance")
    one, other = (lance.Transaction(dataset.version, prepare(dataset)) for prepare in (first, second))
    assert lance.LanceDataset.commit(dataset, one).version == dataset.version + 1
    if both:
        assert lance.LanceDataset.commit(dataset, other).version == dataset.version + 2
    else:
        with pytest.raises(Exception, match="conflict"):
            lance.LanceDataset.commit(dataset, other)


@pytest.mark.parametrize("guard", [False, True])
def test_an_index_stays_for_rows_that_are_left(tmp_path: Path, guard: bool) -> None:
    dataset_of(tmp_path / "rows.lance").create_scalar_index("id", "BTREE")
    dataset = lance.dataset(str(tmp_path / "rows.lance"))
    after = lance.LanceDataset.commit(dataset, lance.Transaction(dataset.version, update(1, guard=guard)(dataset)))
    statistics = after.stats.index_stats("id_idx")
    assert (statistics["num_indexed_rows"], statistics["num_unindexed_rows"]) == (28, 2)
    assert after.to_table(filter="id IN (4, 15, 200)")["id"].to_pylist() == [4, 200]
