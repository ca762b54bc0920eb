"""The content of a dataset in memory: its layers, columns and chunks at one version, read from its tables."""

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

PIECES = 64  #: most Arrow chunks of rows in memory; more are combined into one
KEPT = 64  #: most datasets in memory


@dataclass
class DatasetIndex:
    """A dataset at the versions that its record names.

    `rows` are the rows of all layers, including replaced layers. Safe for threads: two threads may compute a value
    twice, with the same result.
    """

    record: DatasetRecord
    root: str
    rows: pa.Table
    chunk_rows: pa.Table | None = None  #: the rows of chunks that have been read: the first ones, or all
    known_properties: pa.Table | None = None  #: the properties of the first rows, as far as they were decoded
    _lock: RLock = field(default_factory=RLock)
    _made: dict[str, pa.Table] = field(default_factory=dict)

    @cached_property
    def live(self) -> npt.NDArray[np.int64]:
        """The positions of the rows that no later row replaced, in the order of their sources."""
        segments, layers = (
            self.rows[name].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
            for name in ("segment", "layer")
        )
        keys = segments * (layers.max(initial=0) + 1) + layers
        _, from_end = np.unique(keys[::-1], return_index=True)
        return np.sort(len(keys) - 1 - from_end)

    @cached_property
    def layers(self) -> pa.Table:
        """The layers that were not replaced, in the order of their registration."""
        return self.rows.drop_columns(["schema", "properties"]).take(pa.array(self.live)).combine_chunks()

    def keys_of(self, segments: Iterable[str]) -> frozenset[tuple[str, str]]:
        """Returns the segment and name of each layer of some segments."""
        found = self.layers.filter(pc.is_in(self.layers["segment"], pa.array(set(segments), pa.utf8())))
        return frozenset(zip(found["segment"].to_pylist(), found["layer"].to_pylist(), strict=True))

    def remembered(self, name: str, make: Callable[[], pa.Table]) -> pa.Table:
        """Returns the table `name`; the first call makes it with `make`, and later calls return the same table."""
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
            return self._made[name]

    @cached_property
    def schema_numbers(self) -> dict[bytes, int]:
        """The sources of the rows that have a schema, by the schema's IPC bytes."""
        return schemas_in(self.rows)

    @cached_property
    def columns(self) -> Columns:
        """The columns of all layers. Callers must not change them."""
        known = {number: data for data, number in self.schema_numbers.items()}
        used = pc.unique(self.layers["schema_number"]).to_pylist()
        return Columns(schema_of(known[number]) for number in used)

    @cached_property
    def schema(self) -> pa.Schema:
        return self.columns.schema()

    @cached_property
    def all_properties(self) -> pa.Table:
        """The properties of each of `rows`, one row each, and the column `_`."""
        have = 0 if self.known_properties is None else self.known_properties.num_rows
        packed = self.rows["properties"].slice(have).drop_null().to_pylist()
        known = [] if self.known_properties is None else [self.known_properties]
        return joined([*known, *map(unpacked_properties, packed)]).combine_chunks()

    @property
    def unpacked(self) -> pa.Table | None:
        """The properties of the first rows, as far as they were decoded; None where none were."""
        found: pa.Table | None = self.__dict__.get("all_properties", self.known_properties)
        return found

    @cached_property
    def properties(self) -> pa.Table:
        """The properties of each of `layers`, one row each."""
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
        """The number of each layer's segment, and the segments in the order of their first registration."""
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
    """A cache of the newest content of datasets, for the instance at `root`. A newer version reads only the new rows.
    Safe for threads."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._kept = OrderedDict[str, DatasetIndex]()
        self._lock = Lock()

    def of(self, record: DatasetRecord) -> DatasetIndex:
        """Returns the content of the dataset at the versions of its record."""
        with self._lock:
            kept = self._kept.get(record.dataset_id)
        if kept is not None and (kept.record.created_at, kept.record.restored) != (record.created_at, record.restored):
            kept = None  # the dataset was restored, or it has the id of a deleted dataset
        if kept is not None and (kept.record.layers, kept.record.chunks) == (record.layers, record.chunks):
            return kept
        found = self._read(record, kept)
        self._keep(found)
        return found

    def grown(self, index: DatasetIndex, record: DatasetRecord, layers: pa.Table, chunks: pa.Table) -> None:
        """Caches the content of the dataset at the versions of `record`: the content of `index` and the given new
        rows."""
        known = CHUNKS.empty_table() if index.chunk_rows is None else index.chunk_rows
        if known.num_rows == index.record.chunks.rows:  # otherwise only the first rows were read
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
    """Returns the rows of both tables, in at most `PIECES` Arrow chunks."""
    found = pa.concat_tables([rows, more])
    return found.combine_chunks() if found["source"].num_chunks > PIECES else found
