"""Two versions of a table side by side: columns, rows, files, and the commits between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deployer.datasets.dataset import open_dataset
from deployer.datasets.errors import lance_errors
from deployer.errors import InvalidInput
from deployer.specs.types.arrow import column_of
from deployer.specs.types.types import format_type
from deployer.specs.types.view import HIDDEN
from deployer.tables.inspect.versions import TableVersion, dataset_at
from deployer.tables.open_table import ReadTable


@dataclass(frozen=True, slots=True)
class VersionContent:
    """The content of one version of a table: its rows, its fragments, and the type of each column by its name."""

    label: str
    rows: int
    fragments: int
    columns: dict[str, str]


@dataclass(frozen=True, slots=True)
class ColumnDifference:
    """A column that differs: its type before and after, empty where the version does not have it."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The older version, the newer one, the columns that differ, and the commits after the older one, newest first."""

    before: VersionContent
    after: VersionContent
    columns: tuple[ColumnDifference, ...]
    commits: tuple[TableVersion, ...]


def compare(
    table: ReadTable, versions: Sequence[TableVersion], labels: Sequence[str], one: str, two: str
) -> Comparison:
    """Compares two versions, in any order, by their labels: `labels` are those of `versions`, the newest first.

    Raises InvalidInput for a label that is not among them, NotFound for a version that was removed meanwhile.
    """
    places = []
    for label in (one, two):
        if label not in labels:
            raise InvalidInput(
                f"the table has no version {label!r}", where=table.address, remedy="choose one of its history"
            )
        places.append(labels.index(label))
    newer, older = min(places), max(places)
    before, after = _content(table, labels[older]), _content(table, labels[newer])
    names = dict.fromkeys((*before.columns, *after.columns))
    differing = tuple(
        ColumnDifference(name, before.columns.get(name, ""), after.columns.get(name, ""))
        for name in names
        if before.columns.get(name) != after.columns.get(name)
    )
    return Comparison(before, after, differing, tuple(versions[newer:older]))


def _content(table: ReadTable, label: str) -> VersionContent:
    with lance_errors(table.location):
        _, dataset, version = dataset_at(table, label)
        opened = open_dataset(dataset.uri, version)
        fields = (field for field in opened.schema if not field.name.startswith(HIDDEN))
        columns = {field.name: _type_of(field) for field in fields}
        return VersionContent(label, opened.count_rows(), len(opened.get_fragments()), columns)


def _type_of(field: Any) -> str:
    try:
        text = format_type(column_of(field).type)
    except InvalidInput:  # plain Lance can make types that specs cannot have
        text = str(field.type)
    return text if field.nullable else f"{text} not null"
