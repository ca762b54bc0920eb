"""A load on Spark: buckets of keys join the source with the table, and a task writes each fragment.

Values pass through Spark's shuffle and its local disks. Therefore neither the driver nor a task has more than a bucket
in memory, for a source of any size. The result of the join stays on these disks until its last fragment is written.
After a kill, the next run joins again for the fragments that have no checkpoint.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.columns.fill.checkpoints import Checkpoint
from deployer.columns.fill.executor import OnTick, Parts
from deployer.columns.fill.fragment_file import FragmentWriter, OnRows
from deployer.columns.fill.spark_tasks import task_errors
from deployer.columns.fill.work import FragmentWork, Target
from deployer.columns.load.keys import SHOWN, as_given, refuse_no_rows, refuse_null_keys, refuse_repeated_keys
from deployer.columns.load.request import LoadRequest, refuse_missing
from deployer.columns.load.shuffle_tasks import (
    REPORT_KEY,
    BucketReport,
    Join,
    JoinBuckets,
    PartReport,
    ReadSource,
    ReadTable,
    Report,
    WriteFragments,
    first_of,
    read_report,
)
from deployer.columns.load.source import LoadSource
from deployer.platform.system.failpoints import reached
from deployer.platform.system.progress import OnProgress, Progress
from deployer.runs.rewriting.executor import collected
from deployer.tables.ingest.spark import BATCH_SETTING, MESSAGES_A_BATCH, partition_keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deployer.datasets.lance_types import LanceDataset

BUCKET_BYTES = 128_000_000  #: about the bytes of a bucket's values, which a task has in memory
BUCKET_ROWS = 2_000_000  #: about the rows of the table in a bucket, whose keys a task has in memory

_MESSAGES = "range int, rows binary"


class ShuffledColumns:
    """The source and the executor of a load on Spark (see `fill.work.ValuesSource` and `fill.executor.Executor`).

    Tasks get the values through the shuffle.
    """

    def __init__(
        self,
        session: Callable[[], SparkSession],
        source: LoadSource,
        request: LoadRequest,
        target: Target,
        where: str,
        on_progress: OnProgress,
    ) -> None:
        self._start, self._source, self._request, self._target = session, source, request, target
        self._where, self._on_progress = where, on_progress
        self._join: Join | None = None
        self._joined: Any = None
        self._row_bytes, self._key_type = 1, pa.null()

    @property
    def _name(self) -> str:
        return self._source.sources[0].name

    def prepare(self, dataset: LanceDataset, works: Sequence[FragmentWork]) -> None:
        """Joins the source with these fragments. Raises as `JoinedColumns.prepare` does."""
        if self._join is not None and not works:
            return
        self.close()
        self._key_type = dataset.schema.field(self._request.pk).type
        session = self._start()
        rows = sum(work.physical_rows for work in works)
        buckets = max(
            int(session.sparkContext.defaultParallelism),
            math.ceil(self._source.bytes / BUCKET_BYTES),
            math.ceil(rows / BUCKET_ROWS),
        )
        join = Join(
            self._source,
            self._target,
            self._request.pk,
            dataset.uri,
            int(dataset.version),
            tuple(works),
            tuple(partition_keys(buckets)),
            tuple(partition_keys(len(works))),
        )
        self._joined = _joined(session, join)
        self._join = join
        self._refuse(self._reports(session, join, rows), sum(work.rows for work in works))
        self._source.require_unchanged()
        reached("columns.spark.joined")

    def _reports(self, session: SparkSession, join: Join, rows: int) -> list[Report]:
        total, done = self._source.rows + rows, 0

        def report(more: int) -> None:
            nonlocal done
            done += more
            self._on_progress(Progress("joining the source with the table", done, total))

        frame = self._joined.where(f"range = {REPORT_KEY}").select("rows")
        with _few_messages(session):
            found = collected(session, frame, join.location, total, report)
        return [read_report(bytes(row["rows"])) for row in found]

    def _refuse(self, reports: Sequence[Report], rows: int) -> None:
        parts = sorted((each for each in reports if isinstance(each, PartReport)), key=lambda each: each.number)
        buckets = [each for each in reports if isinstance(each, BucketReport)]
        for part in parts:
            if part.error is not None:
                raise part.error
        read = nulls = 0
        null_rows: list[int] = []
        for part in parts:
            null_rows += [read + row for row in part.null_rows]
            read, nulls = read + part.rows, nulls + part.nulls
        refuse_no_rows(read, self._name)
        refuse_null_keys(nulls, null_rows, read, self._request.pk, self._name)
        repeated = sorted(key for each in buckets for key in each.repeated)[:SHOWN]
        refuse_repeated_keys(repeated, self._request.pk, self._name)
        keys, missing = first_of(buckets)
        shown = [as_given(key, self._key_type) for key in keys]
        refuse_missing(self._request, self._target, shown, missing, rows, self._where)
        self._row_bytes = max(1, self._source.bytes // read)

    def written(
        self,
        writer: FragmentWriter,
        dataset: LanceDataset,
        works: Sequence[FragmentWork],
        parts: Parts,  # not used: tasks list the parts, because a repeated task has more
        on_rows: OnRows,
        on_tick: OnTick,
    ) -> list[Checkpoint]:
        """Writes the fragments, which the last `prepare` must have prepared."""
        join = self._join
        if not works or join is None:
            return []
        session = self._start()
        numbers = {work.fragment_id: number for number, work in enumerate(join.works)}
        chosen = [numbers[work.fragment_id] for work in works]
        now = {numbers[work.fragment_id]: work for work in works}
        errors = task_errors(session)
        task = WriteFragments(
            join,
            writer,
            tuple(now.get(number, work) for number, work in enumerate(join.works)),
            int(dataset.version),
            self._row_bytes,
            self._request.on_missing == "carry",
            errors,
        )

        def report(rows: int) -> None:
            if errors.value:
                raise errors.value[0]
            on_rows(rows)
            on_tick()

        keys = [join.fragment_keys[number] for number in chosen]
        every = session.createDataFrame([(key, b"") for key in keys], _MESSAGES)
        values = self._joined.where(self._joined["range"].isin(keys))
        frame = values.union(every).repartition(len(join.works), "range").mapInArrow(task, "written binary")
        with _few_messages(session):
            found = collected(session, frame, join.location, sum(work.physical_rows for work in works), report)
        if errors.value:
            raise errors.value[0]
        made = dict(pickle.loads(row["written"]) for row in found)  # noqa: S301 (deployer's own tasks made it)
        return [made[number] for number in chosen]

    def close(self) -> None:
        """Removes the result of the last join from Spark's disks."""
        if self._joined is not None:
            with suppress(Exception):  # the session may be gone, and its files with it
                self._joined.unpersist()
            self._joined = self._join = None


def _joined(session: SparkSession, join: Join) -> Any:
    """Returns a frame of messages with the values for fragments and the reports. Spark stores it on its disks."""
    from pyspark import StorageLevel

    sources = len(join.source.parts)
    read = session.range(0, sources, 1, sources).mapInArrow(ReadSource(join), _MESSAGES)
    if join.works:
        fragments = len(join.works)
        read = read.union(session.range(0, fragments, 1, fragments).mapInArrow(ReadTable(join), _MESSAGES))
    joined = read.repartition(len(join.keys), "range").mapInArrow(JoinBuckets(join), _MESSAGES)
    return joined.persist(StorageLevel.DISK_ONLY)


@contextmanager
def _few_messages(session: SparkSession) -> Iterator[None]:
    """Makes Spark put few messages into an Arrow batch, because each message may be large."""
    before = session.conf.get(BATCH_SETTING)
    session.conf.set(BATCH_SETTING, MESSAGES_A_BATCH)
    try:
        yield
    finally:
        session.conf.set(BATCH_SETTING, before or "10000")
