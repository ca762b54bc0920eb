"""Registers files as layers of a dataset. One commit names the versions of the tables that have the layers' rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import IntEnum

import pyarrow as pa
import pyarrow.compute as pc

from deployer.catalog.datasets.model.record import DatasetRecord, Kind, RowVersion, folder_of
from deployer.catalog.datasets.model.registry import AlreadyThere, Datasets
from deployer.catalog.datasets.model.rows import NewLayer, Task, chunk_rows, layer_rows, task_rows
from deployer.catalog.datasets.model.schemas import Columns
from deployer.catalog.datasets.reading import ReadSource, Source, read_all
from deployer.catalog.datasets.reads.index import DatasetIndex, Indexes
from deployer.catalog.datasets.search.searches import Searches
from deployer.catalog.recordings.source import url_of
from deployer.datasets.files.named_rows import add_rows, read_rows
from deployer.errors import Conflict, InvalidInput, NotFound
from deployer.platform.system.failpoints import reached
from deployer.platform.system.memory import release_memory
from deployer.state.commits import LOST_RACE

_MANY = 1000  #: least number of files after whose registration unused memory is released
_ATTEMPTS = 40  #: attempts of a registration while other writers change the dataset


class OnDuplicate(IntEnum):
    """The action for a layer that its segment already has. The numbers are those of the protocol."""

    OVERWRITE = 1
    SKIP = 2
    ERROR = 3


@dataclass(frozen=True, slots=True)
class _Plan:
    """The layers to add, and the task of each file."""

    layers: tuple[NewLayer, ...]
    tasks: tuple[Task, ...]

    def without(self, faults: Mapping[tuple[str, str], str]) -> _Plan:
        """Returns the plan without the files of some layers; the tasks of these files have the faults.

        `faults` has the fault of each such layer, by the layer's key.
        """
        urls = {each.url: faults[each.key] for each in self.layers if each.key in faults}
        return _Plan(
            tuple(each for each in self.layers if each.url not in urls),
            tuple(
                replace(each, segment="", error=f"{each.url}: {urls[each.url]}") if each.url in urls else each
                for each in self.tasks
            ),
        )


@dataclass(frozen=True, slots=True)
class Registration:
    """Registers files with datasets. `read_sources` reads the files (see `reading_on_spark.read_by`). Safe for threads
    and processes."""

    datasets: Datasets
    indexes: Indexes
    read_sources: Callable[[Sequence[Source], Kind], Iterable[ReadSource]] = read_all

    @property
    def searches(self) -> Searches:
        return Searches(self.datasets, self.indexes)

    def register(
        self, dataset_id: str, sources: Sequence[Source], on_duplicate: OnDuplicate = OnDuplicate.ERROR
    ) -> list[Task]:
        """Registers files as layers; returns a task for each recording, and for each file that has an error.

        When the call returns, all valid files are registered. When it raises, none is. Raises NotFound for an unknown
        dataset, AlreadyThere for a layer that its segment already has, InvalidInput for an empty list of files, and
        Conflict where other writers keep changing the dataset.
        """
        if not sources:
            raise InvalidInput("no data sources to register", remedy="name at least one recording")
        read = list(self.read_sources(sources, self.datasets.by_id(dataset_id).kind))
        call = self.datasets.clock.new_id()[:16]
        for _ in LOST_RACE.attempts(_ATTEMPTS):
            with self.datasets.store.turn(dataset_id):
                plan = self._attempted(dataset_id, read, on_duplicate, f"{dataset_id}-{call}")
            if plan is not None:
                tasks = list(plan.tasks)
                if len(read) >= _MANY:
                    del read, plan
                    release_memory()
                return tasks
        raise Conflict(
            "other writers keep registering recordings",
            where=dataset_id,
            remedy="try again when there are fewer writers",
        )

    def _attempted(
        self, dataset_id: str, read: Sequence[ReadSource], on_duplicate: OnDuplicate, task_prefix: str
    ) -> _Plan | None:
        """Registers the files and returns the plan; returns None, and registers nothing, where the dataset was changed
        meanwhile."""
        record = self.datasets.by_id(dataset_id)
        index = self.indexes.of(record)
        plan = _planned(read, index, on_duplicate, task_prefix)
        searches, faults = self.searches.extended(record, plan.layers)
        if faults:  # a search index cannot have the values of these files
            plan = plan.without(faults)
            searches, _ = self.searches.extended(record, plan.layers)
        at = time.time_ns()
        layers = layer_rows(plan.layers, record.sources, at, index.schema_numbers)
        chunks = chunk_rows(plan.layers, record.sources)
        after = replace(
            self._written(record, {"layers": layers, "chunks": chunks, "tasks": task_rows(plan.tasks, at)}),
            sources=record.sources + len(plan.layers),
            searches=searches,
        )
        reached("catalog:before-registering")
        if self.datasets.is_replaced(record, after):
            reached("catalog:after-registering")
            self.indexes.grown(index, after, layers, chunks)
            return plan
        return None

    def tasks(self, task_ids: Sequence[str]) -> list[Task]:
        """Returns the tasks with these ids, in the same order. Raises NotFound for an unknown id."""
        found = dict[str, Task]()
        for dataset_id in dict.fromkeys(each.partition("-")[0] for each in task_ids):
            record = self.datasets.find(dataset_id)
            if record is not None:
                found |= self._tasks_of(record, task_ids)
        for each in task_ids:
            if each not in found:
                raise NotFound(f"task {each[:80]} not found", remedy="register the files again")
        return [found[each] for each in task_ids]

    def _tasks_of(self, record: DatasetRecord, task_ids: Sequence[str]) -> dict[str, Task]:
        rows = read_rows(f"{folder_of(self.datasets.root, record.dataset_id)}/tasks.lance", record.tasks.named)
        if rows is None:
            return {}
        rows = rows.filter(pc.is_in(rows["task"], pa.array(task_ids, pa.utf8()))).drop_columns(["at"])
        return {each["task"]: Task(**each) for each in rows.to_pylist()}

    def _written(self, record: DatasetRecord, rows: Mapping[str, pa.Table]) -> DatasetRecord:
        """Writes rows of the dataset's tables, and returns the record that names their versions."""
        folder = folder_of(self.datasets.root, record.dataset_id)

        def written(name: str) -> RowVersion:
            before: RowVersion = getattr(record, name)
            if not rows[name].num_rows:
                return before
            named = add_rows(f"{folder}/{name}.lance", before.named, rows[name])
            return RowVersion(named.version, named.rows)

        with ThreadPoolExecutor(len(rows), "rows") as pool:
            layers, chunks, tasks = pool.map(written, ("layers", "chunks", "tasks"))
        now = max(record.updated_at, self.datasets.clock.now()) if rows["layers"].num_rows else record.updated_at
        return replace(record, updated_at=now, layers=layers, chunks=chunks, tasks=tasks)


def _planned(read: Sequence[ReadSource], index: DatasetIndex, on_duplicate: OnDuplicate, task_prefix: str) -> _Plan:
    """Returns the plan of a registration. Raises AlreadyThere for a layer that its segment already has, if
    `on_duplicate` is ERROR."""
    columns, properties = Columns([index.schema]), Columns([index.properties.schema])
    layers, tasks = dict[tuple[str, str], NewLayer](), list[Task]()
    seen = set[int]()  # ids of the batches of properties that layers share
    there = index.keys_of(layer.recording.segment for each in read for layer in each.layers)

    def task(each: ReadSource, layer: NewLayer | None = None, error: str | None = None) -> Task:
        url = url_of(each.source.url) if layer is None else layer.url
        segment = "" if layer is None else layer.recording.segment
        return Task(f"{task_prefix}-{len(tasks)}", url, each.source.layer, segment, error)

    for each in read:
        error = None if each.error is None else str(each.error)
        try:
            for layer in each.layers:
                columns.add(layer.recording.schema)
                if layer.properties is not None and id(layer.properties.batch) not in seen:
                    properties.add(layer.properties.batch.schema)
                    seen.add(id(layer.properties.batch))
        except InvalidInput as failure:
            error = f"{url_of(each.source.url)}: {failure}"
        if error is not None:
            tasks.append(task(each, error=error))
            continue
        for layer in each.layers:
            is_there = layer.key in there or layer.key in layers
            if is_there and on_duplicate is OnDuplicate.ERROR:
                raise AlreadyThere(
                    f"Layer '{layer.layer}' already exists",
                    where=f"segment {layer.recording.segment}",
                    remedy="register it as another layer",
                )
            if not is_there or on_duplicate is OnDuplicate.OVERWRITE:
                layers.pop(layer.key, None)
                layers[layer.key] = layer
            tasks.append(task(each, layer))
    return _Plan(tuple(layers.values()), tuple(tasks))
