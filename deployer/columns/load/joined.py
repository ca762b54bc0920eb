"""The values of a load: each row of the table gets those of the source's row with the same primary key."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.columns.fill.work import FragmentWork, Target
from deployer.columns.load.buckets import BucketValues, HeldValues, Values, taken
from deployer.columns.load.keys import NONE, SHOWN, KeyIndex, comparable, index_keys
from deployer.columns.load.request import LoadRequest
from deployer.columns.load.source import LoadSource, Part
from deployer.errors import Refused
from deployer.platform.system.progress import OnProgress, Progress
from deployer.specs.types.arrow import arrow_field
from deployer.tables.conversion.casts import lossless

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.datasets.lance_types import LanceDataset

    Places = NDArray[np.int64]

HELD_BYTES = 256_000_000  #: of a source's values, that are held in memory; more are sorted into files
BATCH_BYTES = 4_000_000  #: of the values that are given at a time
LOOKUP_ROWS = 4_000_000  #: keys of the table that are looked up at a time
READERS = 2  #: parts of the source that are read at the same time
DELETED = -2  #: the place of a deleted row


class JoinedColumns:
    """See `fill.work.ColumnValues`. Files of values lie in `folder`, which the caller removes."""

    def __init__(
        self,
        source: LoadSource,
        request: LoadRequest,
        target: Target,
        where: str,
        folder: Path,
        on_progress: OnProgress,
    ) -> None:
        self.inputs = (request.pk,)
        self._source, self._request, self._target, self._where = source, request, target, where
        self._folder, self._on_progress = folder, on_progress
        self._schema = pa.schema(
            [arrow_field(column).with_nullable(True).remove_metadata() for column in target.columns]
        )
        self._keys: KeyIndex | None = None
        self._held: HeldValues | None = None
        self._values: Values | None = None
        self._row_bytes, self._round = 1, 0
        self._places: dict[int, Places] = {}

    def prepare(self, dataset: LanceDataset, works: Sequence[FragmentWork]) -> None:
        """Reads the source, and finds the place in it of each row of the fragments.

        Raises Refused for keys that are null, repeated or, where that is an error, missing, and for values that the
        columns cannot have; Conflict where the source changes meanwhile.
        """
        if self._keys is None:
            self._keys = self._index()
        self._places = {}
        missing = self._find(dataset, works, self._keys)
        self._refuse_missing(missing, sum(work.physical_rows for work in works))
        if self._held is None and works:
            self._read_values(works)
        self._source.require_unchanged()

    def _index(self) -> KeyIndex:
        pk, parts = self._request.pk, self._source.parts
        keys: list[pa.ChunkedArray] = []
        with ThreadPoolExecutor(READERS) as pool:
            for number, part in enumerate(pool.map(lambda each: self._source.read(each, [pk]), parts)):
                self._on_progress(Progress(f"reading {pk} of the source", number, len(parts), "parts"))
                keys.append(comparable(part.column(pk)))
        return index_keys(
            pa.chunked_array([each for part in keys for each in part.chunks], keys[0].type), pk, self._name
        )

    @property
    def _name(self) -> str:
        return self._source.sources[0].name

    def _find(self, dataset: LanceDataset, works: Sequence[FragmentWork], index: KeyIndex) -> list[object]:
        """Notes the places of all rows; returns the first keys that the source does not have, and how many there are
        as the last."""
        first: list[object] = []
        missing = 0
        for group in _groups(works, LOOKUP_ROWS):
            read = [_keys_of(dataset, work, self._request.pk) for work in group]
            wanted = [comparable(own) for own, _ in read]
            keys = pa.chunked_array([each for own in wanted for each in own.chunks], wanted[0].type)
            found = index.find(keys)
            start = 0
            for work, (own, offsets) in zip(group, read, strict=True):
                places = found[start : start + len(own)]
                start += len(own)
                lacks = np.flatnonzero(places == NONE)
                missing += len(lacks)
                if len(lacks) and len(first) < SHOWN:
                    first += own.take(pa.array(lacks[: SHOWN - len(first)])).to_pylist()
                if offsets is None:
                    self._places[work.fragment_id] = places
                else:
                    whole = np.full(work.physical_rows, DELETED, np.int64)
                    whole[offsets] = places
                    self._places[work.fragment_id] = whole
        return [*first, missing] if missing else []

    def _refuse_missing(self, missing: Sequence[object], rows: int) -> None:
        if not missing:
            return
        *keys, number = missing
        shown = ", ".join(map(str, keys))
        if self._request.on_missing == "error":
            raise Refused(
                f"{number:,} of {rows:,} rows have no match in the source: {self._request.pk} {shown}",
                where=self._where,
                remedy="add them to the source, or load with on_missing carry or null; no value was written",
            )
        required = [column.name for column in self._target.columns if not column.nullable]
        if required and self._request.on_missing == "null":
            raise Refused(
                f"column {required[0]} must not be null, and {number:,} rows have no match in the source: "
                f"{self._request.pk} {shown}",
                where=self._where,
                remedy="load with on_missing carry, or make the column nullable",
            )

    def _read_values(self, works: Sequence[FragmentWork]) -> None:
        parts = self._parts()
        read: list[pa.Table] = []
        size = rows = 0
        for part in parts:  # until it is known to be too much to be held
            read.append(part)
            size, rows = size + part.nbytes, rows + part.num_rows
            if size > HELD_BYTES:
                break
        self._row_bytes = max(1, size // max(1, rows))
        if size <= HELD_BYTES:
            self._held = HeldValues(iter(read))
            self._values = self._held
            return

        def again() -> Iterator[pa.Table]:
            while read:
                yield read.pop(0)
            yield from parts

        shutil.rmtree(self._folder / f"round-{self._round}", ignore_errors=True)
        self._round += 1
        folder = self._folder / f"round-{self._round}"
        folder.mkdir()
        self._values = BucketValues(folder, works, self._places, again, self._row_bytes)

    def _parts(self) -> Iterator[pa.Table]:
        """Yields the values of all rows of the source in order, in the types of the columns."""
        done, parts = 0, self._source.parts
        with ThreadPoolExecutor(READERS) as pool:
            pending = [pool.submit(self._values_of, part) for part in parts[:READERS]]
            try:
                for number in range(len(parts)):
                    values = pending.pop(0).result()
                    if number + READERS < len(parts):
                        pending.append(pool.submit(self._values_of, parts[number + READERS]))
                    done += values.num_rows
                    self._on_progress(Progress("reading the source", done, None))
                    yield values
            finally:
                for each in pending:
                    each.cancel()

    def _values_of(self, part: Part) -> pa.Table:
        rows = self._source.read(part, self._request.columns)
        made = []
        for column, field in zip(self._target.columns, self._schema, strict=True):
            values = rows.column(column.name)
            if not values.type.equals(field.type):
                values, bad = lossless(values.combine_chunks(), field.type)
                if bad is not None and (number := int(pc.sum(bad).as_py() or 0)):
                    raise self._unfit(column.name, f"{number:,} values cannot become {field.type}", part)
            if not column.nullable and values.null_count:
                raise self._unfit(
                    column.name, f"{values.null_count:,} values are null, which the column must not be", part
                )
            made.append(values)
        return pa.table(made, schema=self._schema)

    def _unfit(self, name: str, why: str, part: Part) -> Refused:
        return Refused(
            f"column {name}: {why}", where=part.source.name, remedy="correct the source; no value was written"
        )

    def of_fragment(
        self, dataset: LanceDataset, work: FragmentWork, rows: range, size: Callable[[], int]
    ) -> Iterator[pa.RecordBatch]:
        """Yields the values of these rows of the fragment, and those that they have where the source has none and they
        stay."""
        places = self._places[work.fragment_id]
        assert self._values is not None  # noqa: S101 -- prepared
        most = max(256, BATCH_BYTES // self._row_bytes)
        before = self._values_before(dataset, work, places)
        start = rows.start
        while start < rows.stop:
            stop = min(start + min(size(), most), rows.stop)
            own = places[start:stop]
            values = self._values.take(work, start, own)
            if before is not None:
                values = _carried(values, own, *before.between(start, stop))
            yield from values.combine_chunks().to_batches()
            start = stop

    def _values_before(self, dataset: LanceDataset, work: FragmentWork, places: Places) -> _LiveRows | None:
        """Returns the values that rows have now, where some are to stay."""
        if self._request.on_missing != "carry" or not any(work.outputs) or not bool((places == NONE).any()):
            return None
        fragment = dataset.get_fragment(work.fragment_id)
        names = list(self._schema.names)
        scanner = dataset.scanner(columns=names, fragments=[fragment], scan_in_order=True, with_row_address=True)
        return _LiveRows(scanner.to_batches(), self._schema)


class _LiveRows:
    """The rows of a fragment that are not deleted, taken in order. They may be fewer than when their keys were read."""

    def __init__(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        self._batches, self._schema = iter(batches), schema
        self._left = schema.empty_table()
        self._offsets = np.empty(0, np.int64)

    def between(self, start: int, stop: int) -> tuple[NDArray[np.int64], pa.Table]:
        """Returns the rows between two physical rows, with their distances from the first. What is asked for next comes
        behind these."""
        while not len(self._offsets) or self._offsets[-1] < stop:
            batch = next(self._batches, None)
            if batch is None:
                break
            rows = pa.Table.from_batches([batch])
            offsets = _offsets(rows)
            if skipped := int(np.searchsorted(offsets, start)):  # of parts that are saved
                offsets, rows = offsets[skipped:], rows.slice(skipped)
            self._offsets = np.concatenate([self._offsets, offsets])
            self._left = pa.concat_tables([self._left, rows.select(self._schema.names).cast(self._schema)])
        number = int(np.searchsorted(self._offsets, stop))
        found = self._offsets[:number] - start, self._left.slice(0, number)
        self._offsets, self._left = self._offsets[number:], self._left.slice(number)
        return found


def _carried(values: pa.Table, places: Places, offsets: NDArray[np.int64], old: pa.Table) -> pa.Table:
    """Returns the values, with the `old` ones, of rows at these offsets, where the source has none."""
    stays = places[offsets] == NONE
    if not bool(stays.any()):
        return values
    chosen = np.arange(len(places), dtype=np.int64)
    chosen[offsets[stays]] = len(places) + np.flatnonzero(stays)
    return taken(pa.concat_tables([values, old]).combine_chunks(), chosen)


def _keys_of(dataset: LanceDataset, work: FragmentWork, pk: str) -> tuple[pa.ChunkedArray, NDArray[np.int64] | None]:
    """Returns the keys of the fragment's rows that are not deleted, and their physical offsets: None where none is
    deleted."""
    fragment = dataset.get_fragment(work.fragment_id)
    has_deletions = bool(fragment.metadata.num_deletions)
    scanner = dataset.scanner(columns=[pk], fragments=[fragment], scan_in_order=True, with_row_address=has_deletions)
    rows = scanner.to_table()
    if not has_deletions:
        return rows.column(pk), None
    return rows.column(pk), _offsets(rows)


def _offsets(rows: pa.Table) -> NDArray[np.int64]:
    """Returns the physical offsets of rows in their fragment, which the low half of their addresses is."""
    addresses: NDArray[np.int64] = rows.column("_rowaddr").to_numpy().astype(np.int64)
    return addresses & 0xFFFFFFFF


def _groups(works: Sequence[FragmentWork], most: int) -> Iterator[list[FragmentWork]]:
    group: list[FragmentWork] = []
    rows = 0
    for work in works:
        group.append(work)
        rows += work.physical_rows
        if rows >= most:
            yield group
            group, rows = [], 0
    if group:
        yield group
