"""The values of a load in this process: a row of the table gets the values of the source's row with the same key."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from deployer.columns.fill.live_rows import LiveRows, live_rows
from deployer.columns.fill.work import FragmentWork, Target
from deployer.columns.load.buckets import BucketValues, HeldValues, Values
from deployer.columns.load.fitted import fitted, values_schema
from deployer.columns.load.keys import NONE, SHOWN, KeyIndex, comparable, index_keys
from deployer.columns.load.request import LoadRequest, refuse_missing
from deployer.columns.load.source import LoadSource, Part
from deployer.columns.load.table_rows import carried, keys_of
from deployer.platform.system.progress import OnProgress, Progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.datasets.lance_types import LanceDataset

    Places = NDArray[np.int64]

HELD_BYTES = 256_000_000  #: most bytes of a source's values in memory; larger sources are sorted into files
BATCH_BYTES = 4_000_000  #: about the bytes of values that are yielded at a time
LOOKUP_ROWS = 4_000_000  #: keys of the table that are looked up at a time
READERS = 2  #: parts of the source that are read at the same time
DELETED = -2  #: the position of a deleted row


class JoinedColumns:
    """The values of a load (see `fill.work.ValuesSource` and `ColumnValues`). Files with values are in `folder`, which
    the caller removes."""

    def __init__(
        self,
        source: LoadSource,
        request: LoadRequest,
        target: Target,
        where: str,
        folder: Path,
        on_progress: OnProgress,
    ) -> None:
        self._source, self._request, self._target, self._where = source, request, target, where
        self._folder, self._on_progress = folder, on_progress
        self._schema = values_schema(target)
        self._keys: KeyIndex | None = None
        self._held: HeldValues | None = None
        self._values: Values | None = None
        self._row_bytes, self._round = 1, 0
        self._places: dict[int, Places] = {}

    def prepare(self, dataset: LanceDataset, works: Sequence[FragmentWork]) -> None:
        """Reads the source, and finds the source's row for each row of the fragments.

        Raises Refused for null and repeated keys, for values that the columns cannot have, and for missing keys where
        the request makes them an error. Raises Conflict where the source changes meanwhile.
        """
        if self._keys is None:
            self._keys = self._index()
        self._places = {}
        keys, missing = self._find(dataset, works, self._keys)
        rows = sum(work.rows for work in works)
        refuse_missing(self._request, self._target, keys, missing, rows, self._where)
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

    def _find(self, dataset: LanceDataset, works: Sequence[FragmentWork], index: KeyIndex) -> tuple[list[object], int]:
        """Finds the source's row for each row of the fragments, and keeps the positions in `_places`. Returns the first
        keys that the source does not have, and their number."""
        first: list[object] = []
        missing = 0
        for group in _groups(works, LOOKUP_ROWS):
            read = [keys_of(dataset, work, self._request.pk) for work in group]
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
        return first, missing

    def _read_values(self, works: Sequence[FragmentWork]) -> None:
        parts = self._parts()
        read: list[pa.Table] = []
        size = rows = 0
        for part in parts:  # up to the part that exceeds the limit
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
        """Yields the values of all rows of the source, in order and in the types of the columns."""
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
        return fitted(self._source.read(part, self._request.columns), self._target, part.source.name)

    def of_fragment(
        self, dataset: LanceDataset, work: FragmentWork, rows: range, size: Callable[[], int]
    ) -> Iterator[pa.RecordBatch]:
        """Yields the values of these rows of the fragment. Rows that the source lacks keep their values if the request
        carries values, or else get null."""
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
                values = carried(values, own, *before.between(start, stop))
            yield from values.combine_chunks().to_batches()
            start = stop

    def _values_before(self, dataset: LanceDataset, work: FragmentWork, places: Places) -> LiveRows | None:
        """Returns the present values of the fragment's rows; None where no row keeps its values."""
        if self._request.on_missing != "carry" or not any(work.outputs) or not bool((places == NONE).any()):
            return None
        return live_rows(dataset, work.fragment_id, self._schema)


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
