"""The content of a dataset, in memory: its layers, columns and chunks at one version, read from its tables."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock, RLock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deployer.catalog.datasets.model.properties import joined, unpacked_properties
from deployer.catalog.datasets.model.record import DatasetRecord, folder_of
from deployer.catalog.datasets.model.rows import CHUNKS, LAYERS, schema_of, schemas_in
from deployer.catalog.datasets.model.schemas import Columns
from deployer.catalog.datasets.reads.chunk_index import ChunkIndex
from deployer.datasets.files.named_rows import read_rows

PIECES = 64  #: of rows in memory, above which they are joined
KEPT = 64  #: datasets that are kept in memory


@dataclass
class DatasetIndex:
    """A dataset at the versions that its record names. Safe for threads: what is computed twice is the same.

    `rows` are the rows of all layers, those that others replaced included.
    """

    record: DatasetRecord
    root: str
    rows: pa.Table
    chunk_rows: pa.Table | None = None  #: as far as they were read
    known_properties: pa.Table | None = None  #: of the first rows, as far as they were unpacked
    _lock: RLock = field(default_factory=RLock)
    _made: dict[str, pa.Table] = field(default_factory=dict)

    @cached_property
    def live(self) -> npt.NDArray[np.int64]:
        """The places of the rows that no later one replaced, in the order of their sources."""
        segments, layers = (
            self.rows[name].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
            for name in ("segment", "layer")
        )
        keys = segments * (layers.max(initial=0) + 1) + layers
        _, from_end = np.unique(keys[::-1], return_index=True)
        return np.sort(len(keys) - 1 - from_end)

    @cached_property
    def layers(self) -> pa.Table:
        """The layers, in the order in which they were registered."""
        return self.rows.drop_columns(["schema", "properties"]).take(pa.array(self.live)).combine_chunks()

    def keys_of(self, segments: Iterable[str]) -> frozenset[tuple[str, str]]:
        """Returns the segment and name of each layer of some segments."""
        found = self.layers.filter(pc.is_in(self.layers["segment"], pa.array(set(segments), pa.utf8())))
        return frozenset(zip(found["segment"].to_pylist(), found["layer"].to_pylist(), strict=True))

    def remembered(self, name: str, make: Callable[[], pa.Table]) -> pa.Table:
        """Returns a table that is made of this once."""
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
            return self._made[name]

    @cached_property
    def schema_numbers(self) -> dict[bytes, int]:
        """The schemas (IPC) of all rows, and the sources whose rows hold them."""
        return schemas_in(self.rows)

    @cached_property
    def columns(self) -> Columns:
        """The columns of all layers. Not to be changed."""
        known = {number: data for data, number in self.schema_numbers.items()}
        used = pc.unique(self.layers["schema_number"]).to_pylist()
        return Columns(schema_of(known[number]) for number in used)

    @cached_property
    def schema(self) -> pa.Schema:
        return self.columns.schema()

    @cached_property
    def all_properties(self) -> pa.Table:
        """A row for each of `rows` with its properties, and a column `_`."""
        have = 0 if self.known_properties is None else self.known_properties.num_rows
        packed = self.rows["properties"].slice(have).drop_null().to_pylist()
        known = [] if self.known_properties is None else [self.known_properties]
        return joined([*known, *map(unpacked_properties, packed)]).combine_chunks()

    @property
    def unpacked(self) -> pa.Table | None:
        """The properties of the first rows, as far as they were unpacked."""
        found: pa.Table | None = self.__dict__.get("all_properties", self.known_properties)
        return found

    @cached_property
    def properties(self) -> pa.Table:
        """A row for each of `layers` with its properties, and their columns."""
        found = self.all_properties
        return found.take(pa.array(self.live)).drop_columns(["_"]) if found.num_columns > 1 else found.select([])

    @cached_property
    def source_of_layer(self) -> npt.NDArray[np.int64]:
        """The source of each layer, ascending."""
        sources: npt.NDArray[np.int64] = self.layers["source"].to_numpy()
        return sources

    @cached_property
    def files(self) -> tuple[pa.Array, pa.Array, pa.Array]:
        """The URL, size and tag of the file of each layer."""
        url, size, tag = (self.layers[name].combine_chunks() for name in ("url", "size", "tag"))
        return url, size, tag

    @cached_property
    def segment_codes(self) -> tuple[npt.NDArray[np.int64], pa.Array]:
        """The number of each layer's segment, and the segments in the order in which they came."""
        codes = self.layers["segment"].combine_chunks().dictionary_encode()
        return codes.indices.to_numpy().astype(np.int64), codes.dictionary

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each segment, by its id."""
        return {name: number for number, name in enumerate(self.segment_codes[1].to_pylist())}

    @property
    def chunks(self) -> ChunkIndex:
        """The chunks of all layers."""
        with self._lock:
            return self._chunks

    @cached_property
    def _chunks(self) -> ChunkIndex:
        have = 0 if self.chunk_rows is None else self.chunk_rows.num_rows
        wanted = self.record.chunks
        if have < wanted.rows:
            more = read_rows(f"{folder_of(self.root, self.record.dataset_id)}/chunks.lance", wanted.named, have)
            parts = [each for each in (self.chunk_rows, more) if each is not None]
            self.chunk_rows = pa.concat_tables([each.cast(CHUNKS) for each in parts])
        rows = CHUNKS.empty_table() if self.chunk_rows is None else self.chunk_rows
        if len(self.live) < self.rows.num_rows:
            rows = rows.filter(pc.is_in(rows["source"], pa.array(self.source_of_layer)))
        return ChunkIndex(rows)


class Indexes:
    """The newest of what datasets hold, for the instance at `root`. Only what came since is read. Safe for threads."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._kept = OrderedDict[str, DatasetIndex]()
        self._lock = Lock()

    def of(self, record: DatasetRecord) -> DatasetIndex:
        """Returns what the dataset holds at the versions of the record."""
        with self._lock:
            kept = self._kept.get(record.dataset_id)
        if kept is not None and (kept.record.created_at, kept.record.restored) != (record.created_at, record.restored):
            kept = None  # a dataset that was deleted had the same id, or it was restored
        if kept is not None and (kept.record.layers, kept.record.chunks) == (record.layers, record.chunks):
            return kept
        found = self._read(record, kept)
        self._keep(found)
        return found

    def grown(self, index: DatasetIndex, record: DatasetRecord, layers: pa.Table, chunks: pa.Table) -> None:
        """Notes what the dataset holds at the versions of `record`: what it held before, and these rows."""
        known = CHUNKS.empty_table() if index.chunk_rows is None else index.chunk_rows
        if known.num_rows == index.record.chunks.rows:  # else only the first rows were read
            known = _joined(known, chunks)
        self._keep(DatasetIndex(record, self._root, _joined(index.rows, layers), known, index.unpacked))

    def _keep(self, found: DatasetIndex) -> None:
        with self._lock:
            self._kept[found.record.dataset_id] = found
            self._kept.move_to_end(found.record.dataset_id)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)

    def _read(self, record: DatasetRecord, kept: DatasetIndex | None) -> DatasetIndex:
        if kept is None or kept.record.layers.rows > record.layers.rows:
            kept = DatasetIndex(record, self._root, LAYERS.empty_table())
        location = f"{folder_of(self._root, record.dataset_id)}/layers.lance"
        rows = kept.rows
        if rows.num_rows < record.layers.rows:
            more = read_rows(location, record.layers.named, rows.num_rows)
            if more is not None:
                rows = _joined(rows, more.cast(LAYERS))
        return DatasetIndex(record, self._root, rows, kept.chunk_rows, kept.unpacked)


def _joined(rows: pa.Table, more: pa.Table) -> pa.Table:
    """Returns all rows, in few pieces."""
    found = pa.concat_tables([rows, more])
    return found.combine_chunks() if found["source"].num_chunks > PIECES else found
