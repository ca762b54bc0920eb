"""Reads large numbers of recordings in Spark tasks. The result for each file is the same as without Spark."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.catalog.datasets.model.record import Kind
from deployer.catalog.datasets.model.rows import NewLayer
from deployer.catalog.datasets.reading import ReadSource, Source, read_all
from deployer.compute.spark.failures import job_failed
from deployer.compute.spark.java import java_home
from deployer.compute.spark.local import LocalCluster, job_session
from deployer.compute.spark.progress import run_job
from deployer.errors import NotFound
from deployer.tables.ingest.engine_choice import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANY = 50_000  #: least number of files that Spark reads where the engine is `auto`
TASK_FILES = 500  #: files that one task reads

ReadAll = Callable[[Sequence[Source], Kind], Iterable[ReadSource]]


def read_by(engine: Engine, session: Callable[[], SparkSession] | None = None) -> ReadAll:
    """Returns the function that reads files: in this process (`driver`), or with Spark, which `session` starts.

    `auto` chooses Spark for `MANY` files or more, where Java is installed.
    """

    def read_sources(sources: Sequence[Source], kind: Kind) -> Iterable[ReadSource]:
        if engine == "driver" or (engine == "auto" and (len(sources) < MANY or not _has_java())):
            return read_all(sources, kind)
        return read_with_spark(job_session(LocalCluster) if session is None else session(), sources, kind)

    return read_sources


def read_with_spark(session: SparkSession, sources: Sequence[Source], kind: Kind) -> Iterator[ReadSource]:
    """Yields the content of each file, in the order of the files, as `read_all` does. Spark has read all files before
    the first is yielded."""
    parts = [tuple(sources[at : at + TASK_FILES]) for at in range(0, len(sources), TASK_FILES)]
    group = f"register-{uuid.uuid4().hex[:8]}"
    numbers = session.range(0, len(parts), 1, max(1, len(parts)))
    frame = numbers.mapInArrow(_Task(tuple(parts), kind), "number int, done binary")
    try:
        found = run_job(session, group, f"read {len(sources):,} recordings", lambda: list(frame.collect()))
    except Exception as failure:
        raise job_failed(failure, sources[0].url) from failure
    by_number = {row["number"]: row["done"] for row in found}
    schemas = dict[bytes, pa.Schema]()
    for number in range(len(parts)):
        for each in pickle.loads(by_number.pop(number)):  # noqa: S301 (deployer's own tasks made the bytes)
            yield replace(each, layers=tuple(_sharing(layer, schemas) for layer in each.layers))


def _has_java() -> bool:
    try:
        java_home()
    except NotFound:
        return False
    return True


def _sharing(layer: NewLayer, schemas: dict[bytes, pa.Schema]) -> NewLayer:
    """Returns the layer with a schema object that all recordings with the same columns share.

    A registration recognizes known schemas by their identity, and a read without Spark shares these objects too.
    """
    recording = layer.recording
    schema = schemas.setdefault(recording.schema.serialize().to_pybytes(), recording.schema)
    return replace(layer, recording=replace(recording, schema=schema))


class _Task:
    """The work of a Spark task: it reads the parts whose numbers are in its rows."""

    def __init__(self, parts: tuple[tuple[Source, ...], ...], kind: Kind) -> None:
        self._parts, self._kind = parts, kind

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                found: list[Any] = list(read_all(self._parts[number], self._kind))
                columns = [pa.array([number], pa.int32()), pa.array([pickle.dumps(found)], pa.binary())]
                yield pa.RecordBatch.from_arrays(columns, ["number", "done"])
