"""Batches of a stream in one file, so that memory does not limit them and all of them are there before a commit."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pyarrow as pa

from deployer.errors import InvalidInput

#: Metadata of the fields that an upsert matches rows by, in Rerun's protocol.
TABLE_INDEX = b"rerun:is_table_index"


def spooled(path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema, where: object) -> int:
    """Writes the batches into one file; returns the number of rows. Without a batch, the file has `schema`. Raises
    InvalidInput for batches of several schemas."""
    coming = iter(batches)
    first = next(coming, None)
    own = schema if first is None else first.schema
    rows = 0
    with pa.ipc.new_file(path, own) as writer:
        for batch in chain(() if first is None else (first,), coming):
            if not batch.schema.equals(own):
                raise InvalidInput(
                    "the batches have several schemas", where=where, remedy="send batches with the same columns"
                )
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def is_index(field: pa.Field) -> bool:
    """Returns whether an upsert matches rows by the field."""
    return (field.metadata or {}).get(TABLE_INDEX) == b"true"
