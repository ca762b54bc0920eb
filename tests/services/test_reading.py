"""Leases of readers: CLEAN leaves their version until they end, or until their time is over."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import lance
import pytest

from deployer.services.kinds.clean import clean_table
from deployer.services.kinds.compact import compact_table
from deployer.services.savepoints.read_lease import leased
from tests.tables.lakes import Lake, flights, sorted_rows


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    lake.table()
    lake.ingest(lake.file(flights(40)))
    lake.ingest(lake.file(flights(40, 40)))
    return lake


def replace_all(lake: Lake) -> None:
    """Another version with other files, and no old one but those that somebody needs."""
    lake.ingest(lake.file(flights(20, 80)))
    compact_table(lake.root, "flights")
    clean_table(lake.root, "flights", {"older_than": "0h"})


def versions(lake: Lake) -> int:
    return len(lance.dataset(lake.open().opened.location).versions())


def test_what_is_held_is_read_to_its_end(lake: Lake) -> None:
    with leased(lake.root, "flights") as table:
        replace_all(lake)
        assert versions(lake) == 2
        assert sorted_rows(table.scan().to_table()) == sorted_rows(flights(80))
    clean_table(lake.root, "flights", {"older_than": "0h"})
    assert versions(lake) == 1 and not lake.open().opened.state.savepoints


def test_a_lease_ends_with_its_time(lake: Lake) -> None:
    with leased(lake.root, "flights", dt.timedelta(0)):
        replace_all(lake)
        assert versions(lake) == 1 and not lake.open().opened.state.savepoints


def test_a_reader_that_fails_holds_nothing(lake: Lake) -> None:
    with pytest.raises(ZeroDivisionError), leased(lake.root, "flights"):
        raise ZeroDivisionError
    assert not lake.open().opened.state.savepoints
