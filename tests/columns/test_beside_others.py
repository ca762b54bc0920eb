"""Loads of columns beside appends, deletions, COMPACT and CLUSTER: the table ends as if the last load came last."""

from __future__ import annotations

from contextlib import closing

import pytest

from deployer.datasets.recovery.rollforward import refresh
from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.compact import compact_table
from deployer.state import open_store
from deployer.table import connect
from deployer.tables.maintenance.verify.verify import verify
from tests.columns.others import others_changing
from tests.columns.rows import source, values
from tests.tables.lakes import Lake


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("granularity", [None, 2])
def test_beside_appends_deletions_and_rewrites(granularity: int | None, lake: Lake) -> None:
    def rewrite() -> None:
        compact_table(lake.root, "flights", {"min_files": 2})
        cluster_table(lake.root, "flights", {"columns": ["rating"]})

    with others_changing(lake, granularity, rewrite) as changed, connect(lake.root) as connection:
        table = connection.open_table("flights")
        for number in range(1, 5):
            path = str(lake.file(source(range(400), number)))
            table.load_columns(path, "id", ["label", "embedding"], commit_granularity=granularity)
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        last = {row["id"]: row["label"] for row in source(range(400), 4).to_pylist()}
        found = values(table, "label")
        # Rows that were added after the last look of the last load have no value, and no row has an older one.
        assert found.keys() == changed.ids
        assert all(label in (last[i], None) for i, label in found.items())
        newest = max(i for i, label in found.items() if label is not None)
        assert all(label is not None for i, label in found.items() if i < newest - 10)
        path = str(lake.file(source(range(400), 5)))
        table.load_columns(path, "id", ["label", "embedding"], on_missing="error")
        want = {row["id"]: row for row in source(sorted(found), 5).select(["id", "label", "embedding"]).to_pylist()}
        assert {row["id"]: row for row in table.to_arrow(["id", "label", "embedding"]).to_pylist()} == want
    with closing(open_store(lake.root)) as store:
        refresh(store, lake.root, lake.open().opened.entry.table_id)
        assert [str(one) for each in verify(store, lake.root, full=True) for one in each.differences] == []
