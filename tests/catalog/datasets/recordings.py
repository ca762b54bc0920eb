"""Recordings for tests, written as rerun-sdk 0.28 writes them: chunks of Arrow, and a footer where they are closed."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import xxhash

from deployer.catalog.protocol.dataframes import schema_message
from deployer.catalog.protocol.messages import log_msg
from deployer.catalog.recordings.frames import CHUNK, END
from deployer.catalog.recordings.recording import BLUEPRINT, RECORDING, read_recordings
from deployer.catalog.recordings.source import open_source

_HEADER = b"RRF2" + bytes((0, 28, 2, 0)) + bytes((0, 2, 0, 0))
_SEED = 7850921


@dataclass(frozen=True)
class Chunk:
    """Rows of one entity. `times` has the time of each row, by timeline; none for static rows. `values` has, for each
    component, a list for each row, or None."""

    entity: str
    values: Mapping[str, Sequence[list[Any] | None]]
    times: Mapping[str, Sequence[int]] = field(default_factory=dict)
    types: Mapping[str, pa.DataType] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return len(next(iter(self.values.values())))

    def batch(self, number: int) -> pa.RecordBatch:
        """The chunk; `number` makes its id and those of its rows."""
        ids = [struct.pack(">QQ", number, row) for row in range(self.rows)]
        about = {"rerun:kind": "control"}
        fields, arrays = [pa.field("rerun.controls.RowId", pa.binary(16), False, about)], [pa.array(ids, pa.binary(16))]
        for name, times in self.times.items():
            fields.append(pa.field(name, pa.int64(), True, {"rerun:kind": "index", "rerun:index_name": name}))
            arrays.append(pa.array(times, pa.int64()))
        for name, values in self.values.items():
            about = {"rerun:kind": "data", "rerun:component": name}
            if ":" in name:
                about["rerun:archetype"] = f"rerun.archetypes.{name.partition(':')[0]}"
            array = pa.array(values, pa.list_(self.types.get(name, pa.float64())))
            fields.append(pa.field(name, array.type, True, about))
            arrays.append(array)
        metadata = {"rerun:id": f"chunk_{number:032x}", "rerun:entity_path": self.entity, "sorbet:version": "0.1.2"}
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, metadata))


def write_recording(
    path: Path, segment: str, chunks: Sequence[Chunk], *, closed: bool = True, blueprint: bool = False, first: int = 1
) -> Path:
    """Writes a recording. Its chunks are numbered from `first` on."""
    kind = BLUEPRINT if blueprint else RECORDING
    data = bytearray(_HEADER)
    for number, chunk in enumerate(chunks, first):
        batch = chunk.batch(number)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        plain = sink.getvalue().to_pybytes()
        packed = pa.Codec("lz4_raw").compress(plain).to_pybytes()
        message = log_msg.ArrowMsg(payload=packed, compression=2, encoding=1, uncompressed_size=len(plain))
        message.store_id.kind, message.store_id.recording_id = kind, segment
        payload = message.SerializeToString()
        data += struct.pack("<QQ", CHUNK, len(payload)) + payload
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if closed:
        path.write_bytes(bytes(data) + _end(path, len(data), kind))
    return path


def _end(path: Path, length: int, kind: int) -> bytes:
    """The message of the end with the footer, and the stream footer."""
    footer = log_msg.RrdFooter()
    with open_source(str(path)) as source:
        for each in read_recordings(source, kind):
            manifest = footer.manifests.add()
            manifest.store_id.kind, manifest.store_id.recording_id = kind, each.segment
            manifest.sorbet_schema.CopyFrom(schema_message(each.schema))
            manifest.sorbet_schema_sha256 = each.schema_sha256
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, each.manifest.schema) as writer:
                writer.write_batch(each.manifest)
            manifest.data.payload = sink.getvalue().to_pybytes()
            manifest.data.encoder_version = 1
    payload = footer.SerializeToString()
    checksum = xxhash.xxh32_intdigest(payload, _SEED)
    stream_footer = struct.pack("<QQI4s4sI", length + 16, len(payload), checksum, b"RRF2", b"FOOT", 1)
    return bytes(struct.pack("<QQ", END, len(payload)) + payload + stream_footer)


def scalars(entity: str, ticks: Sequence[int], values: Sequence[float] | None = None) -> Chunk:
    """Scalars at ticks."""
    found = [float(each) for each in ticks] if values is None else values
    return Chunk(entity, {"Scalars:scalars": [[each] for each in found]}, {"tick": ticks})


def properties(name: str, **values: Any) -> Chunk:
    """Static properties of a recording; texts and numbers."""
    types = {key: pa.utf8() if isinstance(value, str) else pa.float64() for key, value in values.items()}
    return Chunk(f"/__properties/{name}", {key: [[value]] for key, value in values.items()}, {}, types)
