"""Facts of datasets of recordings for the pages: those that specs declare, and those that clients made."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from deployer.catalog.datasets.declared.live import live_of
from deployer.catalog.datasets.model.record import DatasetRecord, id_of_name, record_of, records_of
from deployer.catalog.datasets.reads.index import DatasetIndex, Indexes
from deployer.catalog.datasets.upkeep import maintenance_runs
from deployer.errors import DeployerError, NotFound
from deployer.specs.yaml.suggestions import nearest
from deployer.state.model.services import Run
from deployer.state.reader import StateReader

PAGE = 100  #: datasets, or segments, of one page
_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class DatasetSummary:
    """The size of a dataset. `bytes` are those of its files; `registered_at` is when the last layer was registered,
    in milliseconds since 1970, and None where there is none."""

    segments: int
    layers: int
    bytes: int
    registered_at: int | None


@dataclass(frozen=True, slots=True)
class DatasetLine:
    """One dataset of the list: `summary` is None where it cannot be read, and `problem` says why. `run` is the newest
    run of its maintenance."""

    name: str
    manager: str
    summary: DatasetSummary | None
    problem: str = ""
    run: Run | None = None


@dataclass(frozen=True, slots=True)
class DatasetList:
    """A page of datasets: `datasets` of `found`, from number `first`."""

    datasets: tuple[DatasetLine, ...]
    found: int
    first: int


@dataclass(frozen=True, slots=True)
class SegmentLine:
    """A segment with its layers."""

    name: str
    layers: tuple[str, ...]
    chunks: int
    bytes: int
    registered_at: int


@dataclass(frozen=True, slots=True)
class OpenedDataset:
    """A dataset with a page of its segments: `lines` of `found` whose name has the words, from number `first`."""

    name: str
    dataset_id: str
    manager: str
    description: str
    summary: DatasetSummary
    sources: tuple[str, ...]
    searches: tuple[str, ...]
    blueprint: str
    retention: str
    services: tuple[str, ...]
    lines: tuple[SegmentLine, ...]
    found: int
    first: int
    runs: tuple[Run, ...]


@dataclass
class DatasetsView:
    """The datasets of one lake, for several threads. Reads through `store`, and writes nothing. Read data of a dataset
    is cached, and only newer data is read again."""

    store: StateReader
    root: str
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self._indexes = Indexes(self.root)
        self._segments = dict[str, tuple[DatasetRecord, pa.Table]]()

    def prepare(self) -> None:
        """Reads the data for the first page, so that it is as fast as later ones. Pages report failures."""
        with suppress(DeployerError):
            self.datasets()

    def datasets(self, words: str = "", first: int = 0) -> DatasetList:
        """Returns the datasets by name whose name has `words`, `PAGE` of them from number `first`."""
        found = [
            each
            for each in records_of(self.store.instance())
            if each.kind == "dataset" and words.lower() in each.name.lower()
        ]
        found.sort(key=lambda each: each.name)
        return DatasetList(tuple(map(self._line, found[first : first + PAGE])), len(found), first)

    def _line(self, record: DatasetRecord) -> DatasetLine:
        try:
            manager = live_of(record).owner
            runs = self.runs_of(record)
            return DatasetLine(record.name, manager, _summary(self._indexes.of(record)), run=runs[0] if runs else None)
        except DeployerError as error:
            return DatasetLine(record.name, "", None, str(error))

    def dataset(self, name: str, words: str = "", first: int = 0) -> OpenedDataset:
        """Returns a dataset with the segments whose name has `words`. Raises NotFound with the nearest name."""
        record = self._record(name)
        live, index = live_of(record), self._indexes.of(record)
        spec = live.spec
        lines = self._lines(record, index)
        if words:
            lines = lines.filter(pc.match_substring(lines["segment"], words, ignore_case=True))
        return OpenedDataset(
            name=record.name,
            dataset_id=record.dataset_id,
            manager=live.owner,
            description=spec.description,
            summary=_summary(index),
            sources=tuple(f"{each.prefix} (layer {each.layer})" for each in spec.recordings),
            searches=tuple(f"{each.column} ({each.kind} by {each.timeline})" for each in spec.search_indexes),
            blueprint=spec.default_blueprint.file if spec.default_blueprint else "",
            retention=spec.retention or "",
            services=tuple(f"{each.name} ({each.schedule})" for each in spec.services),
            lines=tuple(_segment_lines(lines.slice(first, PAGE))),
            found=lines.num_rows,
            first=first,
            runs=tuple(self.runs_of(record)),
        )

    def runs(self, name: str) -> Sequence[Run]:
        """Returns the runs of a dataset's maintenance, the newest first. Raises as `dataset` does."""
        return self.runs_of(self._record(name))

    def runs_of(self, record: DatasetRecord) -> Sequence[Run]:
        return maintenance_runs(self.store, record)

    def _record(self, name: str) -> DatasetRecord:
        instance = self.store.instance()
        dataset_id = id_of_name(instance, name)
        record = None if dataset_id is None else record_of(instance, dataset_id)
        if record is None or record.kind != "dataset":
            near = nearest(name, [each.name for each in records_of(instance) if each.kind == "dataset"])
            remedy = f"did you mean {near!r}?" if near else "choose one of the page of datasets"
            raise NotFound(f"there is no dataset {name!r}", remedy=remedy)
        return record

    def _lines(self, record: DatasetRecord, index: DatasetIndex) -> pa.Table:
        """Returns a row for each segment, by name; it is computed once for each version of the layers."""
        with self._lock:
            kept = self._segments.get(record.dataset_id)
            if kept is not None and kept[0].layers == record.layers and kept[0].created_at == record.created_at:
                return kept[1]
        wanted = [("layer", "list"), ("chunks", "sum"), ("size", "sum"), ("registered_at", "max")]
        found = index.layers.group_by("segment", use_threads=False).aggregate(wanted).sort_by("segment")
        with self._lock:
            self._segments[record.dataset_id] = record, found
        return found


def _summary(index: DatasetIndex) -> DatasetSummary:
    layers = index.layers
    last = pc.max(layers["registered_at"]).as_py()
    return DatasetSummary(
        len(index.segment_codes[1]),
        layers.num_rows,
        pc.sum(layers["size"]).as_py() or 0,
        None if last is None else last // _NS_PER_MS,
    )


def _segment_lines(rows: pa.Table) -> Sequence[SegmentLine]:
    return [
        SegmentLine(
            each["segment"],
            tuple(sorted(each["layer_list"])),
            each["chunks_sum"],
            each["size_sum"],
            each["registered_at_max"] // _NS_PER_MS,
        )
        for each in rows.to_pylist()
    ]
