"""One job adds its rows once: whatever dies in between, and whoever else commits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.datasets.commit_metadata import ALSO, CommitMetadata, commit_metadata_of, properties_of
from deployer.datasets.files.writer import write_sorted
from deployer.errors import Conflict
from deployer.state.log.updates import SetSchema
from deployer.tables.ingest.commit import lance_append
from deployer.tables.ingest.commit.append import commit_append
from tests import forks
from tests.tables.lakes import FLIGHTS, SPLITS, Lake, flights, sorted_rows


def start(lake: Lake, path: Path, job_id: str, failpoint: str = "") -> subprocess.Popen[str]:
    arguments = ["--root", lake.root, "--table", "air.flights", "--engine", "driver", "--job-id", job_id, str(path)]
    environment = os.environ | ({"DEPLOYER_FAILPOINT": failpoint} if failpoint else {})
    return forks.Popen(
        [sys.executable, "-m", "spark_jobs.ingest", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> int:
    _, said = process.communicate(timeout=300)
    assert process.returncode in (0, -signal.SIGKILL), said
    return process.returncode


@pytest.mark.parametrize(
    ("point", "rows_after_kill"),
    [
        ("tables.commit.before-lance", 0),
        ("tables.commit.after-lance", 50),
        ("tables.commit.after-state", 50),
    ],
)
def test_a_killed_job_can_be_run_again(point: str, rows_after_kill: int, lake: Lake) -> None:
    lake.table()
    path = lake.file(flights(50))
    assert ended(start(lake, path, "job-1", point)) == -signal.SIGKILL
    assert lake.open().count() == rows_after_kill
    assert ended(start(lake, path, "job-1")) == 0
    table = lake.open()
    assert sorted_rows(table.scan().to_table()) == sorted_rows(flights(50))
    state = table.opened.state
    assert table.count() == 50 and set(state.jobs) == {"job-1"} and not state.intents
    assert all(file.partition and file.min_key and file.sorted for file in state.files)


def test_a_lost_record_is_made_again_as_the_job_would_have(lake: Lake) -> None:
    lake.table()
    other = Lake(lake.folder / "other")
    other.table()
    path = lake.file(flights(50))
    ended(start(lake, path, "job-1", "tables.commit.after-lance"))
    ended(start(other, path, "job-1"))

    def told(each: Lake) -> list[Any]:
        state = each.open().opened.state
        names = {leaf.partition_id: i for i, leaf in enumerate(state.leaves())}
        return [(names[f.partition or ""], f.rows, f.min_key, f.max_key, f.column_min, f.sorted) for f in state.files]

    assert told(lake) == told(other)


def test_processes_loading_at_once_lose_nothing(lake: Lake) -> None:
    lake.table()
    paths = [lake.file(flights(40, 40 * i)) for i in range(3)]
    running = [start(lake, path, f"job-{i}") for i, path in enumerate(paths)]
    assert [ended(process) for process in running] == [0, 0, 0]
    table = lake.open()
    assert sorted_rows(table.scan().to_table()) == sorted_rows(flights(120))
    assert table.opened.state.files.rows == 120 and len(table.opened.state.jobs) == 3


def test_the_same_job_at_once_adds_its_rows_once(lake: Lake) -> None:
    """One process stands still between its intent and its commit while another does the job; then it goes on."""
    lake.table()
    path = lake.file(flights(40))
    slow = start(lake, path, "job-1", "tables.commit.before-lance=stop")
    os.waitpid(slow.pid, os.WUNTRACED)
    assert ended(start(lake, path, "job-1")) == 0
    os.kill(slow.pid, signal.SIGCONT)
    slow.communicate(timeout=300)
    table = lake.open()
    assert table.count() == 40
    assert sorted_rows(table.scan().to_table()) == sorted_rows(flights(40))


def test_a_schema_changed_meanwhile_refuses_the_commit(lake: Lake) -> None:
    opened = lake.table().opened
    written = write_sorted(opened.layout(), flights(5), opened.state.leaves()[0].partition_id)
    wider = FLIGHTS.append(pa.field("more", pa.int8()))
    lake.store.commit(opened.entry.table_id, [SetSchema(wider.serialize().to_pybytes(), 1)])
    with pytest.raises(Conflict, match="changed while rows were being written"):
        commit_append(lake.store, lake.root, opened.entry, "job-1", "ingest", written, opened.state.schema)
    assert lance.dataset(opened.location).version == 1


def test_a_column_replaced_meanwhile_by_one_of_the_same_name_refuses_the_commit(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(5, 5)))  # Lance gives the number of a column that no file has to the next one
    opened = lake.open().opened
    written = write_sorted(opened.layout(), flights(5), opened.state.leaves()[0].partition_id)
    dataset = lance.dataset(opened.location)
    dataset.drop_columns(["price"])
    dataset.add_columns({"price": "cast(NULL as decimal(8, 2))"})
    with pytest.raises(Conflict, match="columns were replaced"):
        commit_append(lake.store, lake.root, opened.entry, "job-1", "ingest", written, opened.state.schema)
    state = lake.open().opened.state
    assert not state.intents and lake.open().count() == 5


def test_refused_loads_leave_no_files(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(5)))
    before = lake.data_files()
    path = lake.text("bad.csv", "carrier,flight\nAA,1\nAA,x\n")
    with pytest.raises(Exception, match="1 row cannot be loaded"):
        lake.ingest(path, missing_as_null=True)
    assert lake.data_files() == before


def losing(times: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lance loses so many races as it does to others that are always first; gives what it was asked to commit."""
    commit, sent = lance.LanceDataset.commit, list[str]()

    def lost(dataset: Any, transaction: Any, **named: Any) -> lance.LanceDataset:
        sent.append(transaction.uuid)
        if len(sent) <= times:
            raise OSError(
                "Too many concurrent writers. Attempted 8 times, but failed on retry_timeout of 30.000 seconds."
            )
        return commit(dataset, transaction, **named)

    monkeypatch.setattr(lance.LanceDataset, "commit", lost)
    return sent


def test_a_commit_that_lost_all_races_is_sent_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = lake.table().opened
    written = write_sorted(opened.layout(), flights(5), opened.state.leaves()[0].partition_id)
    sent = losing(lance_append.ATTEMPTS - 1, monkeypatch)
    done = commit_append(lake.store, lake.root, opened.entry, "job-1", "ingest", written, opened.state.schema)
    assert done.job.rows == 5 and not done.already_done
    assert len(sent) == lance_append.ATTEMPTS and len(set(sent)) == 1
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(5))


def test_one_that_always_loses_is_refused_and_can_be_run_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.table()
    with monkeypatch.context() as patched:
        losing(sys.maxsize, patched)
        with pytest.raises(Conflict, match="faster than rows can be added"):
            lake.ingest(lake.file(flights(5)), job_id="job-1")
    assert lake.open().count() == 0 and not lake.open().opened.state.intents and not lake.data_files()
    lake.ingest(lake.file(flights(5)), job_id="job-1")
    assert lake.open().count() == 5


def test_marks_round_trip(lake: Lake) -> None:
    opened = lake.table().opened
    written = write_sorted(opened.layout(), flights(5), opened.state.leaves()[0].partition_id)
    mark = CommitMetadata("job", "ingest", 5, tuple(each.marked for each in written))
    assert CommitMetadata.of(mark.to_properties()) == mark
    other, third = replace(mark, job_id="other"), CommitMetadata('"[', "append", 0)
    assert commit_metadata_of(properties_of([mark, other, third])) == (mark, other, third)
    assert properties_of([mark]) == mark.to_properties() and commit_metadata_of(mark.to_properties()) == (mark,)
    for also in ("[", "1", "[1]", '[{"deployer.job": "x", "deployer.files": "["}]'):  # then it is nobody's
        assert commit_metadata_of({**mark.to_properties(), ALSO: also}) == ()
    assert (
        CommitMetadata.of({}) is None
        and CommitMetadata.of(None) is None
        and CommitMetadata.of({"deployer.job": "x", "deployer.files": "["}) is None
    )


def test_the_helpers_have_rows_in_every_leaf() -> None:
    assert len(SPLITS) == 3 and set(flights(10)["carrier"].to_pylist()) == {"UA", "AA", "DL", "B6", "9E"}
