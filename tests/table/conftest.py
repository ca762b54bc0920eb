from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deployer.table import Table, connect
from tests.tables.lakes import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """An empty instance."""
    return Lake(tmp_path)


@pytest.fixture
def table(lake: Lake) -> Iterator[Table]:
    """The empty table `air.flights`, open."""
    lake.table()
    with connect(lake.root) as connection:
        yield connection.open_table("flights")
