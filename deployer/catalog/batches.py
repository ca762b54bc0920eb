"""Writes the batches of a stream to one file: memory does not limit them, and the stream is complete before a
commit."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pyarrow as pa

from deployer.errors import InvalidInput

#: Metadata key, in Rerun's protocol, of the fields by which an upsert matches rows.
TABLE_INDEX = b"rerun:is_table_index"


def spooled(path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema, where: object) -> int:
    """Writes the batches into one Arrow file at `path` and returns the number of rows.

    Without a batch, the file has the schema `schema`. Raises InvalidInput, at `where`, for batches with different
    schemas.
    """
    rest = iter(batches)
    first = next(rest, None)
    own = schema if first is None else first.schema
    rows = 0
    with pa.ipc.new_file(path, own) as writer:
        for batch in chain(() if first is None else (first,), rest):
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
