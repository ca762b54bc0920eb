"""Rows in datasets whose versions a log names: writers that meet all get a version of their own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa

from deployer.datasets.files.named_rows import NamedVersion, add_rows, read_rows


def rows(*values: int) -> pa.Table:
    return pa.table({"value": pa.array(values, pa.int64())})


def test_writers_that_meet_all_add_their_rows_to_the_named_version(tmp_path: Path) -> None:
    """Each restores the named version below its rows, so each comes between others' restoring and adding."""
    place = str(tmp_path / "rows.lance")
    named = add_rows(place, NamedVersion(), rows(-1))
    with ThreadPoolExecutor(12) as pool:
        added = list(pool.map(lambda number: add_rows(place, named, rows(number)), range(24)))
    assert len({each.version for each in added}) == 24
    for number, each in enumerate(added):
        found = read_rows(place, each)
        assert found is not None and found["value"].to_pylist() == [-1, number]
