"""CLEAN: old versions go by age and number, what somebody needs stays, and the rows are the same."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import lance
import pytest

from deployer.datasets.commit_metadata import CommitMetadata
from deployer.datasets.lance_transactions import metadata_since
from deployer.datasets.recovery import rollforward, unrecorded
from deployer.datasets.recovery.as_recorded import as_recorded
from deployer.datasets.recovery.rollforward import current
from deployer.errors import InvalidInput, NotFound
from deployer.runs.records import queue_run, runs_of, start_run
from deployer.services.api.attachments import create_service
from deployer.services.kinds.clean import CleanResult, clean_table
from deployer.services.kinds.compact import compact_table
from deployer.services.savepoints.savepoints import take_savepoint
from deployer.state.log.updates import CommitStarted
from deployer.state.model.services import Service
from deployer.tables.open_table import open_to_change
from tests.tables.lakes import Lake, filled_lake, flights, sorted_rows

DAY = 86_400.0


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table of versions 1 to 6, five of which added 20 rows."""
    return filled_lake(tmp_path, load_five_times)


def load_five_times(lake: Lake) -> None:
    lake.table()
    for i in range(5):
        lake.ingest(lake.file(flights(20, 20 * i)))


def table_id(lake: Lake) -> str:
    return lake.open().opened.entry.table_id


def clean(lake: Lake, after: float = 8 * DAY, **options: Any) -> CleanResult:
    """Cleans as somebody would so many seconds from now."""
    return clean_table(lake.root, "flights", options, now=time.time() + after)


def versions(lake: Lake) -> list[int]:
    return [each["version"] for each in lance.dataset(lake.open().opened.location).versions()]


def on_disk(lake: Lake) -> tuple[int, int]:
    files = [path for path in Path(lake.open().opened.location).rglob("*") if path.is_file()]
    return len(files), sum(path.stat().st_size for path in files)


def bytes_of_lance(lake: Lake) -> int:
    """Without the table's record, which CLEAN writes before it removes anything."""
    files = [path for path in Path(lake.open().opened.location).rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in files if path.parent.name != "_deployer")


def test_old_versions_and_only_their_files_go(lake: Lake) -> None:
    compact_table(lake.root, "flights")
    had, before, size = versions(lake), on_disk(lake), bytes_of_lance(lake)
    done = clean(lake)
    after = on_disk(lake)
    assert done.status == "SUCCEEDED" and versions(lake) == had[-1:]
    assert (done.before.files, done.before.bytes, done.before.versions) == (*before, len(had))
    assert (done.after.files, done.after.bytes, done.after.versions) == (*after, 1)
    assert after[0] < before[0] / 2 and done.removed.bytes == size - bytes_of_lance(lake)
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(100))
    [run] = runs_of(lake.store.table(table_id(lake)), "CLEAN")
    assert run.status == "SUCCEEDED"
    assert run.figures.before["versions"] == len(had) and run.figures.after["versions"] == 1
    again = clean(lake)
    assert again.status == "SKIPPED" and "1 version: none is older than 7 days" in again.why
    assert runs_of(lake.store.table(table_id(lake)), "CLEAN")[0].status == "SKIPPED"


def test_a_dry_run_says_the_bytes_that_would_go_and_changes_nothing(lake: Lake) -> None:
    compact_table(lake.root, "flights")
    before, size = (on_disk(lake), versions(lake)), bytes_of_lance(lake)
    tried = clean(lake, dry_run=True)
    assert (on_disk(lake), versions(lake)) == before and tried.before == tried.after
    done = clean(lake)
    assert (tried.removed.bytes, tried.removed.versions) == (done.removed.bytes, done.removed.versions)
    assert done.removed.bytes == size - bytes_of_lance(lake) > 0
    assert "dry run: would remove" in tried.why and tried.removed.numbers == tuple(before[1][:-1])


@pytest.mark.parametrize(
    ("options", "after", "left"),
    [
        ({}, 0, [1, 2, 3, 4, 5, 6]),
        ({"keep_versions": 4}, 8 * DAY, [3, 4, 5, 6]),
        ({"keep_versions": 6}, 8 * DAY, [1, 2, 3, 4, 5, 6]),
        ({"older_than": "9d"}, 8 * DAY, [1, 2, 3, 4, 5, 6]),
        ({"older_than": "36h"}, 8 * DAY, [6]),
        ({"older_than": "1h", "keep_versions": 2}, DAY, [5, 6]),
    ],
)
def test_age_and_number_both_have_to_be_exceeded(
    lake: Lake, options: dict[str, Any], after: float, left: list[int]
) -> None:
    done = clean(lake, after, **options)
    assert versions(lake) == left and done.removed.versions == 6 - len(left)
    assert lake.open().count() == 100


def test_versions_of_a_folder_that_was_copied_have_the_age_of_their_commits(lake: Lake) -> None:
    """As copying leaves them, their manifests are younger."""
    later = time.time() + 20 * DAY
    for manifest in (Path(lake.open().opened.location) / "_versions").iterdir():
        os.utime(manifest, (later, later))
    assert clean(lake, 6 * DAY).status == "SKIPPED" and versions(lake) == [1, 2, 3, 4, 5, 6]
    clean(lake)
    assert versions(lake) == [6] and lake.open().count() == 100


def test_savepoints_tags_and_branches_keep_their_versions(lake: Lake) -> None:
    dataset = lance.dataset(lake.open().opened.location)
    dataset.tags.create("mine", 2)
    dataset.create_branch("side", 3)
    take_savepoint(lake.store, [table_id(lake)], "now")
    lake.ingest(lake.file(flights(20, 100)))
    clean(lake)
    assert versions(lake) == [2, 3, 6, 7]
    assert lance.dataset(dataset.uri, version=6).count_rows() == 100
    assert dataset.checkout_version(("side", None)).count_rows() == 40


def test_what_a_commit_under_way_was_prepared_on_stays_and_all_since(lake: Lake) -> None:
    lake.store.commit(table_id(lake), [CommitStarted("slow", "ingest", 4)])
    clean(lake, DAY, older_than="1h")
    assert versions(lake) == [4, 5, 6]
    clean(lake)  # given up: nobody commits after the grace
    assert versions(lake) == [6]


def test_what_a_running_run_may_read_stays(lake: Lake) -> None:
    run = queue_run(lake.store, table_id(lake), "COMPACT", cause="test", needs_service=False)
    held = start_run(lake.store, table_id(lake), run.run_id, lease=1000)
    lake.ingest(lake.file(flights(20, 100)))
    lake.ingest(lake.file(flights(20, 120)))
    clean(lake)
    assert versions(lake) == [6, 7, 8]
    held.finish()
    clean(lake)
    assert versions(lake) == [8]


def test_files_of_a_load_under_way_stay_for_the_grace_period_whatever_the_age_of_versions(lake: Lake) -> None:
    file = Path(lake.open().opened.location) / "data" / "left.lance"
    file.write_bytes(b"x" * 50)
    then = time.time() - 2 * DAY
    os.utime(file, (then, then))
    done = clean(lake, 0, older_than="1h")
    assert file.exists() and done.removed.young == 1
    clean(lake, 6 * DAY, older_than="1h")
    assert not file.exists()


@pytest.mark.parametrize("records", [True, False])
def test_who_finds_versions_gone_that_others_recorded_reads_the_state_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, records: bool
) -> None:
    """A reader has an old state, and has just read what the versions since then are of, when they are cleaned away."""
    opened = lake.open().opened
    read, cleaned = metadata_since, list[CleanResult]()
    if records:
        lake.ingest(lake.file(flights(20, 100)), job_id="late")
        compact_table(lake.root, "flights")
    else:  # one that only reads has just read the state: others record what follows while it looks
        lance.write_dataset(flights(20, 100), opened.location, mode="append")

    def then_cleaned(dataset: lance.LanceDataset, version: int) -> dict[int, tuple[CommitMetadata, ...]]:
        found = read(dataset, version)
        if version == opened.state.lance_version and sys._getframe(1).f_code.co_name in ("_roll_forward", "missing_updates"):
            monkeypatch.undo()
            if not records:
                open_to_change(lake.root, "flights")
                compact_table(lake.root, "flights")
            cleaned.append(clean(lake))
        return found

    for reader in (rollforward, unrecorded):
        monkeypatch.setattr(reader, "metadata_since", then_cleaned)
    if records:
        state = current(lake.store, lake.root, opened.entry, opened.state)[1]
    else:
        state = as_recorded(lake.store, lake.root, opened.entry, opened.state).state
    assert [each.status for each in cleaned] == ["SUCCEEDED"]
    newest = lake.store.table(table_id(lake))
    assert state.files.rows == newest.files.rows > opened.state.files.rows
    if records:
        assert state == newest and "late" in state.jobs


def test_options_are_those_of_the_service_unless_given(lake: Lake) -> None:
    create_service(lake.store, table_id(lake), Service("CLEAN", options={"keep_versions": 3}))
    clean_table(lake.root, "flights", now=time.time() + 8 * DAY)
    assert versions(lake) == [4, 5, 6]


def test_bad_input_is_told_and_changes_nothing(lake: Lake) -> None:
    with pytest.raises(NotFound, match="there is no table 'flihgts'"):
        clean_table(lake.root, "flihgts")
    with pytest.raises(InvalidInput, match="`older_than` cannot be `soon`; write a number and d for days"):
        clean_table(lake.root, "flights", {"older_than": "soon"})
    assert versions(lake) == [1, 2, 3, 4, 5, 6] and not runs_of(lake.store.table(table_id(lake)))
