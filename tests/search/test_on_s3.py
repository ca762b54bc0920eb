"""Searches of a table on S3: its dataset stays open between them, and what others commit is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployer.table import connect
from tests.search.articles import WORDS
from tests.tables.indexed import PQ, Indexed
from tests.tables.lakes import Lake


@pytest.mark.full
def test_a_search_on_s3_finds_what_others_commit(on_s3: str, tmp_path: Path) -> None:
    lake = Lake(tmp_path, on_s3)
    written = Indexed(lake, [WORDS, PQ])
    written.add(400)
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        vector = table.search().where("id = 7").to_arrow()["embedding"][0]
        assert table.search(vector).refine_factor(20).limit(1).to_list()[0]["id"] == 7
        assert table.search("diverted").limit(100).to_arrow().num_rows == 67
        written.add(60, 400, indexes=False)
        assert table.search("diverted").limit(100).to_arrow().num_rows == 77
        both = table.search(query_type="hybrid").vector(vector).text("diverted").limit(5).to_list()
        assert len(both) == 5
    lake.store.close()
