"""Counts the rows of a condition in data files, including deleted ones, and collects their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from deployer.datasets.errors import is_of_lance
from deployer.datasets.files.writer import WrittenFragment
from deployer.datasets.ordering.key_ranges import comparable, key_value
from deployer.errors import DeployerError
from deployer.state.model.keys import encode_key
from deployer.tables.read.typed_texts import with_typed_texts
from deployer.tables.read.zoned_literals import with_instants

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

SHORTEST = 6  #: least bytes of a value to search for; shorter values are found by chance
MOST_VALUES = 10_000  #: at most this many distinct values, and row keys, are kept

#: Rows of the condition in fragments that were read, by the dataset and the data files of each, which never change.
Counts = dict[tuple[str, tuple[str, ...]], int | None]


@dataclass(slots=True)
class Values:
    """The values to search for, of rows of the condition: values of text and binary `columns`, and encoded row keys.

    At most MOST_VALUES of each are kept.
    """

    columns: frozenset[str]
    row_keys: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()  #: of the row keys
    found: dict[str, set[bytes]] = field(default_factory=dict)
    keys: set[bytes] = field(default_factory=set)
    counts: Counts = field(default_factory=dict)

    @property
    def read(self) -> frozenset[str]:
        """The columns that are read."""
        return self.columns | {*self.row_keys}

    def empty(self) -> Values:
        """Returns a collection of the same kind, without values."""
        return Values(self.columns, self.row_keys, self.kinds)

    def join(self, other: Values) -> None:
        """Adds the values of another collection."""
        for name, found in other.found.items():
            _add(self.found.setdefault(name, set()), found)
        _add(self.keys, other.keys)

    def add(self, batch: pa.RecordBatch) -> None:
        names = {*batch.schema.names}
        for name in self.columns & names:
            values = self.found.setdefault(name, set())
            for value in pc.unique(batch.column(name)).to_pylist():
                data = value.encode() if isinstance(value, str) else bytes(value or b"")
                if len(data) >= SHORTEST and len(values) < MOST_VALUES:
                    values.add(data)
        if self.row_keys and names.issuperset(self.row_keys) and len(self.keys) < MOST_VALUES:
            columns = [comparable(batch.column(name)) for name in self.row_keys]
            for row in range(min(batch.num_rows, MOST_VALUES)):
                if all(column[row].is_valid for column in columns):
                    self.keys.add(encode_key(self.kinds, [key_value(column[row]) for column in columns]))

    @property
    def all(self) -> frozenset[bytes]:
        return frozenset(each for values in self.found.values() for each in values)


def _add(values: set[bytes], found: set[bytes]) -> None:
    if len(values) + len(found) <= MOST_VALUES:
        values |= found
    else:
        values |= set(sorted(found - values)[: max(0, MOST_VALUES - len(values))])


def searchable(schema: pa.Schema, names: Sequence[str]) -> frozenset[str]:
    """Returns those of the columns whose values are stored as their bytes."""
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return frozenset(name for name in names if name in schema.names and any(k(schema.field(name).type) for k in kinds))


@dataclass(frozen=True, slots=True)
class CountTask:
    """Counts rows in the files of some fragments of one version. `values` is an empty collection for the found values.

    The task has all that a process needs, so that Spark's tasks and this process do the same.
    """

    location: str
    version: int
    fragment_ids: tuple[int, ...]
    where: str
    values: Values
    rows: int = 0  #: fragments that are searched

    def with_fragment(self, fragment_id: int, rows: int) -> CountTask:
        return replace(self, fragment_ids=(*self.fragment_ids, fragment_id), rows=self.rows + rows)

    def done(self, dataset: LanceDataset) -> CountDone:
        """Counts them; `dataset` may be open at another version."""
        if int(dataset.version) != self.version:
            dataset = dataset.checkout_version(self.version)
        values = self.values.empty()
        try:
            counts = {
                number: count_rows(dataset, dataset.get_fragment(number), self.where, values)
                for number in self.fragment_ids
            }
        except DeployerError as error:
            return CountDone({}, values, error=error)
        return CountDone(counts, values)


@dataclass(frozen=True, slots=True)
class CountDone:
    """The number of rows by fragment, None where the version lacks a column of the condition; and the values found."""

    counts: Mapping[int, int | None]
    values: Values
    written: tuple[WrittenFragment, ...] = ()  #: always empty
    error: DeployerError | None = None


def count_rows(dataset: LanceDataset, fragment: Any, where: str, values: Values) -> int | None:
    """Returns the number of rows of the condition in a fragment's files; None where the version has no such column.
    `values` collects their values."""
    schema = dataset.schema
    try:
        condition = with_typed_texts(with_instants(where), schema)
        columns = sorted(values.read & {*schema.names})
        scanner = dataset.scanner(
            columns=columns or [_first_plain(schema)],
            filter=condition,
            fragments=[fragment],
            with_row_id=True,
            include_deleted_rows=True,
            use_scalar_index=False,
            late_materialization=False,  # with which Lance refuses to read deleted rows
        )
        rows = 0
        for batch in scanner.to_batches():
            rows += batch.num_rows
            values.add(batch)
        return rows
    except DeployerError:
        raise
    except BaseException as failure:
        if is_of_lance(failure) and ("No field named" in str(failure) or "does not exist" in str(failure)):
            return None
        raise


def _first_plain(schema: pa.Schema) -> str:
    return str(next((field.name for field in schema if not pa.types.is_nested(field.type)), schema.names[0]))
