"""A log of SQLite whose index does not fit it, as damage or a copy leaves them: it is read without the index."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from deployer.errors import DeployerError
from deployer.state import open_reader
from deployer.state.backends.sqlite.reading import SqliteReading

from .samples import TABLE, added, creation, store_at


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The log of a copy that was made while a writer had the store open: the index is there, and nobody's."""
    with closing(store_at(tmp_path / "lake")) as store:
        store.commit(TABLE, [creation()])
        store.commit(TABLE, [added(1)])
        shutil.copytree(tmp_path / "lake", tmp_path / "copy")
    log = tmp_path / "copy" / "_state" / "state.db-wal"
    assert log.stat().st_size > 0 and log.with_name("state.db-shm").exists()
    return log


@pytest.fixture
def by_the_index(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that are tried with the index. Each fails, as SQLite does once it has tried for ten seconds."""
    tried: list[str] = []

    def shared(self: SqliteReading, statement: str, parameters: object) -> None:
        tried.append(statement)
        failure = sqlite3.OperationalError("locking protocol")
        failure.sqlite_errorcode = sqlite3.SQLITE_PROTOCOL
        raise failure

    monkeypatch.setattr(SqliteReading, "_shared", shared)
    return tried


def files_in(log: Path) -> int:
    with closing(open_reader(log.parents[1])) as reader:
        return reader.table(TABLE).files.count


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: random.Random(1).randbytes(len(whole)),  # noqa: S311 (the same damage each time)
        lambda whole: whole[:10],
        lambda whole: whole[:16] + b"other salt" + whole[26:],
    ],
    ids=["overwritten", "cut", "salt"],
)
def test_the_index_of_a_damaged_log_is_not_tried(
    copied: Path, by_the_index: list[str], damage: Callable[[bytes], bytes]
) -> None:
    copied.write_bytes(damage(copied.read_bytes()))
    with suppress(DeployerError):  # what was in the log alone is gone
        files_in(copied)
    assert not by_the_index


def test_an_index_that_does_not_fit_is_tried_once(copied: Path, by_the_index: list[str]) -> None:
    found = [files_in(copied) for _ in range(2)]
    assert found == [1, 1] and len(by_the_index) == 1
