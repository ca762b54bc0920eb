"""Row ids of rewritten fragments, for tables whose row ids are stable: each row keeps its id, whichever file it is in.

The manifest stores the ids, at 4 bytes a row. Therefore tables with keys have stable row ids only where they are
declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from deployer.datasets.files.writer import WrittenFragment

ROW_ID = "_rowid"  #: what Lance calls the column


def without_ids(batches: Iterator[pa.RecordBatch], ids: list[pa.Array]) -> Iterator[pa.RecordBatch]:
    """Yields the batches without their row ids, and adds the ids to `ids`. Batches without row ids are unchanged."""
    for batch in batches:
        if ROW_ID in batch.schema.names:
            ids.append(batch.column(ROW_ID))
            yield batch.drop_columns([ROW_ID])
        else:
            yield batch


def with_ids(written: Sequence[WrittenFragment], ids: Sequence[pa.Array]) -> list[WrittenFragment]:
    """Returns the fragments with these row ids, which are in the order of all rows. Without row ids, the fragments are
    unchanged."""
    if not ids:
        return list(written)
    from lance.fragment import RowIdSequence

    values = pa.chunked_array(ids)
    found, start = [], 0
    for each in written:
        own = RowIdSequence(values.slice(start, each.rows)).to_inline_metadata()
        start += each.rows
        found.append(replace(each, row_ids=own))
    return found
