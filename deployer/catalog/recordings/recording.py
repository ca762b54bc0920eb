"""Reads the recordings of one file: their chunks with byte ranges, and their columns.

The source is the manifest in the file's footer, which has one row for each chunk. In a file without a footer, the
messages are read instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError

from deployer.catalog.protocol.dataframes import rows_in, schema_message
from deployer.catalog.protocol.messages import log_msg
from deployer.catalog.recordings.frames import CHUNK, MESSAGE_HEADER, frames, read_footer, require_recording
from deployer.catalog.recordings.manifest import columns_in, manifest_in
from deployer.catalog.recordings.row_range import RowRange
from deployer.catalog.recordings.source import ByteSource
from deployer.errors import InvalidInput

SHA256 = 32  #: bytes of a hash
LARGEST = 1 << 62  #: limit of the total size, in bytes, that a manifest states for the chunks of a recording
RECORDING, BLUEPRINT = 1, 2  #: kinds of stores; a blueprint describes how a viewer shows recordings

#: The columns of a manifest that describe a chunk, without the columns of its timelines and components.
_CHUNK_FIELDS = (
    pa.field("chunk_entity_path", pa.utf8()),
    pa.field("chunk_id", pa.binary(16)),
    pa.field("chunk_is_static", pa.bool_()),
    pa.field("chunk_num_rows", pa.uint64()),
    pa.field("chunk_byte_offset", pa.uint64()),
    pa.field("chunk_byte_size", pa.uint64()),
    pa.field("chunk_byte_size_uncompressed", pa.uint64()),
)


@dataclass(frozen=True, slots=True)
class TimelineRange:
    """A timeline with its first and last time, as numbers of the timeline's type."""

    name: str
    type: pa.DataType
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Recording:
    """One recording of a file. `rows` has one row for each chunk, `size` is the number of uncompressed bytes of all
    chunks, and `schema` has the columns of the recording.

    Offsets and sizes in the rows are those of the payloads of messages (see `frames.Frame`); they lie within the file.
    `schema_sha256` identifies the schema.
    """

    segment: str
    rows: RowRange
    size: int
    schema: pa.Schema
    schema_sha256: bytes

    @staticmethod
    def of(segment: str, manifest: pa.RecordBatch, schema: pa.Schema, schema_sha256: bytes) -> Recording:
        size = sum(manifest["chunk_byte_size_uncompressed"].to_pylist())
        return Recording(segment, RowRange.of(manifest), size, schema, schema_sha256)

    @property
    def manifest(self) -> pa.RecordBatch:
        return self.rows.rows

    @property
    def chunks(self) -> int:
        return self.rows.count

    @property
    def entities(self) -> list[str]:
        """The paths of the recording's entities, in alphabetical order."""
        return sorted(set(self.manifest["chunk_entity_path"].to_pylist()))

    def timelines(self) -> Iterator[TimelineRange]:
        """Yields the timelines with their ranges, in the order of the manifest."""
        for field in self.manifest.schema:
            if not field.name.endswith(":start") or set(field.metadata or {}) != {b"rerun:index"}:
                continue
            name = field.name.removesuffix(":start")
            first = pc.min(self.manifest[field.name].cast(pa.int64())).as_py()
            last = pc.max(self.manifest[f"{name}:end"].cast(pa.int64())).as_py()
            if first is not None and last is not None:
                yield TimelineRange(name, field.type, first, last)


def read_recordings(source: ByteSource, kind: int = RECORDING) -> list[Recording]:
    """Returns the stores of a file that have the kind `kind`: its recordings, or its blueprints.

    Raises InvalidInput for a file that is not a recording, is truncated or is damaged.
    """
    require_recording(source)
    footer = read_footer(source)
    try:
        if footer is None:
            return _scanned(source, kind)
        return list(_of_footer(log_msg.RrdFooter.FromString(footer.payload), footer.start, source, kind))
    except (DecodeError, KeyError, ValueError, pa.ArrowException) as failure:
        raise _damaged(source, str(failure)) from None


def _of_footer(footer: Any, end: int, source: ByteSource, kind: int) -> Iterator[Recording]:
    for each in footer.manifests:
        if each.store_id.kind != kind:
            continue
        batch = manifest_in(each.data)
        _require_within(batch, end, source)
        schema = columns_in(each.sorbet_schema.arrow_schema, each.sorbet_schema_sha256)
        yield Recording.of(each.store_id.recording_id, batch, schema, each.sorbet_schema_sha256)


def lacked_field(manifest: pa.RecordBatch) -> str | None:
    """Returns the name of the first column of `_CHUNK_FIELDS` that the manifest lacks, or that has another type or
    nulls; None where all columns are valid."""
    schema = manifest.schema
    for field in _CHUNK_FIELDS:
        found = schema.get_field_index(field.name)
        if found < 0 or (column := manifest.column(found)).type != field.type or column.null_count:
            return str(field.name)
    return None


def _require_within(manifest: pa.RecordBatch, end: int, source: ByteSource) -> None:
    """Raises InvalidInput for a manifest that lacks a column, and for chunks that do not lie before byte `end`."""
    if (lacked := lacked_field(manifest)) is not None:
        raise _damaged(source, f"its footer lacks {lacked}")
    offsets, sizes = (manifest[name].to_pylist() for name in ("chunk_byte_offset", "chunk_byte_size"))
    for first, size in zip(offsets, sizes, strict=True):  # most files have few chunks: arrays would be slower
        if not MESSAGE_HEADER <= first <= first + size <= end:
            raise _damaged(source, f"its footer names bytes {first:,} to {first + size:,}, which do not hold a chunk")


@dataclass(frozen=True)
class _Chunk:
    """A chunk that a scan found. `rows` are its decoded rows."""

    offset: int
    length: int
    size: int
    rows: pa.RecordBatch

    @property
    def entity(self) -> str:
        return bytes(self.rows.schema.metadata[b"rerun:entity_path"]).decode()

    @property
    def chunk_id(self) -> bytes:
        return bytes.fromhex(self.rows.schema.metadata[b"rerun:id"].decode().removeprefix("chunk_"))

    @property
    def indexes(self) -> list[pa.Field]:
        """The fields of the chunk's timelines; a static chunk has no timelines."""
        return [field for field in self.rows.schema if (field.metadata or {}).get(b"rerun:kind") == b"index"]

    @cached_property
    def last(self) -> dict[tuple[str, str], int]:
        """The last time at which a component has a value, by timeline and component."""
        found = {}
        for at, field in enumerate(self.rows.schema):
            if (field.metadata or {}).get(b"rerun:kind") != b"data":
                continue
            for timeline in self.indexes:
                times = self.rows[timeline.name].cast(pa.int64()).filter(self.rows.column(at).is_valid())
                if (last := pc.max(times).as_py()) is not None:
                    found[timeline.name, component_of(field)] = last
        return found


def _scanned(source: ByteSource, kind: int) -> list[Recording]:
    """Reads all chunks of a file, and returns the recordings that a footer would describe."""
    found = dict[str, list[_Chunk]]()
    for frame in frames(source):
        if frame.kind != CHUNK:
            continue
        message = log_msg.ArrowMsg.FromString(source.read(frame.offset, frame.length))
        if message.store_id.kind == kind:
            chunks = found.setdefault(message.store_id.recording_id, [])
            size = message.uncompressed_size or len(message.payload)
            chunks += [_Chunk(frame.offset, frame.length, size, rows) for rows in rows_in(message)]
    return [_recording(segment, chunks) for segment, chunks in found.items()]


def _recording(segment: str, chunks: Sequence[_Chunk]) -> Recording:
    columns: list[list[Any]] = [
        [each.entity for each in chunks],
        [each.chunk_id for each in chunks],
        [not each.indexes for each in chunks],
        [each.rows.num_rows for each in chunks],
        [each.offset for each in chunks],
        [each.length for each in chunks],
        [each.size for each in chunks],
    ]
    fields = list(_CHUNK_FIELDS)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)]
    for name, kind in {field.name: field.type for each in chunks for field in each.indexes}.items():
        for side in ("min", "max"):
            bounds = pa.array([_bound(each.rows, name, side) for each in chunks], pa.int64())
            suffix = "start" if side == "min" else "end"
            fields.append(pa.field(f"{name}:{suffix}", kind, metadata={"rerun:index": name}))
            arrays.append(bounds.cast(kind))
    for timeline, component in dict.fromkeys(pair for each in chunks for pair in each.last):
        times = pa.array([each.last.get((timeline, component)) for each in chunks], pa.int64())
        names = {"rerun:index": timeline, "rerun:component": component}
        fields.append(pa.field(f"{timeline}:{component}:end", pa.int64(), metadata=names))
        arrays.append(times)
    manifest = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
    schema = _schema(chunks)
    return Recording.of(segment, manifest, schema, hashlib.sha256(schema_message(schema).arrow_schema).digest())


def _bound(rows: pa.RecordBatch, timeline: str, side: str) -> int | None:
    if rows.schema.get_field_index(timeline) < 0:
        return None
    found: int | None = pc.min_max(rows[timeline].cast(pa.int64()))[side].as_py()
    return found


def _schema(chunks: Sequence[_Chunk]) -> pa.Schema:
    """Returns the columns of all chunks in this order: the row id, the timelines, and the components by name."""
    fields = dict[str, pa.Field]()
    for each in chunks:
        for field in each.rows.schema:
            column = _column(field, each)
            fields.setdefault(column.name, column)
    return pa.schema(sorted(fields.values(), key=lambda field: (_rank(field), field.name)))


def _column(field: pa.Field, chunk: _Chunk) -> pa.Field:
    """Returns the column of the recording that a field of a chunk belongs to."""
    metadata = {key: value for key, value in (field.metadata or {}).items() if key != b"rerun:is_sorted"}
    if metadata.get(b"rerun:kind") != b"data":
        return field.with_metadata(metadata)
    metadata[b"rerun:entity_path"] = chunk.entity.encode()
    if not chunk.indexes:
        metadata[b"rerun:is_static"] = b"true"
    component = component_of(field)
    place = chunk.entity
    if place == "/__properties" or place.startswith("/__properties/"):
        place = f"property:{place.removeprefix('/__properties').strip('/')}".rstrip(":")
    return pa.field(f"{place}:{component}", field.type, field.nullable, metadata)


def component_of(field: pa.Field) -> str:
    """Returns the name of the component whose values a field of a chunk has."""
    return bytes((field.metadata or {}).get(b"rerun:component", field.name.encode())).decode()


def _rank(field: pa.Field) -> int:
    return {b"control": 0, b"index": 1}.get((field.metadata or {}).get(b"rerun:kind", b""), 2)


def _damaged(source: ByteSource, why: str) -> InvalidInput:
    return InvalidInput(f"the file is damaged: {why}", where=source.url, remedy="copy or record it again")
