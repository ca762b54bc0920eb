"""Saves the values of some rows of a fragment as parts while other rows are computed. After a kill, only the rows since
the last part are computed again.

A part is the file `parts-FRAGMENT/START-STOP` in the job's folder. It has a checksum, a description of the fragment's
state, and the values in Arrow's stream format. A part that is damaged, or that belongs to another state of the
fragment, counts as missing. The parts are removed once the fragment's data file is written.

Computed values stay in memory until a part is due or they take too much memory. In the second case, they are dropped if
the fragment will probably be complete before a part is due; otherwise they are saved early.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from deployer.columns.fill.checkpoint_sizes import CheckpointSizes
from deployer.columns.fill.work import FragmentWork
from deployer.datasets.storage.options import objects_at
from deployer.platform.storage.envelope import DIGEST_BYTES, digest
from deployer.platform.storage.objects import Missing
from deployer.platform.system.failpoints import reached
from deployer.tables.ingest.files.columnar import ALIGNED

HELD_BYTES = 32_000_000  #: most bytes of values in memory until a part is due

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
_HEAD = struct.Struct(">I")  #: the length of the JSON document that follows


def parts_folder(job_folder: str, fragment_id: int) -> str:
    """Returns the folder of a fragment's parts."""
    return f"{job_folder}/parts-{fragment_id}"


def rows_of(name: str) -> range | None:
    """Returns the rows of a part from its file name; None for other names."""
    start, _, stop = name.partition("-")
    return range(int(start), int(stop)) if start.isdecimal() and stop.isdecimal() else None


class Parts:
    """The parts of one fragment of dataset number `dataset`. `known` are the rows of the saved parts."""

    def __init__(self, root: str, folder: str, dataset: int, work: FragmentWork, known: Sequence[range]) -> None:
        self._objects, self._folder = objects_at(root), folder
        self._dataset, self._work = dataset, work
        self._saved = [rows for rows in known if 0 <= rows.start < rows.stop <= work.physical_rows]

    def spans(self, within: range | None = None) -> Iterator[tuple[range, list[pa.RecordBatch] | None]]:
        """Yields ranges of rows in order, with their values; None for ranges without a saved part. The ranges cover all
        rows of the fragment, or the rows `within`."""
        start, end = (0, self._work.physical_rows) if within is None else (within.start, within.stop)
        for rows in sorted(self._saved, key=lambda each: (each.start, -each.stop)):
            if rows.stop <= start or rows.start >= end or (rows.start < start and within is None):
                continue
            if (batches := self._read(rows)) is None:
                continue
            known = range(max(rows.start, start), min(rows.stop, end))
            if start < known.start:
                yield range(start, known.start), None
            yield known, batches if len(known) == len(rows) else _cut(batches, known.start - rows.start, len(known))
            start = known.stop
        if start < end:
            yield range(start, end), None

    def save(self, rows: range, batches: Sequence[pa.RecordBatch]) -> None:
        """Stores the values of these rows. After the call returns, they survive the end of this process."""
        reached("columns.part.before")
        document = json.dumps(self._document()).encode()
        body = pa.BufferOutputStream()
        with pa.ipc.new_stream(body, batches[0].schema, options=_COMPRESSED) as writer:
            for batch in batches:
                writer.write_batch(batch)
        payload = b"".join((_HEAD.pack(len(document)), document, body.getvalue()))
        self._objects.put(self._path(rows), digest(payload) + payload, durable=False)
        self._saved.append(rows)
        reached("columns.part.saved")

    def remove(self) -> None:
        """Removes all parts."""
        if self._saved:
            self._objects.delete([self._path(rows) for rows in self._saved])
            self._saved = []

    def _read(self, rows: range) -> list[pa.RecordBatch] | None:
        try:
            data = memoryview(self._objects.get(self._path(rows)))
        except Missing:
            return None
        payload = data[DIGEST_BYTES:]
        if len(payload) < _HEAD.size or digest(payload) != data[:DIGEST_BYTES]:
            return None
        start = _HEAD.size + _HEAD.unpack_from(payload)[0]
        try:
            if json.loads(bytes(payload[_HEAD.size : start])) != self._document():
                return None
            with pa.ipc.open_stream(pa.py_buffer(payload[start:]), options=ALIGNED) as reader:
                batches = list(reader)
            for batch in batches:
                batch.validate(full=True)
        except (
            ValueError,
            RecursionError,
            OSError,
            pa.ArrowException,
        ):  # a document with a valid checksum that no job saved
            return None
        return batches if sum(each.num_rows for each in batches) == len(rows) else None

    def _document(self) -> dict[str, object]:
        work = self._work
        return {
            "dataset": self._dataset,
            "rows": work.physical_rows,
            "inputs": [*work.inputs],
            "outputs": [*work.outputs],
        }

    def _path(self, rows: range) -> str:
        return f"{self._folder}/{rows.start}-{rows.stop}"


def _cut(batches: Sequence[pa.RecordBatch], start: int, rows: int) -> list[pa.RecordBatch]:
    found: list[pa.RecordBatch] = pa.Table.from_batches(batches).slice(start, rows).to_batches()
    return found


class HeldRows:
    """Computed values that are not saved yet, from the first of `rows` on.

    With `by_file`, a data file with all rows of the fragment is written next. Otherwise another task writes it from the
    parts.
    """

    def __init__(
        self, parts: Parts, rows: range, sizes: CheckpointSizes, clock: Callable[[], float], *, by_file: bool = True
    ) -> None:
        self._parts, self._sizes, self._clock, self._by_file = parts, sizes, clock, by_file
        self._first, self._end = rows.start, rows.stop
        self._start = self._stop = rows.start
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._begun = self._saved_at = clock()

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds a batch of values; saves or drops all values in memory where this is due."""
        self._batches.append(batch)
        self._bytes += batch.nbytes
        self._stop += batch.num_rows
        if self._stop >= self._end:
            if not self._by_file:
                self._save()
            return
        now = self._clock()
        if now - self._saved_at >= self._sizes.save_seconds:
            self._save()
        elif self._bytes >= HELD_BYTES or self._stop - self._start >= self._sizes.largest:
            left = (now - self._begun) * (self._end - self._stop) / (self._stop - self._first)
            if self._by_file and now - self._saved_at + left < self._sizes.save_seconds:
                self._drop()
            else:
                self._save()

    def _save(self) -> None:
        if self._stop > self._start:
            self._parts.save(range(self._start, self._stop), self._batches)
        self._drop()
        self._saved_at = self._clock()

    def _drop(self) -> None:
        self._batches, self._bytes, self._start = [], 0, self._stop
