"""The order of rows that CLUSTER gives a file, as the state store records it: the curve, its columns, and their
ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deployer.datasets.ordering.key_ranges import comparable, extremes, key_value
from deployer.specs.declarations.indexes import find_column
from deployer.specs.types.arrow import columns_of
from deployer.specs.types.types import format_type
from deployer.state.model.entities import File
from deployer.state.model.keys import encode_nullable, successor

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

BOUND_BYTES = 64  #: longer values are shortened to bounds of this length

Bounds = tuple[tuple[bytes, ...], tuple[bytes, ...]]  #: least and largest encoded value (`encode_nullable`) by column


@dataclass(frozen=True, slots=True)
class FileClustering:
    """`by` and the bounds as in `File`."""

    by: str
    low: tuple[bytes, ...]
    high: tuple[bytes, ...]

    @staticmethod
    def of(file: File) -> FileClustering | None:
        return FileClustering(file.clustering, file.cluster_min, file.cluster_max) if file.clustering else None


def clustering_of(curve: str, fields: Sequence[int]) -> str:
    """Returns the name of a curve over columns. It has Lance's field ids, which stay the same when columns are
    renamed."""
    return f"{curve}:{','.join(map(str, fields))}"


def clustered_fields(clustering: str) -> tuple[int, ...]:
    """Returns the field ids in such a name."""
    return tuple(int(each) for each in clustering.partition(":")[2].split(",") if each)


def joined(found: Sequence[FileClustering | None]) -> FileClustering | None:
    """Returns the clustering of all these files together; None where they are not all clustered by the same curve."""
    first = found[0] if found else None
    if first is None or any(each is None or each.by != first.by for each in found):
        return None
    known = [each for each in found if each is not None]
    return FileClustering(first.by, *_around([(each.low, each.high) for each in known]))


def bounds_of(columns: Sequence[Any], kinds: Sequence[str]) -> Bounds | None:
    """Returns the bounds of columns (arrays of one length); None when there are no rows."""
    if not columns or not len(columns[0]):
        return None
    low, high = [], []
    for column, kind in zip(map(comparable, columns), kinds, strict=True):
        if column.null_count == len(column):
            low.append(encode_nullable(kind, None))
            high.append(encode_nullable(kind, None))
            continue
        least, most = extremes(column)
        low.append(encode_nullable(kind, key_value(least))[:BOUND_BYTES])
        high.append(
            encode_nullable(kind, None) if column.null_count else _above(encode_nullable(kind, key_value(most)))
        )
    return tuple(low), tuple(high)


def key_bounds(file: File, row_keys: Sequence[str], columns: Sequence[str]) -> Bounds | None:
    """Returns the bounds of columns that are row keys, from the key range that every file records; None where one is
    unknown."""
    if len(file.column_min) != len(row_keys) or not set(columns) <= set(row_keys):
        return None
    places = [row_keys.index(name) for name in columns]
    return (
        tuple((b"\x00" + file.column_min[place])[:BOUND_BYTES] for place in places),
        tuple(_above(b"\x00" + file.column_max[place]) for place in places),
    )


def around(found: Sequence[Bounds | None]) -> Bounds | None:
    """Returns the bounds that contain all of these bounds."""
    known = [each for each in found if each is not None]
    return _around(known) if known else None


def _around(known: Sequence[Bounds]) -> Bounds:
    return (
        tuple(map(min, zip(*(low for low, _ in known), strict=True))),
        tuple(map(max, zip(*(high for _, high in known), strict=True))),
    )


def _above(value: bytes) -> bytes:
    if len(value) <= BOUND_BYTES:
        return value
    above = successor(value[:BOUND_BYTES])
    assert above is not None  # noqa: S101 -- a value that is not null starts with a zero byte
    return above


def field_of(dataset: lance.LanceDataset, path: str) -> Any | None:
    """Returns Lance's field of a column or of a field of structs, such as `gate.number`; None when it does not
    exist."""
    fields, found = dataset.lance_schema.fields(), None
    for name in path.split("."):
        found = next((each for each in fields if each.name() == name), None)
        if found is None:
            return None
        fields = found.children()
    return found


def path_of(dataset: lance.LanceDataset, field_id: int) -> str | None:
    """Returns the path of the field with that id; None when there is none."""

    def below(fields: Sequence[Any], prefix: str) -> str | None:
        for each in fields:
            path = f"{prefix}{each.name()}"
            if each.id() == field_id:
                return path
            if (found := below(each.children(), f"{path}.")) is not None:
                return found
        return None

    return below(dataset.lance_schema.fields(), "")


def value_of(rows: pa.Table | pa.RecordBatch, path: str) -> Any:
    """Returns a column, or a field of structs. The field is null where its struct is null."""
    import pyarrow.compute as pc

    name, _, below = path.partition(".")
    column = rows.column(name)
    return pc.struct_field(column, below.split(".")) if below else column


def kind_of(schema: pa.Schema, path: str) -> str:
    """Returns the kind (see `deployer.state.model.keys`) of an existing column or field of structs."""
    column = find_column(columns_of(schema), path)
    assert column is not None  # noqa: S101 -- the caller found it
    return format_type(column.type)
