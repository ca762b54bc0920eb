"""Indexes whose parts are built by Spark tasks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from deployer.compute.spark.local import local_session
from deployer.errors import DeployerError
from deployer.table import connect
from tests.tables.indexed import SIZE, Indexed
from tests.tables.lakes import Lake

pytestmark = [pytest.mark.spark, pytest.mark.full]


def test_parts_are_built_by_spark_tasks(lake: Lake) -> None:
    indexed = Indexed(lake, [])
    for start in range(0, 1_200, 300):
        indexed.add(300, start)
    spark = local_session()
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        table.create_index(vector_column_name="embedding", num_partitions=4, num_sub_vectors=8, parts=3, spark=spark)
        table.create_scalar_index("id", parts=2, spark=spark)
        table.create_fts_index("remark", parts=4, spark=spark)
        stats = {each.name: table.index_stats(each.name) for each in table.list_indices()}
        assert {name: each and (each.num_indices, each.num_indexed_rows) for name, each in stats.items()} == {
            "embedding_ivf_pq": (3, 1_200),
            "id_btree": (2, 1_200),
            "remark_inverted": (1, 1_200),
        }
        table.create_scalar_index("id", spark=spark)
        one = table.index_stats("id_btree")
        assert one is not None and one.num_indices == 1, "few rows are not worth several tasks"
    every = indexed.dataset.to_table(columns=["id", "embedding"])
    vectors, ids = np.array(every["embedding"].to_pylist(), np.float32), np.array(every["id"])
    nearest = {"column": "embedding", "q": vectors[17], "k": 10, "nprobes": 4, "refine_factor": 40}
    got = indexed.dataset.to_table(columns=["id"], nearest=nearest)["id"].to_pylist()
    assert len(vectors[0]) == SIZE
    wanted = ids[np.argsort(((vectors - vectors[17]) ** 2).sum(axis=1))[:10]].tolist()
    assert len({*got} & {*wanted}) >= 9
    text = indexed.dataset.to_table(columns=["id"], full_text_query="boarding")["id"].to_pylist()
    assert len(text) == 200


def test_a_task_that_fails_changes_nothing(lake: Lake) -> None:
    indexed = Indexed(lake, [])
    for start in range(0, 600, 300):
        indexed.add(300, start)
    file = max((Path(indexed.dataset.uri) / "data").iterdir())
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        before = table._newest().state.properties.declared
        file.rename(file.with_suffix(".away"))
        with pytest.raises(DeployerError):
            table.create_fts_index("remark", parts=2, spark=local_session())
        assert (table._newest().state.properties.declared, table.list_indices()) == (before, [])
        file.with_suffix(".away").rename(file)
        table.create_fts_index("remark", parts=2, spark=local_session())
        assert [each.name for each in table.list_indices()] == ["remark_inverted"]
