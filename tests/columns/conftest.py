from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deployer.table import Table, connect
from tests.columns.rows import SCHEMA, rows
from tests.tables.lakes import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """An instance with the table `air.flights`: rows 0 to 30 in three fragments."""
    lake = Lake(tmp_path)
    lake.table(SCHEMA, row_keys=("id",), splits=())
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        for start in (0, 10, 20):
            table.add(rows(start, start + 10))
    return lake


@pytest.fixture
def table(lake: Lake) -> Iterator[Table]:
    """The table of `lake`, open."""
    with connect(lake.root) as connection:
        yield connection.open_table("flights")
