"""Large numbers of recordings are read by Spark, and registered as those that are read here."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from deployer.catalog.datasets import reading_on_spark
from deployer.catalog.datasets.model.record import folder_of
from deployer.catalog.datasets.model.registry import Datasets
from deployer.catalog.datasets.reading import Source
from deployer.catalog.datasets.reading_on_spark import read_by
from deployer.catalog.datasets.reads.index import Indexes
from deployer.catalog.datasets.registration import Registration
from deployer.datasets.files.named_rows import read_rows
from deployer.errors import NotFound
from deployer.state import open_store
from tests.catalog.datasets.recordings import properties, scalars, write_recording

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def sources_in(folder: Path) -> list[Source]:
    """Recordings of two kinds, some of which are damaged, missing or of another type than the others."""
    found = []
    for number in range(30):
        path = folder / f"s{number:02}.rrd"
        chunks = [scalars("/a", [number, number + 1]), properties("info", number=float(number))]
        if number % 3 == 0:
            chunks.append(scalars("/b", [number]))
        if number == 17:
            chunks = [properties("info", number="a text")]
        write_recording(path, path.stem, chunks, closed=number % 5 != 0)
        if number == 7:
            path.write_bytes(path.read_bytes()[:-60])
        found.append(Source(str(path), "raw" if number % 2 else "base"))
    return [*found, Source("file:///none.rrd"), Source("ftp://x/y.rrd")]


def rows_of(store: Any, root: str, dataset_id: str) -> dict[str, pa.Table]:
    """The rows of a dataset's tables, but for times and the ids of tasks."""
    record = Datasets(store, root).by_id(dataset_id)
    found = {}
    for name in ("layers", "chunks", "tasks"):
        rows = read_rows(f"{folder_of(root, dataset_id)}/{name}.lance", getattr(record, name).named)
        assert rows is not None
        found[name] = rows.select([each for each in rows.column_names if each not in ("registered_at", "at", "task")])
    return found


@pytest.mark.spark
def test_what_spark_reads_is_registered_as_what_is_read_here(
    root: str, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_on_spark, "TASK_FILES", 7)
    sources, found = sources_in(tmp_path / "in"), {}
    with closing(open_store(root)) as store:
        for engine in ("driver", "spark"):
            dataset = Datasets(store, root).create(engine).dataset_id
            read = read_by(engine, lambda: spark)
            tasks: list[Any] = []

            def register(dataset: str = dataset, read: Any = read, tasks: list[Any] = tasks) -> None:
                tasks += Registration(Datasets(store, root), Indexes(root), read).register(dataset, sources)

            thread = threading.Thread(target=register)  # as calls of a server are answered
            thread.start()
            thread.join()
            assert [number for number, each in enumerate(tasks) if each.error is not None] == [7, 17, 30, 31]
            found[engine] = rows_of(store, root, dataset)
    assert found["spark"] == found["driver"] and found["spark"]["layers"].num_rows == 28


def test_few_files_and_machines_without_java_need_no_spark(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = sources_in(tmp_path / "in")

    def session() -> SparkSession:
        raise AssertionError("Spark was started")

    few = list(read_by("auto", session)(sources, "dataset"))
    assert [each.source for each in few] == sources
    monkeypatch.setattr(reading_on_spark, "MANY", 10)
    with pytest.raises(AssertionError, match="Spark was started"):
        list(read_by("auto", session)(sources, "dataset"))

    def no_java() -> Path:
        raise NotFound("no Java was found")

    monkeypatch.setattr(reading_on_spark, "java_home", no_java)
    assert len(list(read_by("auto", session)(sources, "dataset"))) == len(sources)
