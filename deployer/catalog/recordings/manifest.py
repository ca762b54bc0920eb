"""The manifest of a recording's footer: a batch with one row for each chunk, and the columns of the recording.

Thousands of recordings have the same columns, so what is found of them once is kept, by the bytes that it was read of.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pyarrow as pa

from deployer.catalog.protocol.dataframes import rows_in, schema_in
from deployer.catalog.protocol.messages import common

_MARK = b"\xff\xff\xff\xff"  #: before each message of an IPC stream; then its length, as int32
_PREFIX = 8


def manifest_in(message: Any) -> pa.RecordBatch:
    """Returns all rows of a manifest as one batch. Raises InvalidInput for bytes that are not rows.

    Manifests that say the same of their columns share the schema, which compares to itself at once.
    """
    payload = message.payload
    head = _PREFIX + int.from_bytes(payload[4:_PREFIX], "little")
    if payload[:4] == _MARK and _PREFIX < head < len(payload) and not message.compression:
        try:
            schema = _schema_of(payload[:head])
            messages = list(pa.ipc.MessageReader.open_stream(pa.py_buffer(payload)[head:]))
            if schema is not None and [each.type for each in messages] == ["record batch"]:
                batch = pa.ipc.read_record_batch(messages[0], schema)
                batch.validate(full=True)
                return batch
        except (pa.ArrowException, OSError):
            pass  # what follows says what is wrong
    rows = pa.Table.from_batches(rows_in(message)).combine_chunks()
    [batch] = rows.to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
    return batch


@lru_cache(maxsize=64)
def _schema_of(head: bytes) -> pa.Schema | None:
    """Returns the schema of the first message of a stream; None where dictionaries follow it."""
    schema = pa.ipc.read_schema(pa.py_buffer(head))
    return None if any(pa.types.is_dictionary(field.type) or field.type.num_fields for field in schema) else schema


def columns_in(data: bytes, sha256: bytes) -> pa.Schema:
    """Returns the columns (IPC) of a recording. Those that have the same hash and are equal, but for their order, are
    one object. Raises InvalidInput for bytes that are not a schema."""
    found = schema_in(common.Schema(arrow_schema=data))
    known = _of_hash(sha256)
    if not known:
        known.append(found)
    return known[0] if _has_same_fields(known[0], found) else found


@lru_cache(maxsize=256)
def _of_hash(sha256: bytes) -> list[pa.Schema]:
    """Returns the columns that had a hash first, once there are any."""
    return []


def _has_same_fields(one: pa.Schema, other: pa.Schema) -> bool:
    if one is other:
        return True
    if len(one) != len(other):
        return False
    places = [one.get_field_index(name) for name in other.names]
    return min(places, default=0) >= 0 and all(
        one.field(place).equals(field, check_metadata=True) for place, field in zip(places, other, strict=True)
    )
