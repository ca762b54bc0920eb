"""The benchmark of the catalog, in its smallest form."""

from __future__ import annotations

import pytest

from benchmarks.recordings.measured import PYTHON
from tests.benchmarks.test_scripts import benchmark, tables

pytestmark = pytest.mark.full


def test_catalog() -> None:
    printed = benchmark("catalog", "--part", "tables", "--rows", "60000", "--repeat", "1")
    assert "start of the child process:" in printed
    if not PYTHON.exists():
        assert "were not measured" in printed
        return
    [table] = tables(printed)
    assert table[0][1:4] == ["rerun ms", "deployer ms", "deployer, keys ms"]
    assert [line[0] for line in table[1:]] == [
        "tables: get_table",
        "tables: overwrite of all rows",
        "tables: reading all rows",
        "tables: upsert of 100 rows",
        "tables: reading all rows after it",
        "tables: append of 100 rows",
    ]
    assert all(line[1] and line[2] for line in table[1:])


def test_recordings() -> None:
    sizes = ("--segments", "20", "--many", "30", "--searched", "1", "--repeat", "1")
    printed = benchmark("catalog", "--part", "recordings", "--part", "many", *sizes)
    if not PYTHON.exists():
        assert "were not measured" in printed
        return
    [table] = tables(printed)
    names = [line[0] for line in table[1:]]
    assert {"registering 20 files", "all rows of 250 MB of blobs", "20 of 30,000 ticks"} <= set(names)
    assert {f"{each} of 20, cold server" for each in ("segment_ids", "segment_table", "manifest")} <= set(names)
    assert names[-2:] == ["segment_table of 30, cold server", "segment_ids of 30, cold server"]
    assert all(line[1] for line in table[1:])
