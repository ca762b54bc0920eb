"""Checkpoints: what a run that failed leaves, what the next one uses, and what `table gc` and CLEAN remove."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from deployer.columns.fill import run as fill_run
from deployer.columns.fill.run import FillRun, FillStats
from deployer.errors import InvalidInput
from deployer.platform.storage.envelope import seal, unseal
from deployer.services.kinds.clean import clean_table
from deployer.table import Table
from deployer.tables.admin.deletion import delete_table
from deployer.tables.maintenance.collect.garbage import GRACE, collect_garbage
from tests.columns.rows import source, values
from tests.tables.lakes import Lake


class Stopped(Exception):
    """A failure between the values and the commit."""


@pytest.fixture
def left(table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> str:
    """A load whose run failed when all values were written; the path of its source."""

    def fail(*_: Any) -> None:
        raise Stopped

    path = str(lake.file(source(range(30))))
    with monkeypatch.context() as patch:
        patch.setattr(fill_run, "commit_columns", fail)
        with pytest.raises(Stopped):
            table.load_columns(path, "id", ["label"], job_id="monday")
    return path


def checkpoints(lake: Lake) -> list[Path]:
    return sorted(path for path in (Path(lake.root) / "_work").rglob("*") if path.is_file())


def test_the_next_run_uses_them(left: str, table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [path.name for path in checkpoints(lake)] == ["fragment-0", "fragment-1", "fragment-2", "job"]
    (checkpoints(lake)[1]).write_bytes(b"cut off")
    stats, fill = list[FillStats](), FillRun.fill

    def noting(run: FillRun) -> FillStats:
        stats.append(fill(run))
        return stats[-1]

    monkeypatch.setattr(FillRun, "fill", noting)
    files = lake.data_files()
    table.load_columns(left, "id", ["label"], job_id="monday")
    assert stats[0].reused == 2 and len(lake.data_files() - files) == 1
    assert values(table, "label") == {i: f"label {i}" for i in range(30)}
    assert checkpoints(lake) == []


FORGED: dict[str, dict[str, Any]] = {
    "nothing": {},
    "texts for numbers": {"rows": "10", "dataset": "1"},
    "a number for the files": {"files": 5},
    "a file elsewhere": {"files": [{"path": "../../../other.lance", "file_size_bytes": 9}]},
    "a file without a path": {"files": [{"file_size_bytes": 9}]},
    "a text for a file": {"files": ["x"]},
    "no inputs": {"inputs": None},
}


@pytest.mark.parametrize("case", FORGED)
def test_one_that_no_job_saved_counts_as_missing(case: str, left: str, table: Table, lake: Lake) -> None:
    """Anyone who can write below the root can store one with a checksum that fits."""
    path = checkpoints(lake)[1]
    known = json.loads(unseal(path.read_bytes(), ""))
    path.write_bytes(seal(json.dumps({**known, **FORGED[case]} if FORGED[case] else {}).encode()))
    table.load_columns(left, "id", ["label"], job_id="monday")
    assert values(table, "label") == {i: f"label {i}" for i in range(30)}


def test_the_job_cannot_become_another(left: str, table: Table, lake: Lake) -> None:
    other = str(lake.file(source(range(30), 2)))
    for arguments, words in (
        ({"source": other, "columns": ["label"]}, "another source"),
        ({"source": left, "columns": ["embedding"]}, "another columns"),
        ({"source": left, "columns": ["label"], "on_missing": "null"}, "another on_missing"),
    ):
        with pytest.raises(InvalidInput, match=f"job monday was started with {words}"):
            table.load_columns(pk="id", job_id="monday", **arguments)  # type: ignore[arg-type]
    assert len(checkpoints(lake)) == 4


@pytest.mark.usefixtures("left")
def test_gc_and_clean_remove_those_of_dead_jobs(table: Table, lake: Lake) -> None:
    table_id = lake.open().opened.entry.table_id
    collect_garbage(lake.store, lake.root, table_id)
    assert len(checkpoints(lake)) == 4
    later = time.time() + GRACE.total_seconds() + 60
    assert collect_garbage(lake.store, lake.root, table_id, dry_run=True, now=later).files == 7  # and data files
    assert len(checkpoints(lake)) == 4
    clean_table(lake.root, "flights", {}, now=later)
    assert checkpoints(lake) == []
    assert table.count_rows() == 30


@pytest.mark.usefixtures("left")
def test_they_go_with_their_table(lake: Lake) -> None:
    delete_table(lake.store, lake.root, lake.open().opened.entry.table_id, allow_destroy=True)
    assert checkpoints(lake) == []
