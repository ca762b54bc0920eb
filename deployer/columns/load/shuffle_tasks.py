"""The tasks of a load on Spark.

Rows of the source and keys of the table are sent to buckets by their keys. From there, values are sent to the fragments
that need them. Rows travel between tasks as Arrow messages, as in `tables.ingest.spark`. The tasks' reports travel as
messages too, so that a task that runs twice counts only once.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deployer.columns.fill.checkpoints import Checkpoint
from deployer.columns.fill.fragment_file import FragmentWriter
from deployer.columns.fill.work import FragmentWork, Target
from deployer.columns.load.buckets import taken
from deployer.columns.load.fitted import fitted, values_schema
from deployer.columns.load.key_buckets import key_buckets
from deployer.columns.load.keys import NONE, SHOWN, comparable, key_index, null_rows
from deployer.columns.load.source import LoadSource
from deployer.columns.load.spooled import OFFSET, SpooledColumns
from deployer.columns.load.table_rows import keys_of
from deployer.datasets.dataset import open_dataset
from deployer.errors import DeployerError
from deployer.platform.files.temporary import temporary_folder
from deployer.runs.rewriting.executor import no_row_progress
from deployer.tables.ingest.driver import parted
from deployer.tables.ingest.files.columnar import ALIGNED
from deployer.tables.ingest.spark import MESSAGE_BYTES, ids_of, larger, message, result

if TYPE_CHECKING:
    from numpy.typing import NDArray

Batches = Iterator[pa.RecordBatch]

REPORT_KEY = -1  #: the key of report messages
KEY, FRAGMENT, REPORT = "\0key", "\0fragment", "\0report"  #: columns of messages; table columns cannot have such names


@dataclass(frozen=True, slots=True)
class PartReport:
    """The report on part `number` of the source; `null_rows` are the first rows of the part without a key."""

    number: int
    rows: int = 0
    nulls: int = 0
    null_rows: tuple[int, ...] = ()
    error: DeployerError | None = None


@dataclass(frozen=True, slots=True)
class BucketReport:
    """The report on a bucket. `repeated` are keys that several rows of the source have. `missing` is the number of rows
    of the table without a match; `first_missing` has the first of them as (fragment, offset, key)."""

    repeated: tuple[Any, ...] = ()
    missing: int = 0
    first_missing: tuple[tuple[int, int, Any], ...] = ()


Report = PartReport | BucketReport


@dataclass(frozen=True, slots=True)
class Join:
    """The input of the tasks of a join. `works` are fragments of version `version` of the dataset. `keys` are the keys
    of Spark's partitions for the buckets, and `fragment_keys` the keys for the fragments."""

    source: LoadSource
    target: Target
    pk: str
    location: str
    version: int
    works: tuple[FragmentWork, ...]
    keys: tuple[int, ...]
    fragment_keys: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReadSource:
    """The task that sends the rows of parts of the source to the buckets of their keys."""

    join: Join

    def __call__(self, batches: Batches) -> Batches:
        for number in ids_of(batches):
            try:
                yield from self._part(number)
            except DeployerError as error:
                yield _report(self.join.keys[0], PartReport(number, error=error))

    def _part(self, number: int) -> Batches:
        join = self.join
        part = join.source.parts[number]
        rows = join.source.read(part, [join.pk, *join.target.names])
        keys = comparable(rows.column(join.pk))
        nulls = tuple(null_rows(keys))
        yield _report(join.keys[0], PartReport(number, len(keys), keys.null_count, nulls))
        if nulls or not len(keys):
            return
        values = fitted(rows, join.target, part.source.name)
        yield from _to_buckets(join, values.add_column(0, KEY, keys), keys)


@dataclass(frozen=True, slots=True)
class ReadTable:
    """The task that sends the keys of fragments to their buckets."""

    join: Join

    def __call__(self, batches: Batches) -> Batches:
        join = self.join
        dataset = open_dataset(join.location, join.version)
        for number in ids_of(batches):
            own, offsets = keys_of(dataset, join.works[number], join.pk)
            keys = comparable(own)
            places = np.arange(len(keys)) if offsets is None else offsets
            rows = pa.table({KEY: keys, FRAGMENT: np.full(len(keys), number, np.int32), OFFSET: places})
            yield from _to_buckets(join, rows, keys)


def _to_buckets(join: Join, rows: pa.Table, keys: pa.ChunkedArray) -> Batches:
    numbers = key_buckets(keys, len(join.keys))
    start = 0
    for batch in larger(iter(rows.to_batches())):
        for number, part in parted(batch, numbers[start : start + batch.num_rows]):
            yield message(join.keys[number], part)
        start += batch.num_rows


@dataclass(slots=True)
class _Bucket:
    """The messages of one bucket."""

    values: list[pa.RecordBatch] = field(default_factory=list)
    wanted: list[pa.RecordBatch] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class JoinBuckets:
    """The task that sends the values of a bucket's keys to the fragments that have these keys, and reports repeated and
    missing keys."""

    join: Join

    def __call__(self, batches: Batches) -> Batches:
        buckets: dict[int, _Bucket] = {}
        for batch in batches:
            for key, sent in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                for rows in pa.ipc.open_stream(sent.as_buffer(), options=ALIGNED):
                    if rows.schema.names == [REPORT]:
                        yield message(REPORT_KEY, rows)
                        continue
                    bucket = buckets.setdefault(key, _Bucket())
                    (bucket.wanted if FRAGMENT in rows.schema.names else bucket.values).append(rows)
        while buckets:
            _, bucket = buckets.popitem()
            yield from self._joined(bucket)

    def _joined(self, bucket: _Bucket) -> Batches:
        source = pa.Table.from_batches(bucket.values).combine_chunks() if bucket.values else None
        index = None if source is None else key_index(source.column(KEY))
        if index is not None and (repeated := index.repeated()):
            yield _report(REPORT_KEY, BucketReport(tuple(repeated)))
            return
        if not bucket.wanted:
            return
        wanted = pa.Table.from_batches(bucket.wanted)
        keys = wanted.column(KEY)
        places = np.full(len(keys), NONE, np.int64) if index is None else index.find(keys)
        fragments, offsets = wanted.column(FRAGMENT).to_numpy(), wanted.column(OFFSET).to_numpy()
        order = np.lexsort((offsets, fragments))
        if len(lacks := order[places[order] == NONE]):
            first = lacks[:SHOWN]
            shown = zip(
                fragments[first].tolist(), offsets[first].tolist(), keys.take(pa.array(first)).to_pylist(), strict=True
            )
            yield _report(REPORT_KEY, BucketReport(missing=len(lacks), first_missing=tuple(shown)))
        if source is not None:
            order = order[places[order] != NONE]
            yield from self._values(source.drop_columns([KEY]), fragments[order], offsets[order], places[order])

    def _values(
        self, source: pa.Table, fragments: NDArray[Any], offsets: NDArray[Any], places: NDArray[np.int64]
    ) -> Batches:
        size = max(1, MESSAGE_BYTES // max(1, source.nbytes // max(1, source.num_rows)))
        ends = [*np.flatnonzero(np.diff(fragments)) + 1, len(fragments)] if len(fragments) else []
        start = 0
        for end in ends:
            key = self.join.fragment_keys[int(fragments[start])]
            for at in range(start, end, size):
                own = slice(at, min(end, at + size))
                rows = taken(source, places[own]).combine_chunks()
                rows = rows.add_column(0, OFFSET, pa.array(offsets[own], pa.int64()))
                for batch in rows.to_batches():
                    yield message(key, batch)
            start = end


def _report(key: int, report: Report) -> pa.RecordBatch:
    body = pa.record_batch({REPORT: pa.array([pickle.dumps(report)], pa.binary())})
    return message(key, body)


def read_report(sent: bytes) -> Report:
    """Returns the report of a message."""
    with pa.ipc.open_stream(sent) as reader:
        report: Report = pickle.loads(reader.read_all().column(0)[0].as_py())  # noqa: S301 (deployer's own tasks made it)
    return report


@dataclass(frozen=True, slots=True)
class WriteFragments:
    """The task that writes fragments from the values that arrive. Each fragment to write gets an empty message, so that
    it is also written without values.

    The writer's own values are not used. An error is added to the accumulator; the fragment then has no result.
    """

    join: Join
    writer: FragmentWriter
    works: tuple[FragmentWork, ...]  #: the present states of the join's fragments, in the same order
    version: int
    row_bytes: int
    carries: bool
    errors: Any

    def __call__(self, batches: Batches) -> Batches:
        with temporary_folder("columns") as folder:
            found: dict[int, SpooledColumns] = {}
            for batch in batches:
                for key, sent in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                    if key not in found:
                        found[key] = self._spooled(folder / str(key))
                    if len(sent.as_buffer()):
                        for rows in pa.ipc.open_stream(sent.as_buffer(), options=ALIGNED):
                            found[key].add(rows)
            numbers = {key: number for number, key in enumerate(self.join.fragment_keys)}
            for key, values in found.items():
                values.close()
                yield result((numbers[key], self._written(self.works[numbers[key]], values)))

    def _spooled(self, folder: Path) -> SpooledColumns:
        folder.mkdir()
        return SpooledColumns(folder, values_schema(self.join.target), self.row_bytes, carries=self.carries)

    def _written(self, work: FragmentWork, values: SpooledColumns) -> Checkpoint | None:
        dataset = open_dataset(self.join.location, self.version)
        try:
            return replace(self.writer, values=values).write_once(dataset, work, no_row_progress)
        except DeployerError as error:
            self.errors.add([error])
            return None


def first_of(reports: Sequence[BucketReport]) -> tuple[list[Any], int]:
    """Returns the keys of the first rows of the table without a match, and the number of those rows."""
    found = sorted((each for report in reports for each in report.first_missing), key=lambda each: each[:2])
    return [key for _, _, key in found[:SHOWN]], sum(report.missing for report in reports)
