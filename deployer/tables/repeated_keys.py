"""Rows of a table whose row keys another row has: looked for before keys become unique, and by `state verify`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from deployer.tables.key_sets import KeySet
from deployer.tables.unique_keys import keys_in_words

if TYPE_CHECKING:
    import lance

    from deployer.state.files import File

EXAMPLES = 2  #: keys that a message names
READ_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Repeated:
    """How many rows have keys that a row before them has, and the first of these keys in words."""

    rows: int = 0
    examples: tuple[str, ...] = ()

    def joined(self, other: Repeated) -> Repeated:
        return Repeated(self.rows + other.rows, (*self.examples, *other.examples)[:EXAMPLES])


def repeated_keys(
    dataset: lance.LanceDataset,
    columns: Sequence[str],
    keys: Sequence[str] = (),
    files: Iterable[File] | None = None,
) -> Repeated:
    """The rows of the dataset that have the same values in `columns` as another one.

    `keys` are the names of the columns in words. `files`, with their ranges of these keys, let files be compared with
    those alone that may have the same keys: the keys of these are held at a time, else of all rows.
    """
    found = Repeated()
    for fragments in _groups(files) if files is not None else [None]:
        chosen = None if fragments is None else [dataset.get_fragment(each) for each in fragments]
        batches = dataset.scanner(columns=list(columns), fragments=chosen, batch_size=READ_ROWS).to_batches()
        rows = pa.Table.from_batches(batches, pa.schema([dataset.schema.field(name) for name in columns]))
        found = found.joined(_repeated(rows.rename_columns(list(keys or columns))))
    return found


def _repeated(rows: pa.Table) -> Repeated:
    rows = rows.filter(_without_nulls(rows)) if any(column.null_count for column in rows.columns) else rows
    if not rows.num_rows:
        return Repeated()
    places = np.flatnonzero(KeySet(rows.columns).repeats())
    return Repeated(len(places), tuple(dict.fromkeys(keys_in_words(rows.take(pa.array(places[:EXAMPLES]))))))


def _without_nulls(rows: pa.Table) -> pa.Array:
    """Which rows have no null in them: what is null is refused for other reasons."""
    valid = np.logical_and.reduce([np.asarray(column.is_valid().cast(pa.int8())) for column in rows.columns])
    return pa.array(valid.astype(bool))


def _groups(files: Iterable[File]) -> Iterator[list[int]]:
    """Fragments whose ranges of keys meet, each group apart. Files of unknown range may meet all others."""
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
