"""INGEST on a disk: each file once, bad files aside, changed ones reported, many files one commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.services.ingest.landings import Landing


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    return Landing(tmp_path, ("id",))


def test_each_file_is_loaded_once_and_many_are_one_commit(landing: Landing) -> None:
    for number in range(5):
        landing.land(f"{number}.parquet", range(number * 10, number * 10 + 10))
    done = landing.run()
    assert (done.status, done.files, done.rows, done.commits) == ("SUCCEEDED", 5, 50, 1)
    assert landing.ids() == [*range(50)]
    again = landing.run()
    assert (again.status, again.files, again.commits) == ("SKIPPED", 0, 0) and "no new file" in again.why
    landing.land("5.parquet", range(50, 60))
    assert landing.run().files == 1
    assert landing.ids() == [*range(60)]
    assert {each.status for each in landing.files().values()} == {"LOADED"} and len(landing.files()) == 6
