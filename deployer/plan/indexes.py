"""The difference between two tables' indexes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from deployer.plan.changes import ColumnChange, CreateIndex, DropIndex, IndexChange, RebuildIndex, RenameColumn
from deployer.specs.model import IndexSpec


def dropped_indexes(address: str, live: Iterable[IndexSpec], desired: Iterable[IndexSpec]) -> Iterator[DropIndex]:
    """Indexes that nothing declares any more; they go before columns do."""
    wanted = {index.name for index in desired}
    yield from (DropIndex(address, index) for index in live if index.name not in wanted)


def built_indexes(
    address: str, live: Iterable[IndexSpec], desired: Iterable[IndexSpec], columns: Sequence[ColumnChange] = ()
) -> Iterator[CreateIndex | RebuildIndex]:
    """Indexes to create or to build anew, after `columns` changed; an index follows its column's new name."""
    existing: Mapping[str, IndexSpec] = {index.name: _renamed(index, columns) for index in live}
    for index in desired:
        before = existing.get(index.name)
        if before is None:
            yield CreateIndex(address, index)
        elif before != index:
            yield RebuildIndex(address, before, index)


def index_changes(address: str, live: Sequence[IndexSpec], desired: Sequence[IndexSpec]) -> tuple[IndexChange, ...]:
    """All changes of indexes where columns stay as they are."""
    return (*dropped_indexes(address, live, desired), *built_indexes(address, live, desired))


def _renamed(index: IndexSpec, changes: Sequence[ColumnChange]) -> IndexSpec:
    return replace(index, columns=tuple(_path_after(column, changes) for column in index.columns))


def _path_after(column: str, changes: Sequence[ColumnChange]) -> str:
    path = column.split(".")
    for change in changes:
        if isinstance(change, RenameColumn) and tuple(path[: len(change.column)]) == change.column:
            path[len(change.column) - 1] = change.after
    return ".".join(path)
