"""Writes the states that a release folds the logs of an archive to, for the upgrade test.

It runs under the release's own code, and prints a state a line: of each log every eighth and the newest.

    git worktree add /tmp/release df93aa6
    tar xzf tests/upgrade/df93aa6.tar.gz -C /tmp/lake
    PYTHONPATH=/tmp/release .venv/bin/python tests/upgrade/write_states.py /tmp/lake/lakes/dev/_state/state.db \\
        > tests/upgrade/states-df93aa6.jsonl

It imports modules by their names in this commit. For a release that has other names, take the script as it was then:
`git show 0fa0aad:tests/upgrade/write_states.py`.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from deployer.state.backends.protocol import Record
from deployer.state.log.entries import from_record
from deployer.state.log.reducer import empty_state, fold

EVERY = 8


def records_of(database: Path) -> dict[str, list[Record]]:
    """What each log of a store in SQLite holds, oldest first."""
    found: dict[str, list[Record]] = {}
    with closing(sqlite3.connect(database)) as connection:
        query = "SELECT log, version, txn_id, body FROM entries ORDER BY log, version"
        for log, version, txn_id, body in connection.execute(query):
            found.setdefault(log, []).append(Record(log, version, txn_id, bytes(body)))
    return found


def states_of(records: Mapping[str, Iterable[Record]]) -> Iterator[dict[str, Any]]:
    """The states of the logs, as JSON, from folding all entries from the first."""
    for log, entries in records.items():
        state, listed = empty_state(log), list(entries)
        for number, record in enumerate(listed, 1):
            state = fold(state, [from_record(record)])
            if number % EVERY == 0 or number == len(listed):
                yield {"log": log, "version": number, "state": as_plain(state)}


def as_plain(value: Any) -> Any:
    """A value of the state's model as JSON, without the project's own codec."""
    if dataclasses.is_dataclass(value):
        return {field.name: as_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: as_plain(item) for key, item in sorted(value.items())}
    if isinstance(value, bytes):
        return value.hex()
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value) if isinstance(value, str) else [as_plain(item) for item in value]


if __name__ == "__main__":
    for each in states_of(records_of(Path(sys.argv[1]))):
        print(json.dumps(each, ensure_ascii=False, separators=(",", ":")))
