"""The choice of files that may contain a row for which an Arrow condition is true, from the recorded ranges of columns.

Arrow itself decides: each file is passed to Arrow as a partition for which these ranges are guaranteed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
from pyarrow.fs import LocalFileSystem

from deployer.datasets.ordering.clustering import clustered_fields
from deployer.datasets.ordering.key_ranges import key_kinds
from deployer.state.model.files.data_file import File
from deployer.state.model.keys import decode_key

if TYPE_CHECKING:
    from collections.abc import Mapping

_NULL = b"\x01"  # null as `keys.encode_nullable` encodes it, above all values


def may_hold(
    condition: pc.Expression, files: Iterable[File], schema: pa.Schema, row_keys: Sequence[str], ids: Mapping[int, str]
) -> set[int]:
    """Returns the ids of the files that may contain a row for which the condition is true. `ids` has the names of
    columns by Lance's field ids, because files record their clustered columns by field id."""
    text = str(condition)
    mentioned = {name for name in schema.names if name in text and _is_exact(schema.field(name).type)}
    form, disk = pads.ParquetFileFormat(), LocalFileSystem()
    found, parts = set[int](), []
    for file in files:
        known = [*_guarantees(file, schema, row_keys, ids, mentioned)]
        if known:
            parts.append(form.make_fragment(str(file.fragment_id), disk, partition_expression=reduce(and_, known)))
        else:
            found.add(file.fragment_id)
    if parts:
        chosen = pads.FileSystemDataset(parts, schema, form, disk).get_fragments(filter=condition)
        found.update(int(part.path) for part in chosen)
    return found


def _guarantees(
    file: File, schema: pa.Schema, row_keys: Sequence[str], ids: Mapping[int, str], mentioned: set[str]
) -> Iterator[pc.Expression]:
    if len(file.column_min) == len(file.column_max) == len(row_keys):
        for name, low, high in zip(row_keys, file.column_min, file.column_max, strict=True):
            if name in mentioned:
                column = schema.field(name)
                yield (pc.field(name) >= _value(column, low)) & (pc.field(name) <= _value(column, high))
    fields = clustered_fields(file.clustering)
    if len(file.cluster_min) == len(file.cluster_max) == len(fields):
        for number, low, high in zip(fields, file.cluster_min, file.cluster_max, strict=True):
            name = ids.get(number, "")
            if name not in mentioned or _is_text(schema.field(name).type):
                continue  # of long texts only bounds are recorded, which may not be valid text
            if low == _NULL:
                yield pc.field(name).is_null()
                continue
            within = pc.field(name) >= _value(schema.field(name), low[1:])
            if high != _NULL:
                within &= pc.field(name) <= _value(schema.field(name), high[1:])
            yield within | pc.field(name).is_null()


def _value(column: pa.Field, encoded: bytes) -> pa.Scalar:
    [kind] = key_kinds(pa.schema([column]), [column.name])
    [value] = decode_key((kind,), encoded)
    return pa.scalar(value, column.type)


def _is_exact(kind: pa.DataType) -> bool:
    """Returns whether the encoded values of the type are the values that Arrow compares."""
    types = pa.types
    return bool(
        types.is_integer(kind)
        or _is_text(kind)
        or types.is_boolean(kind)
        or types.is_date32(kind)
        or types.is_timestamp(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
