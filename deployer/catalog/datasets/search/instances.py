"""Reads the instances of a component: its values in chunks, as one row each, with their time on the index's
timeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError

from deployer.catalog.datasets.reads.fetching import chunks_of_source
from deployer.catalog.datasets.reads.index import DatasetIndex
from deployer.catalog.datasets.reads.query import ChunkKey
from deployer.catalog.protocol.dataframes import rows_in
from deployer.catalog.protocol.messages import log_msg
from deployer.catalog.recordings.recording import component_of
from deployer.errors import InvalidInput, NotFound

SearchKind = Literal["text", "vector"]


def instances(
    index: DatasetIndex, sources: Sequence[int], entity: str, component: str, timeline: str, kind: SearchKind
) -> pa.Table | None:
    """Returns the instances in the chunks of some sources; None where there are none.

    Raises InvalidInput for values that are not of `kind`: texts, or vectors of one length.
    """
    found = [
        rows
        for source in sources
        for rows in _of_source(index, source, entity, component, timeline, kind)
        if rows.num_rows
    ]
    if not found:
        return None
    if len({each.schema.field("instance").type for each in found}) > 1:
        raise InvalidInput(
            f"the vectors of {entity}:{component} have several lengths", remedy="choose a component of one length"
        )
    return pa.concat_tables(found).combine_chunks()


def _of_source(
    index: DatasetIndex, source: int, entity: str, component: str, timeline: str, kind: SearchKind
) -> Iterator[pa.Table]:
    chunks = index.chunks
    places = chunks.of_entities(chunks.of_sources(np.array([source])), [entity])
    places = places[~chunks.static[places]]
    keys = [
        ChunkKey(index.record.dataset_id, source, int(chunks.offsets[place]), int(chunks.lengths[place]))
        for place in places
    ]
    layer = int(np.searchsorted(index.source_of_layer, source))
    segment, name = (index.layers[column][layer].as_py() for column in ("segment", "layer"))
    messages = (each for run in chunks_of_source(index, source, keys) for each in run)
    for place, message in zip(places, messages, strict=True):
        try:
            batches = list(rows_in(log_msg.ArrowMsg.FromString(bytes(message))))
        except DecodeError:
            raise InvalidInput("a chunk is not rows", where=f"segment {segment}", remedy="record it again") from None
        chunk_id = chunks.ids[int(place)].as_py()
        for batch in batches:
            rows = _of_chunk(batch, component, timeline, kind)
            if rows is not None:
                about = (pa.array([segment], pa.utf8()), pa.array([name], pa.utf8()))
                yield _rows(rows, about, chunk_id, source)


def _of_chunk(
    batch: pa.RecordBatch, component: str, timeline: str, kind: SearchKind
) -> tuple[pa.Array, pa.Array, pa.Array] | None:
    """Returns the times, numbers and values of the instances of one chunk; None where it has none."""
    at = batch.schema.get_field_index(timeline)
    column = next((place for place, field in enumerate(batch.schema) if _holds(field, component)), None)
    if at < 0 or column is None:
        return None
    values, times = batch.column(column), batch.column(at)
    if not pa.types.is_list(values.type):
        raise _not_searchable(component, values.type, kind)
    item = values.type.value_type
    if kind == "vector" and _is_number(item):  # each row of the component is one vector
        given = values.is_valid()
        values, times = values.filter(given), times.filter(given)
        return times, pa.array(np.zeros(len(values), np.uint32)), _vectors(values, component)
    parents = pc.list_parent_indices(values).to_numpy()
    starts = np.searchsorted(parents, parents)  # the first instance of the same row
    numbers = pa.array((np.arange(len(parents)) - starts).astype(np.uint32))
    flat = values.flatten()
    if kind == "vector":
        if not pa.types.is_fixed_size_list(item) or not _is_number(item.value_type):
            raise _not_searchable(component, item, kind)
        flat = flat.cast(pa.list_(pa.float32(), item.list_size))
    elif pa.types.is_string(item) or pa.types.is_large_string(item):
        flat = flat.cast(pa.utf8())
    else:
        raise _not_searchable(component, item, kind)
    rows = times.take(pa.array(parents)), numbers, flat
    given = flat.is_valid()
    times, numbers, flat = (each.filter(given) for each in rows)
    return times, numbers, flat


def _holds(field: pa.Field, component: str) -> bool:
    return (field.metadata or {}).get(b"rerun:kind") == b"data" and component_of(field) == component


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _vectors(values: pa.ListArray, component: str) -> pa.Array:
    """Returns lists of numbers as vectors. Raises InvalidInput for lists of different lengths, and for empty lists."""
    lengths = np.diff(values.offsets.to_numpy())
    if len(set(lengths.tolist())) > 1:
        raise InvalidInput(f"the vectors of {component} have several lengths", remedy="choose vectors of one length")
    length = int(lengths[0]) if len(lengths) else 1
    if not length:
        raise InvalidInput(f"the vectors of {component} are empty", remedy="choose a component with vectors")
    return pa.FixedSizeListArray.from_arrays(values.flatten().cast(pa.float32()), length)


def _not_searchable(component: str, kind: pa.DataType, wanted: SearchKind) -> InvalidInput:
    what = "texts" if wanted == "text" else "vectors"
    return InvalidInput(f"the values of {component} are {kind}, and not {what}", remedy=f"choose a component of {what}")


def _rows(
    found: tuple[pa.Array, pa.Array, pa.Array], about: tuple[pa.Array, pa.Array], chunk_id: bytes, source: int
) -> pa.Table:
    times, numbers, values = found
    first = pa.array(np.zeros(len(values), np.int64))
    segment, layer = (each.take(first) for each in about)
    ids = pa.array([chunk_id], pa.binary(16)).take(first)
    return pa.table(
        {
            "rerun_segment_id": segment,
            "rerun_segment_layer": layer,
            "chunk_id": ids,
            "timepoint": times,
            "instance_id": numbers,
            "instance": values,
            "source": pa.array(np.full(len(values), source, np.int64)),
        }
    )


def no_instances(entity: str, component: str, timeline: str) -> NotFound:
    """Returns the error for a component that has no value at any time of the timeline."""
    return NotFound(
        f"no value of {entity}:{component} has a time of the index {timeline}",
        remedy="name a component and an index that the schema lists",
    )
