"""A lake, the server of its catalog, and a client of that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from deployer.catalog.serving.server import served
from deployer.state import open_store
from deployer.state.log.updates import SetTableProperties
from tests.catalog.clients import Client
from tests.tables.lakes import Lake, flights


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    lake.table()
    lake.table(name="empty", row_keys=())
    lake.ingest(lake.file(flights(40)))
    for name in ("flights", "empty"):  # tables without an owner may be changed by any client
        lake.store.commit(lake.open(name).opened.entry.table_id, [SetTableProperties({"declared": {}})])
    return lake


@pytest.fixture
def client(lake: Lake) -> Iterator[Client]:
    with closing(open_store(lake.root)) as store, served(store, lake.root) as url, closing(Client(url)) as client:
        yield client
