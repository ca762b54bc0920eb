"""Unique row keys: the search for rows of a load whose keys the table, or an earlier row of the load, already has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from deployer.datasets.dataset import open_dataset
from deployer.datasets.files.writer import read_written
from deployer.datasets.ordering.key_ranges import KeyRange, key_range
from deployer.errors import KeysTaken, Refused
from deployer.plan.render.escaping import plain
from deployer.tables.ingest.keys.sets import KeySet
from deployer.tables.ingest.rows.bad_rows import BadRows, Problem
from deployer.tables.ingest.rows.kept_rows import fields_of
from deployer.tables.read.export import plain_values

if TYPE_CHECKING:
    from deployer.datasets.files.writer import Layout, WrittenFragment
    from deployer.datasets.lance_types import LanceDataset
    from deployer.state.model.entities import TableState
    from deployer.tables.open_table import ReadTable

OnDuplicate = Literal["reject", "skip", "set-aside"]

SPLIT, ROW = "\0split", "\0row"  #: additional columns of rows: the number of the split, and of the row in the split
SHOWN = 5  #: duplicates that a message names
LONGEST = 60  #: characters of a key in a message
READ_ROWS = 65_536

IN_TABLE = "is a key that the table already has"
IN_LOAD = "is a key that a row before it has"


@dataclass(frozen=True, slots=True)
class KeyedFile:
    """A file of the table with its smallest and largest key; None where they are unknown."""

    fragment_id: int
    low: bytes | None
    high: bytes | None

    def meets(self, keys: KeyRange) -> bool:
        return self.low is None or self.high is None or (self.low <= keys.max_key and keys.min_key <= self.high)


@dataclass(frozen=True, slots=True)
class TakenKeys:
    """The location of the keys of a table's rows at one version of its dataset; small enough to be sent to tasks."""

    location: str
    version: int
    row_keys: tuple[str, ...]
    kinds: tuple[str, ...]
    files: tuple[KeyedFile, ...]

    @staticmethod
    def of(table: ReadTable) -> TakenKeys:
        return TakenKeys(table.location, 0, table.row_keys, table.kinds, ()).at(table.state)

    def at(self, state: TableState, besides: Collection[int] = ()) -> TakenKeys:
        """Returns the keys at the version of `state`, without those of the fragments `besides`."""
        files = (each for each in state.files if each.fragment_id not in besides)
        keyed = tuple(KeyedFile(each.fragment_id, each.min_key, each.max_key) for each in files)
        return replace(self, version=state.lance_version, files=keyed)

    def batches(self, keys: KeyRange, dataset: LanceDataset | None = None) -> Iterator[pa.RecordBatch]:
        """Yields the keys of all files whose range may overlap `keys`. `dataset`, if given, saves opening it."""
        met = [each.fragment_id for each in self.files if each.meets(keys)]
        if not met:
            return
        if dataset is None or int(dataset.version) != self.version:
            dataset = open_dataset(self.location, self.version)
        fragments = [dataset.get_fragment(fragment_id) for fragment_id in met]
        names = list(self.row_keys)
        for batch in dataset.scanner(columns=names, fragments=fragments, batch_size=READ_ROWS).to_batches():
            yield batch.select(names)

    def range_of(self, keys: pa.Table) -> KeyRange:
        found = key_range(keys, self.kinds)
        assert found is not None  # noqa: S101 (there are rows, and row keys are never null)
        return found


@dataclass(frozen=True, slots=True)
class Example:
    """A duplicate by its place in the load, with its key as text."""

    split: int
    row: int
    key: str


@dataclass(frozen=True, slots=True)
class Duplicates:
    """The rows whose keys existed already: their number, the first ones, and, by split, the rows to set aside."""

    rows: int = 0
    examples: tuple[Example, ...] = ()
    bad: Mapping[int, BadRows] = field(default_factory=dict)

    def joined(self, other: Duplicates) -> Duplicates:
        """Returns both together. `other` must not have the same rows."""
        if not other.rows:
            return self
        examples = sorted((*self.examples, *other.examples), key=lambda each: (each.split, each.row))
        bad = dict(self.bad)
        for split, rows in other.bad.items():
            bad[split] = bad[split].joined(rows) if split in bad else rows
        return Duplicates(self.rows + other.rows, tuple(examples[:SHOWN]), bad)

    @property
    def shown(self) -> str:
        """The keys of the first duplicates, for messages."""
        more = ", …" if self.rows > len(self.examples) else ""
        return ", ".join(each.key for each in self.examples) + more


@dataclass(frozen=True, slots=True)
class UniqueLoad:
    """The keys that a load into a table with unique keys compares its rows with, and the treatment of duplicates."""

    taken: TakenKeys
    on_duplicate: OnDuplicate = "reject"

    def admitted(
        self, rows: pa.Table, layout: Layout, earlier: Sequence[WrittenFragment], dataset: LanceDataset | None = None
    ) -> tuple[pa.Table, Duplicates]:
        """Returns the rows to write, with the table's columns, and the duplicates.

        `rows` are all or some rows of one range of keys, with the columns `SPLIT` and `ROW`. The first of several rows
        with the same key is kept. `earlier` are the fragments of the range that this load has already written.
        """
        splits, numbers = np.asarray(rows[SPLIT]), np.asarray(rows[ROW])
        steps = np.diff(splits)
        if not ((steps > 0) | ((steps == 0) & (np.diff(numbers) > 0))).all():  # tasks of Spark send rows in any order
            order = np.lexsort((numbers, splits))
            rows, splits, numbers = rows.take(pa.array(order)), splits[order], numbers[order]
        rows = rows.drop_columns([SPLIT, ROW])
        columns = rows.select(list(self.taken.row_keys))
        keys, span = KeySet(columns.columns), self.taken.range_of(columns)
        repeated = keys.repeats()
        there = keys.present(self.taken.batches(span, dataset))[keys.codes]
        again = keys.present(written_keys(layout, earlier, span))[keys.codes]
        duplicate = repeated | there | again
        if not duplicate.any():
            return rows, Duplicates()
        places = np.flatnonzero(duplicate)
        first = [
            Example(int(splits[place]), int(numbers[place]), text)
            for place, text in zip(places[:SHOWN], describe_keys(columns.take(pa.array(places[:SHOWN]))), strict=True)
        ]
        bad: dict[int, BadRows] = {}
        if self.on_duplicate == "set-aside":
            bad = _bad_rows(rows, self.taken.row_keys, places, there, splits, numbers)
        return rows.filter(pa.array(~duplicate)), Duplicates(len(places), tuple(first), bad)


def _bad_rows(rows: pa.Table, names: Sequence[str], places: Any, there: Any, splits: Any, numbers: Any) -> Any:
    """Returns the duplicates as rows to set aside, with the values that the table would have had."""
    taken = rows.take(pa.array(places)).combine_chunks()
    fields = fields_of(taken.to_batches()[0], rows.schema)
    values = _values_in_words(taken.select(list(names)))
    found: dict[int, tuple[list[Problem], dict[int, Any]]] = {}
    for place, kept, value in zip(places, fields, values, strict=True):
        problems, rows_kept = found.setdefault(int(splits[place]), ([], {}))
        reason = IN_TABLE if there[place] else IN_LOAD
        problems.append(Problem(int(numbers[place]), ", ".join(names), reason, ", ".join(value)))
        rows_kept[int(numbers[place])] = kept
    return {split: BadRows.of(problems, kept=kept) for split, (problems, kept) in found.items()}


def with_places(rows: pa.RecordBatch, split: int, numbers: Any) -> pa.RecordBatch:
    """Returns rows with the columns `SPLIT` and `ROW`, which say where in the load a row is."""
    places = [pa.repeat(pa.scalar(split, pa.int32()), rows.num_rows), pa.array(numbers, pa.int64())]
    schema = rows.schema.append(pa.field(SPLIT, pa.int32())).append(pa.field(ROW, pa.int64()))
    return pa.RecordBatch.from_arrays([*rows.columns, *places], schema=schema)


def written_keys(layout: Layout, written: Sequence[WrittenFragment], keys: KeyRange) -> Iterator[pa.RecordBatch]:
    """Yields the keys of those written, uncommitted files whose range may overlap `keys`."""
    for each in written:
        if each.keys is None or (each.keys.min_key <= keys.max_key and keys.min_key <= each.keys.max_key):
            yield from read_written(layout, each, layout.row_keys, READ_ROWS)


def describe_keys(keys: pa.Table) -> list[str]:
    """Returns the key of each row as text for messages: `id=7`, or `(carrier=AA, flight=7)`."""
    found = []
    for values in _values_in_words(keys):
        text = ", ".join(f"{plain(name)}={value}" for name, value in zip(keys.column_names, values, strict=True))
        text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
        found.append(text if len(values) == 1 else f"({text})")
    return found


def _values_in_words(keys: pa.Table) -> list[tuple[str, ...]]:
    columns = [[plain(str(value)) for value in plain_values(column)] for column in keys.columns]
    return list(zip(*columns, strict=True))


def refuse_duplicates(found: Duplicates, rows: int, address: str, remedy: str) -> Refused:
    """Returns the error for a load of `rows` rows, some of which have keys that exist already."""
    has = "has a key" if found.rows == 1 else "have keys"
    return Refused(
        f"{found.rows:,} of {rows:,} row{'s' if rows != 1 else ''} {has} that the table or the load already has "
        f"(first: {found.shown}), so nothing was loaded",
        where=address,
        remedy=remedy,
    )


@dataclass(slots=True)
class Admission:
    """The remaining check of rows that were compared with the keys at one version: the comparison with later rows."""

    taken: TakenKeys
    layout: Layout
    written: Sequence[WrittenFragment]

    def check_again(self, state: TableState, dataset: LanceDataset, address: str) -> None:
        """Compares the rows with the rows that were added since. Raises KeysTaken where one of the keys was added."""
        if state.lance_version == self.taken.version:
            return
        added = self.taken.at(state, {each.fragment_id for each in self.taken.files})
        for each in self.written:
            assert each.keys is not None  # noqa: S101 (the table has row keys, which are never null)
            if not any(file.meets(each.keys) for file in added.files):
                continue
            own = pa.Table.from_batches([*written_keys(self.layout, [each], each.keys)])
            keys = KeySet(own.columns)
            if keys.present(added.batches(each.keys, dataset)).any():
                raise KeysTaken(
                    "rows with the same keys were added to the table while these were being written",
                    where=address,
                    remedy="run the load again",
                )
        self.taken = self.taken.at(state)
