"""Changes of a Lance dataset's schema that write no data file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deployer.specs.arrow import DESCRIPTION, arrow_field
from deployer.specs.types import Column

if TYPE_CHECKING:
    import lance


def add_null_column(dataset: lance.LanceDataset, column: Column, after: str | None) -> None:
    """Add a nullable column behind the column `after` (None: as the first). Existing rows read null."""
    dataset.add_columns(arrow_field(column))
    names = [name for name in dataset.schema.names if name != column.name]
    names.insert(names.index(after) + 1 if after in names else 0, column.name)
    reorder_columns(dataset, names)


def reorder_columns(dataset: lance.LanceDataset, names: Sequence[str]) -> None:
    """Put the top-level columns into the order of `names`, which holds each of them once.

    Lance's Project operation takes a schema whose fields keep their ids (one made from Arrow gives them new ones, and
    reads fail). LanceSchema has no constructor for that, but its pickle form is the schema's metadata and its fields'
    protobufs, depth first: those are put in order here.
    """
    import lance

    schema = dataset.lance_schema
    if names == [field.name() for field in schema.fields()]:
        return
    rebuild, (metadata, *protos) = schema.__reduce__()[:2]
    blocks: dict[str, list[bytes]] = {}
    rest = iter(protos)
    for field in schema.fields():
        blocks[field.name()] = [next(rest) for _ in range(_fields_below(field) + 1)]
    ordered = rebuild(metadata, *(proto for name in names for proto in blocks[name]))
    operation = lance.LanceOperation.Project(ordered, preserves_nullability=True)
    committed = lance.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)
    dataset.checkout_version(committed.version)


def describe_column(dataset: lance.LanceDataset, path: Sequence[str], description: str) -> None:
    """Set the description of a column or nested field; an empty one removes it."""
    dataset.update_field_metadata({".".join(path): {DESCRIPTION.decode(): description or None}})


def _fields_below(field: lance.schema.LanceField) -> int:
    return sum(1 + _fields_below(child) for child in field.children())
