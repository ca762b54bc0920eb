"""Row ids of rewritten fragments, for tables whose row ids are stable: each row keeps its own, wherever it goes.

Written as Lance's `RowIdSequence` (rowids.proto): one array of offsets from the least id. That is 4 bytes a row in the
manifest, which is why tables with keys do not have stable row ids unless they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from deployer.tables.writer import Written

ROW_ID = "_rowid"  #: what Lance calls the column
_SEGMENTS, _ARRAY, _U32, _U64 = 1, 5, 2, 3  # field numbers
_BASE, _VALUES = 1, 2


def without_ids(batches: Iterator[pa.RecordBatch], ids: list[pa.Array]) -> Iterator[pa.RecordBatch]:
    """The batches without their row ids, which are put into `ids`; as they are where they have none."""
    for batch in batches:
        if ROW_ID in batch.schema.names:
            ids.append(batch.column(ROW_ID))
            yield batch.drop_columns([ROW_ID])
        else:
            yield batch


def with_ids(written: Sequence[Written], ids: Sequence[pa.Array]) -> list[Written]:
    """The fragments with these row ids, given in the order of all of their rows; none are given for none."""
    if not ids:
        return list(written)
    values = pa.chunked_array(ids).to_numpy().astype(np.uint64)
    found, start = [], 0
    for each in written:
        own = encoded(values[start : start + each.rows])
        start += each.rows
        found.append(replace(each, row_ids=own))
    return found


def encoded(ids: np.ndarray) -> bytes:
    """A `RowIdSequence` of these ids (uint64) in their order."""
    base = int(ids.min()) if len(ids) else 0
    if len(ids) and int(ids.max()) - base < 2**32:
        offsets = (ids - np.uint64(base)).astype("<u4").tobytes()
        array = _nested(_U32, _number(_BASE, base) + _nested(_VALUES, offsets))
    else:
        array = _nested(_U64, _nested(_VALUES, ids.astype("<u8").tobytes()))
    return _nested(_SEGMENTS, _nested(_ARRAY, array))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value) if value else b""


def _nested(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
