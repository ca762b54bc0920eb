"""The rows that commits changed, read from the versions before and after them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.datasets.dataset import open_dataset
from deployer.errors import InvalidInput
from deployer.tables.changes.commits import Commit, Place
from deployer.tables.changes.pairing import Pairs, ReadKeys, keys_of, paired, row_ids, values_of
from deployer.tables.changes.reading import DELETE, INSERT, META, UPDATE, Reading
from deployer.tables.changes.rows import ADDRESS, Version
from deployer.tables.changes.sides import Piece, Selection, Side, selection_of

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset


@dataclass
class CommitReader:
    """Reads the rows that commits changed. Datasets stay open from one commit to the next."""

    reading: Reading
    _opened: dict[str, LanceDataset] = field(default_factory=dict)

    def batches(self, commit: Commit, selection: Selection | None = None) -> Iterator[pa.RecordBatch]:
        """Yields the rows of the commit in the feed's schema, only those of a `selection` if one is given: deleted
        rows, then inserted and updated ones."""
        every = selection_of(commit, judged=self.reading.condition is not None)
        wanted = selection or every
        after = self._version(commit.position.dataset, commit.after)
        before = None if commit.before is None else self._before(commit, commit.before)
        took = None if before is None else Side(before, after, every.took)
        put, written = Side(after, before, every.put), Side(after, before, every.written)
        same, pairs = self._equal(commit, took, put), self._pairs(took, put)
        for batch in self._rows(took, wanted.took) if took is not None else ():
            addresses = np.asarray(batch.column(ADDRESS))
            left = ~(same.took.of(addresses) | pairs.took.of(addresses))
            yield from self._labelled(commit, batch.filter(pa.array(left)), DELETE)
        for batch in self._rows(put, wanted.put):
            addresses = np.asarray(batch.column(ADDRESS))
            updated = pairs.put.of(addresses)
            labels = pc.if_else(pa.array(updated), UPDATE, INSERT)
            left = pa.array(~same.put.of(addresses))
            yield from self._labelled(commit, batch.filter(left), labels.filter(left))
        for batch in self._rows(written, wanted.written):
            yield from self._labelled(commit, batch, UPDATE)

    def before_and_after(self, commit: Commit) -> Iterator[tuple[pa.RecordBatch, bool]]:
        """Yields the removed rows of the commit with False, and the added ones with True; rows with newly written
        values are in both.

        They have the columns of the feed without `META`. A row that a restore did not change may be in both.
        """
        every = selection_of(commit, judged=self.reading.condition is not None)
        after = self._version(commit.position.dataset, commit.after)
        before = None if commit.before is None else self._before(commit, commit.before)
        names = self.reading.schema.names[: -len(META)]
        sides = [(Side(after, before, every.put), True), (Side(after, before, every.written), True)]
        if before is not None:
            sides += [(Side(before, after, every.took), False), (Side(before, after, every.written), False)]
        for side, is_put in sides:
            for batch in self._rows(side, side.pieces):
                yield batch.select(names), is_put

    def _rows(self, side: Side, pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
        if pieces:
            yield from side.rows(self.reading.columns, pieces, with_ids=self.reading.paired_by == "row ids")

    def _pairs(self, took: Side | None, put: Side) -> Pairs:
        if took is None or not took.pieces or not put.pieces:
            return Pairs()
        read: ReadKeys
        match self.reading.paired_by:
            case "keys":
                keys = self.reading.keys
                if None in took.version.names_of(keys) or None in put.version.names_of(keys):
                    return Pairs()
                read = keys_of(keys)
            case "row ids":
                if took.version.number != put.version.number:
                    return Pairs()
                read = row_ids
            case "nothing":
                return Pairs()
        return paired(took, put, read)

    def _equal(self, commit: Commit, took: Side | None, put: Side) -> Pairs:
        if not commit.restores or took is None or not took.pieces or not put.pieces:
            return Pairs()
        return paired(took, put, values_of(self.reading.every))

    def _labelled(self, commit: Commit, batch: pa.RecordBatch, change: Any) -> Iterator[pa.RecordBatch]:
        rows = batch.num_rows
        if not rows:
            return
        schema = self.reading.schema
        own = [batch.column(name) for name in schema.names[: -len(META)]]
        labels = pa.repeat(pa.scalar(change, pa.string()), rows) if isinstance(change, str) else change
        versions = pa.repeat(pa.scalar(commit.position.version, pa.int64()), rows)
        times = pa.repeat(pa.scalar(commit.at, META[2].type), rows)
        yield pa.RecordBatch.from_arrays([*own, labels, versions, times], schema=schema)

    def _before(self, commit: Commit, place: Place) -> Version:
        number = commit.position.dataset if place.location == commit.after.location else 0
        return self._version(number, place)

    def _version(self, number: int, place: Place) -> Version:
        if place.location not in self._opened:
            self._opened[place.location] = open_dataset(place.location, place.version)
        dataset = self._opened[place.location]
        if int(dataset.version) != place.version:
            dataset = dataset.checkout_version(place.version)
        found = Version(self.reading.address, number, place, dataset, self.reading.condition)
        home = self.reading.home
        if number > home.dataset or (number == home.dataset and place.version > home.version):
            self._require_columns(found)
        return found

    def _require_columns(self, version: Version) -> None:
        """Raises InvalidInput for a column that a newer version than the start of the read no longer has."""
        names = version.names_of(self.reading.columns)
        gone = [each.name for each, name in zip(self.reading.columns, names, strict=True) if name is None]
        if gone:
            raise InvalidInput(
                f"version {version.number}:{version.place.version} does not have the column {gone[0]!r} any more",
                where=version.address,
                remedy="start the reading again: it has the columns of the newest version then",
            )
