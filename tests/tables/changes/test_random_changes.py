"""The feed, applied to a dict of rows, gives the rows of every version."""

from __future__ import annotations

from itertools import groupby

import pytest

from deployer.tables.changes.feed import open_feed
from tests.tables.changes.random_changes import SCHEMA, RandomChanges, applied, by_key
from tests.tables.lakes import Lake

SPLITS = ((20,), (40,))


def run(lake: Lake, seed: int, steps: int) -> None:
    lake.table(SCHEMA, ("id",), splits=SPLITS, name="rows", unique=True)
    changes = RandomChanges(lake, seed)
    done = [changes.step() for _ in range(steps)]
    table = lake.open("rows")
    feed = open_feed(table.opened, "1:0")
    rows = feed.to_table().to_pylist()
    versions = list(reversed(table.history()))
    state, place = by_key([]), 0
    groups = [
        (key, list(group)) for key, group in groupby(rows, lambda row: (row["_commit_time"], row["_commit_version"]))
    ]
    assert groups
    for (at, number), group in groups:
        state = applied(state, group)
        version = next(each for each in versions[place:] if (each.at, each.version) == (at, number))
        then = table.scan(at=f"{version.dataset}:{version.version}").to_table().to_pylist()
        assert state == by_key(then), (seed, done, version)
    assert state == by_key(table.scan().to_table().to_pylist()), (seed, done)


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("seed", range(4))
def test_the_feed_gives_the_rows_of_each_version(lake: Lake, seed: int) -> None:
    run(lake, seed, 15)


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 34))
def test_the_feed_gives_the_rows_of_each_version_for_long(lake: Lake, seed: int) -> None:
    run(lake, seed, 40)


@pytest.mark.full
def test_the_feed_gives_the_rows_of_each_version_on_s3(lake_on_s3: Lake) -> None:
    run(lake_on_s3, 1, 12)
