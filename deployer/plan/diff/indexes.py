"""The difference between two tables' indexes. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from deployer.plan.changes import (
    ColumnChange,
    CreateIndex,
    DropIndex,
    IndexChange,
    RebuildIndex,
    RenameColumn,
    RenameIndex,
)
from deployer.specs.model import IndexSpec


def diff_indexes(
    address: str, live: Iterable[IndexSpec], desired: Sequence[IndexSpec], columns: Sequence[ColumnChange] = ()
) -> tuple[IndexChange, ...]:
    """Returns the differences between two tables' indexes, whose columns change by `columns`; drops come first.

    An index follows its column's new name. If an index then differs from a declared one only in its name, it is
    renamed. This is the case for indexes that are named after their column.
    """
    before = {index.name: index for index in live}
    existing = {name: _renamed(index, columns) for name, index in before.items()}
    renames = tuple(_renames(address, existing, desired))
    for change in renames:
        del before[change.before.name], existing[change.before.name]
    existing |= {change.after.name: change.after for change in renames}
    wanted = {index.name for index in desired}
    dropped = tuple(DropIndex(address, index) for name, index in before.items() if name not in wanted)
    return (*dropped, *renames, *_built(address, existing, desired))


def _renames(address: str, existing: Mapping[str, IndexSpec], desired: Sequence[IndexSpec]) -> Iterator[RenameIndex]:
    """Returns the indexes that only need another name, in an order in which each new name is free. Indexes that
    exchange names in a circle are left out."""
    now = dict(existing)
    waiting = [index for index in desired if index != now.get(index.name)]
    settled = {index.name for index in desired} - {index.name for index in waiting}
    while found := next(_renamable(now, waiting, settled), None):
        yield RenameIndex(address, *found)
        before, after = found
        del now[before.name]
        now[after.name] = after
        waiting.remove(after)
        settled.add(after.name)


def _renamable(
    now: Mapping[str, IndexSpec], waiting: Sequence[IndexSpec], settled: Container[str]
) -> Iterator[tuple[IndexSpec, IndexSpec]]:
    for index in waiting:
        if index.name not in now:
            same = (each for each in now.values() if replace(each, name=index.name) == index)
            yield from ((each, index) for each in same if each.name not in settled)


def _built(
    address: str, existing: Mapping[str, IndexSpec], desired: Sequence[IndexSpec]
) -> Iterator[CreateIndex | RebuildIndex]:
    for index in desired:
        before = existing.get(index.name)
        if before is None:
            yield CreateIndex(address, index)
        elif before != index:
            yield RebuildIndex(address, before, index)


def _renamed(index: IndexSpec, changes: Sequence[ColumnChange]) -> IndexSpec:
    return replace(index, columns=tuple(_path_after(column, changes) for column in index.columns))


def _path_after(column: str, changes: Sequence[ColumnChange]) -> str:
    path = column.split(".")
    for change in changes:
        if isinstance(change, RenameColumn) and tuple(path[: len(change.column)]) == change.column:
            path[len(change.column) - 1] = change.after
    return ".".join(path)
