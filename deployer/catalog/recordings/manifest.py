"""Reads the manifest of a recording's footer (a batch with one row for each chunk) and the columns of the recording.

Thousands of recordings have the same columns. Therefore decoded columns are cached by the bytes that encode them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa

from deployer.catalog.protocol.dataframes import rows_in, schema_in
from deployer.catalog.protocol.messages import common

_CONTINUATION = b"\xff\xff\xff\xff"  #: the bytes before each message of an IPC stream; its length, an int32, follows
_PREFIX = 8  #: bytes before a message
_END = _CONTINUATION + bytes(4)  #: the end of an IPC stream


def manifest_in(message: Any) -> pa.RecordBatch:
    """Returns all rows of a manifest as one batch. Raises InvalidInput for bytes that are not rows.

    Manifests with the same columns share one schema object, which makes comparisons of their schemas fast.
    """
    payload = message.payload
    head = head_of(payload)
    if head is not None and not message.compression:
        try:
            schema = _schema_of(payload[:head])
            if schema is not None and (batch := batch_after(payload, head, schema)) is not None:
                return batch
        except (pa.ArrowException, OSError):
            pass  # the slower way below raises the error
    rows = pa.Table.from_batches(rows_in(message)).combine_chunks()
    [batch] = rows.to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
    return batch


def head_of(payload: bytes) -> int | None:
    """Returns the length of the first message of an IPC stream, which is its schema; None for bytes that are not an IPC
    stream."""
    head = _PREFIX + int.from_bytes(payload[4:_PREFIX], "little")
    return head if payload[:4] == _CONTINUATION and _PREFIX < head < len(payload) else None


def batch_after(payload: bytes, head: int, schema: pa.Schema) -> pa.RecordBatch | None:
    """Returns the batch that follows the schema of an IPC stream; None where it is not the only batch.

    `head` is the length of the schema's message. Raises pa.ArrowException or OSError for bytes that are not rows.
    """
    rest = pa.py_buffer(payload)[head:]
    message = pa.ipc.read_message(rest)
    end = head + _PREFIX + int.from_bytes(payload[head + 4 : head + _PREFIX], "little") + message.body.size
    if message.type != "record batch" or payload[end:] not in (b"", _END):
        return None
    batch = pa.ipc.read_record_batch(message, schema)
    batch.validate(full=True)
    return batch


@lru_cache(maxsize=64)
def _schema_of(head: bytes) -> pa.Schema | None:
    """Returns the schema in the first message of a stream; None for a schema with dictionaries or nested columns."""
    schema = pa.ipc.read_schema(pa.py_buffer(head))
    return None if any(pa.types.is_dictionary(field.type) or field.type.num_fields for field in schema) else schema


def columns_in(data: bytes, sha256: bytes) -> pa.Schema:
    """Returns the columns of a recording from their IPC bytes. Raises InvalidInput for bytes that are not a schema.

    Recordings share one schema object where their columns have the same hash and are equal apart from their order.
    """
    found = schema_in(common.Schema(arrow_schema=data))
    known = _of_hash(sha256)
    if not known:
        known.append((found, {field.name: field for field in found}))
    schema, by_name = known[0]
    return schema if len(schema) == len(by_name) and _has_fields(found, by_name) else found


@lru_cache(maxsize=256)
def _of_hash(sha256: bytes) -> list[tuple[pa.Schema, dict[str, pa.Field]]]:
    """Returns the cache for a hash: at first empty, later with the first columns that had the hash, and with these by
    name."""
    return []


def _has_fields(schema: pa.Schema, by_name: Mapping[str, pa.Field]) -> bool:
    fields = {field.name: field for field in schema}
    return len(fields) == len(schema) == len(by_name) and all(
        name in by_name and field.equals(by_name[name], check_metadata=True) for name, field in fields.items()
    )


def fault_of_columns(schema: pa.Schema) -> str | None:
    """Returns a sentence that states the fault of a manifest's columns; None for valid columns."""
    for field in schema:
        is_time = field.name.endswith((":start", ":end")) and b"rerun:index" in (field.metadata or {})
        kind = field.type
        if is_time and not (pa.types.is_int64(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind)):
            return f"its footer has {field.name} as {kind}, which is not a time"
    names = schema.names
    return None if len(set(names)) == len(names) else "its footer has a column twice"
