"""Converts Arrow schemas and rows to messages of the protocol (`Schema`, `DataframePart`) and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from deployer.catalog.protocol.messages import common
from deployer.errors import InvalidInput

ENCODER_VERSION = 1  #: `encoder_version` of a DataframePart whose payload is an IPC stream with one batch
LZ4 = 2  #: `compression` of one LZ4 block without its size; recordings have it, clients from 0.29 on may send it
_LZ4_BLOCK = pa.Codec("lz4_raw")
MAX_PART = 1 << 31  #: most bytes that one message may hold after decompression


def schema_message(schema: pa.Schema) -> Any:
    """Returns the schema as a message: an IPC stream without a batch."""
    return common.Schema(arrow_schema=_stream(schema))


def schema_in(message: Any) -> pa.Schema:
    """Returns the schema of a message. Raises InvalidInput for bytes that are not a schema."""
    try:
        return pa.ipc.read_schema(pa.py_buffer(message.arrow_schema))
    except (pa.ArrowException, OSError) as failure:
        raise InvalidInput(f"the schema cannot be read: {failure}", remedy="send it as an IPC stream") from None


def part(batch: pa.RecordBatch) -> Any:
    """Returns the rows as a message."""
    return common.DataframePart(encoder_version=ENCODER_VERSION, payload=_stream(batch.schema, batch))


def rows_in(message: Any) -> Iterator[pa.RecordBatch]:
    """Yields the batches of a DataframePart, or of a recording's ArrowMsg. Raises InvalidInput for bytes that are not
    rows."""
    try:
        with pa.ipc.open_stream(payload_of(message)) as reader:
            for batch in reader:
                batch.validate(full=True)
                yield batch
    except (pa.ArrowException, OSError, ValueError) as failure:
        raise InvalidInput(f"the rows cannot be read: {failure}", remedy="send them as an IPC stream") from None


def payload_of(message: Any) -> bytes:
    """Returns the decompressed IPC stream of a message.

    Raises InvalidInput for more than `MAX_PART` bytes, and pa.ArrowException or OSError for bytes that cannot be
    decompressed.
    """
    if message.compression != LZ4:
        return bytes(message.payload)
    if message.uncompressed_size > MAX_PART:
        raise InvalidInput(f"a message holds more than {MAX_PART:,} bytes", remedy="send smaller batches")
    return bytes(_LZ4_BLOCK.decompress(message.payload, message.uncompressed_size, asbytes=True))


def _stream(schema: pa.Schema, batch: pa.RecordBatch | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        if batch is not None:
            writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())
