"""How long changes can be read, and errors of versions that there are not."""

from __future__ import annotations

import time
from dataclasses import replace

import lance
import pytest

from deployer.errors import InvalidInput, NotFound
from deployer.live.reader import read_table
from deployer.services.kinds.clean import clean_table
from deployer.table import connect
from deployer.tables.admin.tables import update_table
from deployer.tables.changes.feed import open_feed
from deployer.tables.inspect.describe import describe
from tests.tables.changes.random_changes import SCHEMA, RandomChanges
from tests.tables.lakes import Lake

DAY = 86_400


def loaded(lake: Lake) -> RandomChanges:
    lake.table(SCHEMA, ("id",), splits=((20,), (40,)), name="rows", unique=True)
    changes = RandomChanges(lake, 1)
    changes.add()
    changes.add()
    return changes


def declare(lake: Lake, kept_for: str | None) -> None:
    entry = lake.open("rows").opened.entry
    spec = read_table(lake.store, lake.root, entry).spec
    update_table(lake.store, lake.root, entry.table_id, replace(spec, retain_changes=kept_for))


def test_clean_keeps_what_the_declared_changes_need(lake: Lake) -> None:
    loaded(lake)
    declare(lake, "7d")
    assert describe(lake.open("rows").opened).retain_changes == "7d"
    options = {"older_than": "0d"}
    clean_table(lake.root, "rows", options, now=time.time() + 6 * DAY)
    assert open_feed(lake.open("rows").opened, 1).to_table().num_rows
    declare(lake, None)
    clean_table(lake.root, "rows", options, now=time.time() + 6 * DAY)
    with pytest.raises(NotFound, match="changes since version 1 are not kept any more") as raised:
        open_feed(lake.open("rows").opened, 1)
    assert "the oldest version that changes can be read since is 3" in str(raised.value)


def test_errors_of_versions(lake: Lake) -> None:
    loaded(lake)
    table = lake.open("rows").opened
    with pytest.raises(NotFound, match="there is no version 9: the newest is 3"):
        open_feed(table, 9)
    with pytest.raises(InvalidInput, match="since is 'soon', which is neither a version nor a time"):
        open_feed(table, "soon")
    with pytest.raises(NotFound):
        open_feed(table, "2001-01-01")
    with pytest.raises(InvalidInput, match="which is before"):
        open_feed(table, 3, 1)


def test_files_that_no_commit_touched_are_not_opened(lake: Lake) -> None:
    changes = loaded(lake)
    before = lake.data_files("rows")
    version = lake.open("rows").opened.state.lance_version
    changes.foreign_append()
    folder = lance.dataset(lake.open("rows").opened.location).uri
    for name in before:
        (lake.folder / "away").mkdir(exist_ok=True)
        (lake.folder / "lake" / folder.partition("/lake/")[2] / "data" / name).rename(lake.folder / "away" / name)
    with connect(lake.root) as connection:
        found = connection.open_table("air.rows").changes(version).to_table()
    assert set(found["_change"].to_pylist()) == {"insert"}
