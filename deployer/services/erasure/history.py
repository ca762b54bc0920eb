"""Removes past states of a table from its log if the bounds of their files have keys of erased rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from deployer.errors import DeployerError
from deployer.state.model.entities import File
from deployer.tables.open_table import OpenTable


def forget_keys(table: OpenTable, keys: frozenset[bytes]) -> bool:
    """Removes past states of the table that no savepoint needs, if one of them has one of the encoded row keys.

    Bounds of former row keys, and of columns that CLUSTER used, cannot be distinguished from those of other rows, so
    past states of such tables are removed in any case. Returns whether it removed states.
    """
    others = len(table.state.datasets) > 1 or bool(table.state.files.clusterings())
    if not others and not has_keys(table, keys):
        return False
    table.store.forget_history(table.entry.table_id)
    return True


def has_keys(table: OpenTable, keys: frozenset[bytes]) -> bool:
    """Returns whether the log of the table, or a state that a savepoint keeps, has one of the encoded row keys."""
    table_id = table.entry.table_id
    if not keys:
        return False
    if any(_bounds(entry.updates) & keys for entry in table.store.log(table_id)):
        return True
    for each in table.state.savepoints.values():
        try:
            then = table.store.table(table_id, at=each.state_version)
        except DeployerError:  # its state was removed, and so were its bounds
            continue
        if any({file.min_key, file.max_key} & keys for file in then.files):
            return True
    return False


def _bounds(value: Any) -> set[bytes]:
    return {bound for file in _files(value) for bound in (file.min_key, file.max_key) if bound is not None}


def _files(value: Any) -> Iterator[File]:
    """Yields the files in updates, however deep."""
    if isinstance(value, File):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _files(each)
    elif is_dataclass(value):
        for each in fields(value):
            yield from _files(getattr(value, each.name))
