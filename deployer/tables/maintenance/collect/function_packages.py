"""Removes packages of functions that no column uses.

A package is below the root of the instance, so all its tables are checked, in their current state and at their
savepoints. A job saves the package before the column names it, and saving it again renews its age, so the grace period
covers this time.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

from deployer.datasets.storage.function_packages import remove_packages, stored_packages
from deployer.specs.types.arrow import stored_schema
from deployer.specs.types.computed import COMPUTED_NOTE
from deployer.state.model.entities import TableState
from deployer.state.store import StateStore


@dataclass(frozen=True, slots=True)
class PackagesReport:
    """The hashes of the removed packages, or of those that a dry run would remove, and their total size in bytes.
    `young` counts the packages that no column names but that are younger than the grace period. `why_not` is the reason
    why no packages were checked."""

    removed: tuple[str, ...] = ()
    bytes: int = 0
    young: int = 0
    why_not: str = ""


def collect_packages(
    store: StateStore, root: str, *, grace: dt.timedelta, dry_run: bool = False, now: float | None = None
) -> PackagesReport:
    """Removes packages that are older than `grace` and that no table of the instance names. `now` is in seconds since
    1970."""
    stored = stored_packages(root)
    if not stored:
        return PackagesReport()
    tables = store.instance().tables
    states, unread = store.each_table(tables)
    if unread:
        names = ", ".join(sorted(tables[each].full_name for each in unread))
        return PackagesReport(why_not=f"the log of {names} cannot be read")
    writing = sorted(tables[key].full_name for key, state in states.items() if _writes_columns(state))
    if writing:
        return PackagesReport(why_not=f"columns of {', '.join(writing)} are being written")
    used = {name for key, state in states.items() for name in _functions(store, key, state)}
    before = (time.time() if now is None else now) - grace.total_seconds()
    unused = {name: each for name, each in stored.items() if name not in used}
    gone = {name: each for name, each in unused.items() if each.changed < before}
    if not dry_run:
        remove_packages(root, gone)
    size = sum(each.bytes for each in gone.values())
    return PackagesReport(tuple(sorted(gone)), size, len(unused) - len(gone))


def _writes_columns(state: TableState) -> bool:
    """Returns whether a run is open that may call a function that its column named when the run began."""
    return any(run.is_open and run.target for run in state.runs.values())


def _functions(store: StateStore, table_id: str, state: TableState) -> Iterator[str]:
    """Yields the packages that the columns name, now and at the savepoints."""
    yield from _named(state.schema, table_id)
    for version in {each.state_version for each in state.savepoints.values()}:
        yield from _named(store.table(table_id, version).schema, table_id)


def _named(schema: bytes, table_id: str) -> Iterator[str]:
    if not schema:
        return
    for field in stored_schema(schema, table_id):
        try:
            note = json.loads((field.metadata or {}).get(COMPUTED_NOTE, b"{}"))
        except ValueError:  # not written by deployer
            continue
        if isinstance(note, dict) and isinstance(function := note.get("function"), str):
            yield function
