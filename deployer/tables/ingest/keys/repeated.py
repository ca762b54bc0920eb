"""The search for rows of a table with repeated row keys, before keys become unique and for `state verify`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from deployer.tables.ingest.keys.sets import KeySet
from deployer.tables.ingest.keys.unique import describe_keys
from deployer.tables.layout.partitions.key_ranges import Ranges, cut

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset, LanceFragment
    from deployer.state.model.files.data_file import File

EXAMPLES = 2  #: keys that a message names
READ_ROWS = 65_536  #: rows of a batch that is read
AT_ONCE = 16_777_216  #: about the largest number of keys in memory
SAMPLED = 100_000  #: keys of the sample that determines how a larger number of keys is divided


@dataclass(frozen=True, slots=True)
class RepeatedKeys:
    """The number of rows whose key an earlier row has, and the first of these keys as text."""

    rows: int = 0
    examples: tuple[str, ...] = ()

    def joined(self, other: RepeatedKeys) -> RepeatedKeys:
        return RepeatedKeys(self.rows + other.rows, (*self.examples, *other.examples)[:EXAMPLES])


def repeated_keys(
    dataset: LanceDataset,
    columns: Sequence[str],
    keys: Sequence[str] = (),
    files: Iterable[File] | None = None,
) -> RepeatedKeys:
    """Counts the rows of the dataset that have the same values in `columns` as an earlier row, and returns the first of
    these keys.

    `keys` are the names of the columns in messages. `files` have the ranges of these keys: files whose ranges do not
    overlap are not compared with each other. Without `files`, all rows are compared.
    """
    found = RepeatedKeys()
    for fragments in _groups(files) if files is not None else [None]:
        keyed = _Keys(dataset, tuple(columns), fragments)
        for rows in keyed.parts():
            found = found.joined(_repeated(rows.rename_columns(list(keys or columns))))
    return found


@dataclass(frozen=True, slots=True)
class _Keys:
    """The keys in some fragments of a dataset, or in all of them."""

    dataset: LanceDataset
    columns: tuple[str, ...]
    fragments: Sequence[int] | None

    def parts(self) -> Iterator[pa.Table]:
        """Yields the keys in parts of about `AT_ONCE` keys at most, estimated from a sample. All rows with the same key
        are in one part."""
        chosen = self.dataset.get_fragments() if self.fragments is None else self._fragments()
        rows = sum(each.count_rows() for each in chosen)
        if rows <= AT_ONCE:
            yield pa.Table.from_batches(self._batches(), self._schema)
            return
        every = -(-rows // SAMPLED)
        sample = pa.Table.from_batches(
            [each.take(pa.array(range(0, each.num_rows, every))) for each in self._batches()]
        )
        ranges = cut(Ranges((), ("",)), sample, rows, AT_ONCE)
        splitter = ranges.splitter(self._schema, self.columns)
        for number in range(len(ranges.partitions)):
            part = [
                each.filter(pa.array(splitter.ranges(each.columns, each.num_rows) == number))
                for each in self._batches()
            ]
            yield pa.Table.from_batches(part, self._schema)

    @property
    def _schema(self) -> pa.Schema:
        return pa.schema([self.dataset.schema.field(name) for name in self.columns])

    def _fragments(self) -> list[LanceFragment]:
        return [self.dataset.get_fragment(each) for each in self.fragments or ()]

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the keys without rows that have a null, because other checks refuse those rows."""
        chosen = None if self.fragments is None else self._fragments()
        names = list(self.columns)
        for batch in self.dataset.scanner(columns=names, fragments=chosen, batch_size=READ_ROWS).to_batches():
            keys = batch.select(names)
            yield keys.drop_null() if any(column.null_count for column in keys.columns) else keys


def _repeated(rows: pa.Table) -> RepeatedKeys:
    if not rows.num_rows:
        return RepeatedKeys()
    places = np.flatnonzero(KeySet(rows.columns).repeats())
    return RepeatedKeys(len(places), tuple(dict.fromkeys(describe_keys(rows.take(pa.array(places[:EXAMPLES]))))))


def _groups(files: Iterable[File]) -> Iterator[list[int]]:
    """Yields groups of fragments whose ranges of keys overlap. If the range of a file is unknown, all files are one
    group."""
    listed = [*files]
    if any(each.min_key is None or each.max_key is None for each in listed):
        yield [each.fragment_id for each in listed]
        return
    group: list[int] = []
    end = b""
    for each in sorted(listed, key=lambda file: file.min_key or b""):
        if group and (each.min_key or b"") > end:
            yield group
            group, end = [], b""
        group.append(each.fragment_id)
        end = max(end, each.max_key or b"")
    if group:
        yield group
