"""The age of a table's columns, as far back as its state log reaches."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from deployer.specs.types.arrow import columns_of, stored_schema
from deployer.specs.types.types import Column, children
from deployer.state.log.updates import CreateTable, SetSchema, TableRebuilt, TableRestored, TableRewritten

if TYPE_CHECKING:
    from deployer.state.reader import StateReader


@dataclass(frozen=True, slots=True)
class Since:
    """The moment (UTC) since which the column exists; `at_least`: the column is older, and its exact age is not
    kept."""

    at: dt.datetime
    at_least: bool = False


def column_since(store: StateReader, table_id: str, path: Sequence[str]) -> Since | None:
    """Returns the moment since which the table has the column at `path`, including its former names; None when the
    column does not exist.

    Columns of an imported table count from the import.
    """
    schemas = list(_schemas(store, table_id))
    if not schemas or not _has(schemas[-1][1], path):
        return None
    known = tuple(path)
    for (_, before), (at, after) in reversed(list(pairwise(schemas))):
        former = _path_before(before, after, known)
        if former is None:
            return Since(at)
        known = former
    first = store.log(table_id, limit=1)[0]
    return Since(schemas[0][0], at_least=first.version > 1)


def _schemas(store: StateReader, table_id: str) -> Iterator[tuple[dt.datetime, Sequence[Column]]]:
    """Yields every schema that the log still has, the oldest first, with the time of its commit."""
    entries = store.log(table_id)
    if entries and entries[0].version > 1:  # only the outcome of earlier changes is known
        first = entries[0]
        yield _time(first.at), _columns(store.table(table_id, at=first.version).schema)
        entries = entries[1:]
    for entry in entries:
        for update in entry.updates:
            if isinstance(update, CreateTable | SetSchema | TableRewritten | TableRestored | TableRebuilt):
                yield _time(entry.at), _columns(update.schema)


def _path_before(before: Sequence[Column], after: Sequence[Column], path: tuple[str, ...]) -> tuple[str, ...] | None:
    """Returns the path that the column had before a commit; None when that commit added it.

    Each change of columns is a separate commit, so a new name in the place of another one is the same column, renamed.
    """
    former: tuple[str, ...] = ()
    for depth, name in enumerate(path):
        old, new = _names(before, former), _names(after, path[:depth])
        if name in old:
            former = (*former, name)
            continue
        gone = [each for each in old if each not in new]
        came = [each for each in new if each not in old]
        if came != [name] or len(gone) != 1 or len(old) != len(new) or old.index(gone[0]) != new.index(name):
            return None
        former = (*former, gone[0])
    return former


def _has(columns: Sequence[Column], path: Sequence[str]) -> bool:
    return path[-1] in _names(columns, path[:-1])


def _names(columns: Sequence[Column], parent: Sequence[str]) -> list[str]:
    """Returns the names directly under `parent`; none when it does not exist."""
    for name in parent:
        found = next((column for column in columns if column.name == name), None)
        columns = children(found.type) if found else ()
    return [column.name for column in columns]


def _columns(schema: bytes) -> Sequence[Column]:
    return columns_of(stored_schema(schema, "an entry of the table's log"))


def _time(milliseconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC)
