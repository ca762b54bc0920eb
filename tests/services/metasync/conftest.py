from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deployer.services.kinds.metasync import metasync_table
from deployer.services.kinds.metasync.results import MetasyncResult, PublishedEntry
from tests.tables.lakes import Lake, flights

Sync = Callable[..., PublishedEntry]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table of 20 rows in a folder whose name is not a URI's."""
    folder = tmp_path / "a lake's"
    folder.mkdir()
    lake = Lake(folder)
    lake.table()
    lake.ingest(lake.file(flights(20)))
    return lake


def sync_all(lake: Lake, *targets: dict[str, Any], table: str = "flights") -> MetasyncResult:
    return metasync_table(lake.root, table, {"targets": list(targets)})


def sync(lake: Lake, target: dict[str, Any], table: str = "flights") -> PublishedEntry:
    """Publishes to one target, and says what was done to the one entry."""
    [done] = sync_all(lake, target, table=table).targets
    return done
