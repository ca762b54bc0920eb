"""Finds the chunks that a query of a dataset needs, and makes the keys by which clients fetch them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from deployer.catalog.datasets.reads.chunk_index import ChunkIndex, Numbers, Places
from deployer.catalog.datasets.reads.index import DatasetIndex
from deployer.errors import InvalidInput, NotFound

_CONTROL = {"rerun:kind": "control"}

#: The columns of the answer to a query.
ANSWER = pa.schema(
    [
        pa.field("chunk_id", pa.binary(16), nullable=False, metadata=_CONTROL),
        pa.field("chunk_segment_id", pa.utf8(), nullable=False, metadata=_CONTROL),
        pa.field("rerun_segment_layer", pa.utf8(), nullable=False),
        pa.field("chunk_key", pa.binary(), nullable=False),
        pa.field("chunk_entity_path", pa.utf8(), nullable=False, metadata=_CONTROL),
        pa.field("chunk_is_static", pa.bool_(), nullable=False, metadata=_CONTROL),
        pa.field("chunk_byte_len", pa.uint64(), nullable=False),
    ]
)
KEY = struct.Struct(">16sqqq")  #: a chunk's key: dataset id, source, and the offset and length of its bytes
_KEYS = np.dtype([("dataset", "S16"), ("source", ">i8"), ("offset", ">i8"), ("length", ">i8")])


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The times of a timeline from `first` to `last`, both included, and the last values before `first`."""

    timeline: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ChunkQuery:
    """The request of a query. Empty `segments`, `entities` or `ranges` stand for all segments, entities or times.

    `static_alone` selects only static chunks, which have no timeline; `without_static` leaves them out.
    """

    segments: Sequence[str] = ()
    entities: Sequence[str] = ()
    ranges: Sequence[TimeRange] = ()
    static_alone: bool = False
    without_static: bool = False


def answer(index: DatasetIndex, places: Places) -> pa.Table:
    """Returns the answer to a query: a row of `ANSWER` for each of the chunks at `places`."""
    chunks = index.chunks
    layers = np.searchsorted(index.source_of_layer, chunks.sources[places])
    chosen = pa.array(places)
    rows = pa.array(layers)
    return pa.Table.from_arrays(
        [
            chunks.ids.take(chosen),
            index.layers["segment"].take(rows),
            index.layers["layer"].take(rows),
            _keys(index, chunks, places),
            chunks.entity_names.take(pa.array(chunks.entities[places])).cast(pa.utf8()),
            pa.array(chunks.static[places]),
            pa.array(chunks.sizes[places]).cast(pa.uint64()),
        ],
        schema=ANSWER,
    )


def needed(index: DatasetIndex, query: ChunkQuery) -> Places:
    """Returns the positions of the chunks that the query needs. Raises NotFound for a segment that does not exist."""
    chunks = index.chunks
    codes, _ = index.segment_codes
    if query.segments:
        numbers = []
        for name in query.segments:
            if name not in index.numbers:
                raise NotFound(
                    f"Segment '{name}' not found in dataset '{index.record.dataset_id}'", remedy="see segment_ids()"
                )
            numbers.append(index.numbers[name])
        places = chunks.of_sources(index.source_of_layer[np.flatnonzero(np.isin(codes, numbers))])
    else:
        places = np.arange(chunks.count)
    if query.entities:
        places = chunks.of_entities(places, list(query.entities))
    if query.static_alone:
        places = places[chunks.static[places]]
    elif query.ranges:
        places = _of_ranges(index, chunks, places, query.ranges)
    return places[~chunks.static[places]] if query.without_static else places


def _of_ranges(index: DatasetIndex, chunks: ChunkIndex, places: Places, ranges: Sequence[TimeRange]) -> Places:
    codes, _ = index.segment_codes
    segments: Numbers = codes[np.searchsorted(index.source_of_layer, chunks.sources[places])]
    found = [chunks.needed(places, segments, each.timeline, each.first, each.last) for each in ranges]
    return np.unique(np.concatenate(found))


def _keys(index: DatasetIndex, chunks: ChunkIndex, places: Places) -> pa.Array:
    keys = np.zeros(len(places), _KEYS)
    keys["dataset"] = bytes.fromhex(index.record.dataset_id)
    keys["source"], keys["offset"] = chunks.sources[places], chunks.offsets[places]
    keys["length"] = chunks.lengths[places]
    offsets = np.arange(len(places) + 1, dtype=np.int32) * KEY.size
    return pa.Array.from_buffers(pa.binary(), len(places), [None, pa.py_buffer(offsets), pa.py_buffer(keys.tobytes())])


class ChunkKey(NamedTuple):
    """The location of a chunk: a range of bytes in a source of a dataset."""

    dataset_id: str
    source: int
    offset: int
    length: int


def key_in(data: bytes) -> ChunkKey:
    """Returns the decoded key of a chunk. Raises InvalidInput for bytes of another length."""
    if len(data) != KEY.size:
        raise InvalidInput("a chunk_key is not one of this server", remedy="send the keys that QueryDataset gave")
    dataset, source, offset, length = KEY.unpack(data)
    return ChunkKey(dataset.hex(), source, offset, length)
