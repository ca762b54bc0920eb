"""The benchmark of the catalog, in its smallest form."""

from __future__ import annotations

import pytest

from benchmarks.recordings.measured import PYTHON
from tests.benchmarks.test_scripts import benchmark, tables

pytestmark = pytest.mark.full


def test_catalog() -> None:
    printed = benchmark("catalog", "--rows", "60000", "--repeat", "1")
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
