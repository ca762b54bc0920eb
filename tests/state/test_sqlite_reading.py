"""A state store's file is read beside processes that keep the locks of its log's index."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

#: Locks the marks of readers, as a process does that is stopped in the recovery of the log.
#: https://sqlite.org/walformat.html#wal_locks
HOLDER = """
import fcntl, sys
index = open(sys.argv[1], "r+b")
fcntl.lockf(index, fcntl.LOCK_EX, 5, 123)
print("locked", flush=True)
sys.stdin.read()
"""
READER = """
import sys
from pathlib import Path
from deployer.state.backends.sqlite.reading import SqliteReading
print(SqliteReading(Path(sys.argv[1])).rows("SELECT a FROM t"))
"""


@pytest.mark.slow  # SQLite tries for ten seconds
def test_a_file_whose_index_is_locked_is_read_from_a_copy(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE t (a)")
        writer.execute("INSERT INTO t VALUES (1)")
        command = [sys.executable, "-c", HOLDER, f"{file}-shm"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None and holder.stdout.readline() == b"locked\n"
            read = subprocess.run([sys.executable, "-c", READER, str(file)], capture_output=True, text=True)
            holder.communicate()
    assert (read.stdout, read.stderr) == ("[(1,)]\n", "")
