"""A program killed while it builds an index in parts: nothing is left but files that `table gc` removes."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from deployer.table import connect
from deployer.tables.maintenance.collect.garbage import collect_garbage
from tests import forks
from tests.tables.indexed import Indexed
from tests.tables.lakes import Lake

PROGRAM = """
import sys
from deployer.table import connect
table = connect(sys.argv[1]).open_table("flights")
if sys.argv[2] == "text":
    table.create_fts_index("remark", parts=3, replace=True)
else:
    table.create_index(vector_column_name="embedding", index_type="IVF_PQ", num_partitions=2, parts=3)
"""


@pytest.mark.parametrize("before", [False, True], ids=["first", "in-the-place-of-another"])
@pytest.mark.parametrize("kind", ["vectors", pytest.param("text", marks=pytest.mark.full)])
def test_parts_without_a_commit_are_garbage(tmp_path: Path, kind: str, *, before: bool) -> None:
    indexed = Indexed(Lake(tmp_path), [])
    lake = indexed.lake
    for start in range(0, 900, 300):
        indexed.add(300, start)
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        if before:
            table.create_index(vector_column_name="embedding", index_type="IVF_FLAT")
            table.create_fts_index("remark", stem=True)
        version, indexes, shown = table.version, table.list_indices(), indexed.changes()
        folder = Path(indexed.dataset.uri) / "_indices"
        needed = {each.name for each in folder.iterdir()} if folder.exists() else set()
        ended = forks.run(
            [sys.executable, "-c", PROGRAM, lake.root, kind],
            env={**os.environ, "DEPLOYER_FAILPOINT": "tables.index.parts-built"},
            text=True,
        )
        assert ended.returncode == -signal.SIGKILL, ended.stdout + ended.stderr
        assert (table.version, table.list_indices(), indexed.changes()) == (version, indexes, shown)
        left = {each.name for each in folder.iterdir()} - needed
        assert len(left) == 3, "the parts"
        age = 8 * 24 * 3600
        for each in folder.rglob("*"):
            os.utime(each, (each.stat().st_mtime - age, each.stat().st_mtime - age))
        collect_garbage(lake.store, lake.root, indexed.id)
        assert {each.name for each in folder.iterdir()} == needed
        assert table.list_indices() == indexes
        if kind == "text":
            table.create_fts_index("remark", parts=3, replace=True)
        else:
            table.create_index(vector_column_name="embedding", index_type="IVF_PQ", num_partitions=2, parts=3)
        names = {each.name for each in table.list_indices()}
        assert ("remark_inverted" if kind == "text" else "embedding_ivf_pq") in names
        assert lake.open().count() == 900
