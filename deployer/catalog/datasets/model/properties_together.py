"""Reads the properties of small recordings in groups: most have the same columns and become rows of one batch.

The result for each recording is the same as that of `properties.properties_of`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError

from deployer.catalog.datasets.model.properties import ENTITY, Places, columns_of
from deployer.catalog.protocol.dataframes import payload_of
from deployer.catalog.protocol.messages import log_msg
from deployer.catalog.recordings.manifest import batch_after, head_of
from deployer.catalog.recordings.row_range import RowRange
from deployer.catalog.recordings.small_files import SmallRecording
from deployer.errors import InvalidInput

_CHUNK_ID = re.compile(rb"chunk_[0-9A-Fa-f]{32}")
_NO_ID = b"chunk_" + bytes(32)
_KEPT = 1024  #: most schemas of chunks in the cache


class _Unusual(Enum):
    UNUSUAL = "unusual"


UNUSUAL: Final = _Unusual.UNUSUAL  #: marks a recording whose properties `properties_of` must read
Properties = RowRange | None | Literal[_Unusual.UNUSUAL]


@dataclass(frozen=True, slots=True)
class _Shape:
    """The fields of a chunk without their metadata, and the columns of the chunk's properties."""

    fields: pa.Schema
    columns: Places


_SHAPES = dict[tuple[str, bytes], _Shape]()  #: by entity and the chunk's first message with its id masked


@dataclass(frozen=True, slots=True)
class _Place:
    """A chunk with properties: its entity and its range of bytes in a file."""

    entity: str
    offset: int
    length: int


def properties_together(files: Sequence[SmallRecording | None]) -> list[Properties]:
    """Returns the properties of each recording as one row. The result is None for a recording without properties, and
    `UNUSUAL` for a recording that has to be read by itself."""
    found: list[Properties] = [None if each is not None else UNUSUAL for each in files]
    alike = dict[tuple[int, ...], list[tuple[int, Sequence[tuple[_Shape, pa.RecordBatch]]]]]()
    for at, (each, places) in enumerate(zip(files, _places(files), strict=True)):
        if each is None or not places:
            continue
        chunks = _chunks(each.file.content, places)
        if chunks is None:
            found[at] = UNUSUAL
        else:
            alike.setdefault(tuple(id(shape) for shape, _ in chunks), []).append((at, chunks))
    for group in alike.values():
        try:
            batch = _joined([chunks for _, chunks in group])
        except (ValueError, KeyError, pa.ArrowException):
            batch = None
        for row, (at, _) in enumerate(group):
            found[at] = UNUSUAL if batch is None else RowRange(batch, row, 1)
    return found


def _places(files: Sequence[SmallRecording | None]) -> Iterator[Sequence[_Place]]:
    """Yields, for each file, its chunks with properties in their order."""
    known = dict[int, dict[int, _Place]]()
    for each in files:
        if each is None:
            yield ()
            continue
        rows = each.recording.rows
        places = known.get(id(rows.batch))
        if places is None:
            places = known[id(rows.batch)] = dict(_places_in(rows.batch))
        yield [places[row] for row in range(rows.start, rows.start + rows.count) if row in places]


def _places_in(manifests: pa.RecordBatch) -> Iterator[tuple[int, _Place]]:
    holding = pc.and_(manifests["chunk_is_static"], pc.starts_with(manifests["chunk_entity_path"], f"{ENTITY}/"))
    rows = np.flatnonzero(holding.to_numpy(zero_copy_only=False))
    columns = (manifests[name].take(pa.array(rows)).to_pylist() for name in _COLUMNS)
    for row, *values in zip(rows.tolist(), *columns, strict=True):
        yield row, _Place(*values)


_COLUMNS = ("chunk_entity_path", "chunk_byte_offset", "chunk_byte_size")


def _chunks(content: bytes, places: Sequence[_Place]) -> Sequence[tuple[_Shape, pa.RecordBatch]] | None:
    """Returns the one row of each chunk; None where a chunk has another number of rows or cannot be read here."""
    found = list[tuple[_Shape, pa.RecordBatch]]()
    try:
        for each in places:
            message = log_msg.ArrowMsg.FromString(content[each.offset : each.offset + each.length])
            payload = payload_of(message)
            head = head_of(payload)
            shape = None if head is None else _shape(each.entity, payload[:head])
            if head is None or shape is None:
                return None
            batch = batch_after(payload, head, shape.fields)
            if batch is None or batch.num_rows != 1:
                return None
            found.append((shape, batch))
    except (DecodeError, InvalidInput, ValueError, KeyError, OSError, pa.ArrowException):
        return None
    return found


def _shape(entity: str, head: bytes) -> _Shape | None:
    """Returns the shape that the first message of a chunk describes. The messages of similar chunks differ only in the
    chunk's id. Returns None for an unusual message."""
    masked, count = _CHUNK_ID.subn(_NO_ID, head)
    if count != 1:
        return None
    known = _SHAPES.get((entity, masked))
    if known is None:
        schema = pa.ipc.read_schema(pa.py_buffer(head))
        if not _CHUNK_ID.fullmatch((schema.metadata or {}).get(b"rerun:id", b"")):
            return None
        if any(_has_dictionary(field.type) for field in schema):
            return None
        if len(_SHAPES) >= _KEPT:
            _SHAPES.clear()
        fields = schema.remove_metadata()
        known = _SHAPES[entity, masked] = _Shape(fields, columns_of(fields, entity))
    return known


def _has_dictionary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind)) or any(
        _has_dictionary(kind.field(at).type) for at in range(kind.num_fields)
    )


def _joined(files: Sequence[Sequence[tuple[_Shape, pa.RecordBatch]]]) -> pa.RecordBatch | None:
    """Returns a row for each file; None where the chunks have no properties. The chunks of all files must have the same
    shapes.

    Raises pa.ArrowException for values that cannot be cast to their column's type.
    """
    values = dict[str, tuple[pa.Field, pa.Array]]()
    for chunks in zip(*files, strict=True):
        shape = chunks[0][0]
        rows = pa.Table.from_batches([batch for _, batch in chunks]).combine_chunks()
        for at, field in shape.columns:
            column = rows.column(at).combine_chunks()
            values[field.name] = field, column if column.type == field.type else column.cast(field.type)
    names = sorted(values)
    if not names:
        return None
    return pa.RecordBatch.from_arrays(
        [values[name][1] for name in names], schema=pa.schema([values[name][0] for name in names])
    )
