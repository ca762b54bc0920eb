"""Recordings read by tasks of Spark, for large numbers of files; what is read of each is the same as here."""

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

MANY = 50_000  #: files from which Spark reads them, unless it is said who does
TASK_FILES = 500  #: that a task reads

ReadAll = Callable[[Sequence[Source], Kind], Iterable[ReadSource]]


def read_by(engine: Engine, session: Callable[[], SparkSession] | None = None) -> ReadAll:
    """Returns what reads files: this process (`driver`), or Spark, which `session` starts. `auto`: Spark for `MANY`
    files or more, where there is a Java."""

    def read_sources(sources: Sequence[Source], kind: Kind) -> Iterable[ReadSource]:
        if engine == "driver" or (engine == "auto" and (len(sources) < MANY or not _has_java())):
            return read_all(sources, kind)
        return read_with_spark(job_session(LocalCluster) if session is None else session(), sources, kind)

    return read_sources


def read_with_spark(session: SparkSession, sources: Sequence[Source], kind: Kind) -> Iterator[ReadSource]:
    """Yields what each file holds, in the order of the files, as `read_all` does. All of it is read when this yields
    the first."""
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
        for each in pickle.loads(by_number.pop(number)):  # noqa: S301 (made by our tasks)
            yield replace(each, layers=tuple(_sharing(layer, schemas) for layer in each.layers))


def _has_java() -> bool:
    try:
        java_home()
    except NotFound:
        return False
    return True


def _sharing(layer: NewLayer, schemas: dict[bytes, pa.Schema]) -> NewLayer:
    """Returns the layer with a schema that is one object for all recordings with these columns: a registration knows
    schemas that it has seen by their identity, as reading here makes them."""
    recording = layer.recording
    schema = schemas.setdefault(recording.schema.serialize().to_pybytes(), recording.schema)
    return replace(layer, recording=replace(recording, schema=schema))


class _Task:
    """The work of a Spark task: it reads the parts whose numbers it is given."""

    def __init__(self, parts: tuple[tuple[Source, ...], ...], kind: Kind) -> None:
        self._parts, self._kind = parts, kind

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                found: list[Any] = list(read_all(self._parts[number], self._kind))
                columns = [pa.array([number], pa.int32()), pa.array([pickle.dumps(found)], pa.binary())]
                yield pa.RecordBatch.from_arrays(columns, ["number", "done"])
