"""Ways in which one table of a lake becomes unreadable, and commits of others to it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from deployer.platform.storage.envelope import seal, unseal
from deployer.state import open_reader


def location_of(root: Path, name: str) -> Path:
    """The table's dataset."""
    with closing(open_reader(root)) as store:
        return root / next(each.location for each in store.instance().tables.values() if each.name == name)


def table_id(root: Path, name: str) -> str:
    with closing(open_reader(root)) as store:
        return next(each.table_id for each in store.instance().tables.values() if each.name == name)


def rows_recorded(root: Path, name: str) -> int:
    """How many rows the table has as its log says, whatever is in Lance."""
    with closing(open_reader(root)) as store:
        return store.table(table_id(root, name)).files.rows


def add_rows(root: Path, name: str, rows: Mapping[str, list[Any]]) -> None:
    """A commit by plain Lance, which the log does not have."""
    dataset = lance.dataset(location_of(root, name))
    lance.write_dataset(pa.table(dict(rows), dataset.schema), dataset, mode="append")


def names_missing_files(root: Path, name: str) -> None:
    """The newest version of Lance names a file that is not there."""
    location = location_of(root, name)
    dataset = lance.dataset(location)
    fragment = dataset.get_fragments()[0].metadata
    there = fragment.files[0].path
    form = json.dumps(fragment.to_json()).replace(there, "nowhere.lance")
    lost = lance.fragment.FragmentMetadata.from_json(form)
    lance.LanceDataset.commit(location, lance.LanceOperation.Overwrite(dataset.schema, [lost]))


def folder_is_gone(root: Path, name: str) -> None:
    shutil.rmtree(location_of(root, name))


def folder_is_a_file(root: Path, name: str) -> None:
    location = location_of(root, name)
    shutil.rmtree(location)
    location.write_text("not a folder")


def manifest_is_rubbish(root: Path, name: str) -> None:
    for manifest in (location_of(root, name) / "_versions").iterdir():
        manifest.write_bytes(b"rubbish" * 10)


def manifest_is_cut_short(root: Path, name: str) -> None:
    newest = min((location_of(root, name) / "_versions").glob("*.manifest"))
    newest.write_bytes(newest.read_bytes()[:-1])


def data_file_is_gone(root: Path, name: str) -> None:
    for file in (location_of(root, name) / "data").iterdir():
        file.unlink()


def data_file_is_cut_short(root: Path, name: str) -> None:
    for file in (location_of(root, name) / "data").iterdir():
        file.write_bytes(file.read_bytes()[:-1])


def older_copy(root: Path, name: str) -> None:
    """The newest version's manifest is taken away."""
    versions = location_of(root, name) / "_versions"
    min(versions.iterdir()).unlink()  # they are named by the distance from the largest number


def another_dataset(root: Path, name: str) -> None:
    """A dataset of other columns lies in its place, with more versions."""
    location = location_of(root, name)
    shutil.rmtree(location)
    for _ in range(9):
        lance.write_dataset(pa.table({"x": [1]}), location, mode="append")
    shutil.rmtree(location / "data")


def rewrite_entry(root: Path, name: str, change: Callable[[dict[str, Any]], object]) -> None:
    """The newest entry of the table's log with a change, sealed as the state store seals."""
    log = table_id(root, name)
    with closing(sqlite3.connect(root / "_state" / "state.db", isolation_level=None)) as file:
        version, body = file.execute(
            "SELECT version, body FROM entries WHERE log = ? ORDER BY version DESC LIMIT 1", (log,)
        ).fetchone()
        document = json.loads(unseal(body, "entry"))
        change(document)
        sealed = seal(json.dumps(document).encode())
        file.execute("UPDATE entries SET body = ? WHERE log = ? AND version = ?", (sealed, log, version))


def entry_is_rubbish(root: Path, name: str) -> None:
    log = table_id(root, name)
    with closing(sqlite3.connect(root / "_state" / "state.db", isolation_level=None)) as file:
        file.execute("UPDATE entries SET body = ? WHERE log = ?", (b"rubbish", log))


def entry_is_of_a_newer_format(root: Path, name: str) -> None:
    log = table_id(root, name)
    with closing(sqlite3.connect(root / "_state" / "state.db", isolation_level=None)) as file:
        body = bytearray(file.execute("SELECT body FROM entries WHERE log = ?", (log,)).fetchone()[0])
        body[3] = 9
        file.execute("UPDATE entries SET body = ? WHERE log = ?", (bytes(body), log))


def entry_of_an_unknown_kind(root: Path, name: str) -> None:
    rewrite_entry(root, name, lambda entry: entry["updates"].append({"type": "levitate"}))


def log_is_gone(root: Path, name: str) -> None:
    log = table_id(root, name)
    with closing(sqlite3.connect(root / "_state" / "state.db", isolation_level=None)) as file:
        file.execute("DELETE FROM entries WHERE log = ?", (log,))


def _append(root: Path, name: str, *updates: dict[str, Any]) -> None:
    """One more entry of the log, as somebody who can write the state would forge it."""
    log = table_id(root, name)
    with closing(sqlite3.connect(root / "_state" / "state.db", isolation_level=None)) as file:
        version, body = file.execute(
            "SELECT version, body FROM entries WHERE log = ? ORDER BY version DESC LIMIT 1", (log,)
        ).fetchone()
        entry = {**json.loads(unseal(body, "entry")), "version": version + 1, "txn_id": "cd" * 16, "requirements": []}
        sealed = seal(json.dumps({**entry, "updates": list(updates)}).encode())
        file.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", (log, version + 1, "cd" * 16, sealed))


def schema_is_none(root: Path, name: str) -> None:
    _append(root, name, {"type": "set-schema", "schema": "cnViYmlzaA==", "lance_version": 2})


def storage_is_odd(root: Path, name: str) -> None:
    _append(root, name, {"type": "set-table-properties", "changes": {"storage": {"max_rows_per_file": "many"}}})


def index_is_odd(root: Path, name: str) -> None:
    _append(root, name, {"type": "set-table-properties", "changes": {"declared": {"indexes": {"i": [1]}}}})


def split_points_are_odd(root: Path, name: str) -> None:
    declared = {"owner": "lakes/dev", "split_points": [[{"base64": "x"}]]}
    _append(root, name, {"type": "set-table-properties", "changes": {"declared": declared}})


#: What makes a table unreadable, by name.
DAMAGE: Mapping[str, Callable[[Path, str], None]] = {
    each.__name__: each
    for each in (
        names_missing_files,
        folder_is_gone,
        folder_is_a_file,
        manifest_is_rubbish,
        manifest_is_cut_short,
        data_file_is_gone,
        data_file_is_cut_short,
        older_copy,
        another_dataset,
        entry_is_rubbish,
        entry_is_of_a_newer_format,
        entry_of_an_unknown_kind,
        log_is_gone,
        schema_is_none,
        storage_is_odd,
        index_is_odd,
        split_points_are_odd,
    )
}
