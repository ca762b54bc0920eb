"""Values of some rows of a fragment, saved while the others are made: a killed run repeats those since the last part.

Parts are in the job's folder, `parts-FRAGMENT/START-STOP`: Arrow's stream format with a checksum, and what the fragment
was when they were made. One that is damaged, or of another state of the fragment, counts as missing. They are removed
once the fragment's data file is written. What is made is held in memory until a part is due, or is found to be too
much: where the fragment is expected to be done before a part would be due, it is dropped, and else saved early.
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

HELD_BYTES = 32_000_000  #: of values that are held until a part is due

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
_HEAD = struct.Struct(">I")  #: the length of the JSON document behind it


def parts_folder(job_folder: str, fragment_id: int) -> str:
    """Returns the folder of a fragment's parts."""
    return f"{job_folder}/parts-{fragment_id}"


def rows_of(name: str) -> range | None:
    """Returns the rows of a part by its name; None for other names."""
    start, _, stop = name.partition("-")
    return range(int(start), int(stop)) if start.isdecimal() and stop.isdecimal() else None


class Parts:
    """The parts of one fragment of dataset number `dataset`, of which `known` are saved already."""

    def __init__(self, root: str, folder: str, dataset: int, work: FragmentWork, known: Sequence[range]) -> None:
        self._objects, self._folder = objects_at(root), folder
        self._dataset, self._work = dataset, work
        self._saved = [rows for rows in known if 0 <= rows.start < rows.stop <= work.physical_rows]

    def spans(self, within: range | None = None) -> Iterator[tuple[range, list[pa.RecordBatch] | None]]:
        """Yields all rows of the fragment, or those `within`, in order: those of a part with their values, others with
        None."""
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
        """Stores the values of these rows; they outlive this process when this returns."""
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
        except (ValueError, RecursionError, OSError, pa.ArrowException):  # no job saved this, though its checksum fits
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
    """Values that were made and are not saved, from the first of `rows` on.

    `by_file`: a data file with all rows of the fragment is written next; otherwise another task does it, from parts.
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
        """Holds the rows, or saves all that are held where that is due."""
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
