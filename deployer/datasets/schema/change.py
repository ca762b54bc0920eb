"""Changes of a Lance dataset's schema that write no data file: each is one operation, to be committed by the caller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deployer.datasets.schema.fields import FieldTree, SchemaField, new_field, next_field_id
from deployer.specs.types.types import Column

if TYPE_CHECKING:
    import lance


def add_null_column(
    dataset: lance.LanceDataset, parent: Sequence[str], column: Column, after: str | None
) -> lance.LanceOperation.BaseOperation:
    """Returns the operation that adds a column or field behind its sibling `after` (None: as the first).

    Existing rows read null.

    A projection, where Lance's own `add_columns` makes a merge: rows that are appended meanwhile do not conflict.
    """
    added = new_field(column, next_field_id(dataset))
    tree = with_column(FieldTree.of(dataset.lance_schema), parent, added, after)
    return _project(tree, preserves_nullability=column.nullable)


def with_column(tree: FieldTree, parent: Sequence[str], added: SchemaField, after: str | None) -> FieldTree:
    """Returns the schema with one more field at `parent`, behind the sibling `after`."""
    siblings = list(tree.siblings(parent))
    place = next((number + 1 for number, field in enumerate(siblings) if field.name == after), 0)
    siblings.insert(place, added)
    return tree.with_siblings(parent, siblings)


def drop_column(dataset: lance.LanceDataset, path: Sequence[str]) -> lance.LanceOperation.BaseOperation:
    """The column or field is gone for readers; its values stay in the data files until those are compacted."""
    return _project(without_column(FieldTree.of(dataset.lance_schema), path))


def without_column(tree: FieldTree, path: Sequence[str]) -> FieldTree:
    """Returns the schema without the field at `path`."""
    target, parent = tree.at(path).id, path[:-1]
    return tree.with_siblings(parent, [field for field in tree.siblings(parent) if field.id != target])


def rename_column(dataset: lance.LanceDataset, path: Sequence[str], name: str) -> lance.LanceOperation.BaseOperation:
    """Another last name for the column or field at `path`."""
    return _altered(dataset, path, lambda field: replace(field, name=name))


def note_column(
    dataset: lance.LanceDataset, path: Sequence[str], note: bytes, text: str
) -> lance.LanceOperation.BaseOperation:
    """Another description, default or source (see `deployer.specs.types.arrow`) for a column or field; an empty text
    removes it."""
    return _altered(dataset, path, lambda field: field.noted(note, text))


def set_nullable(
    dataset: lance.LanceDataset, path: Sequence[str], nullable: bool
) -> lance.LanceOperation.BaseOperation:
    """Returns the operation that says whether the column or field may be null.

    Rows are not looked at: see `deployer.tables.schema.check`.
    """
    return _altered(dataset, path, lambda field: replace(field, nullable=nullable), preserves_nullability=False)


def reorder_columns(
    dataset: lance.LanceDataset, parent: Sequence[str], names: Sequence[str]
) -> lance.LanceOperation.BaseOperation:
    """Put the fields of the struct at `parent` (empty: the table) into the order of `names`; others come behind."""
    tree = FieldTree.of(dataset.lance_schema)
    place = {name: number for number, name in enumerate(names)}
    return _project(
        tree.with_siblings(parent, sorted(tree.siblings(parent), key=lambda f: place.get(f.name, len(place))))
    )


def merge_columns(fragments: Sequence[Any], tree: FieldTree) -> lance.LanceOperation.BaseOperation:
    """Returns the schema of `tree`, for fragments that have files of new values beside their own."""
    import lance

    return lance.LanceOperation.Merge(fragments, tree.to_lance())


def _altered(
    dataset: lance.LanceDataset,
    path: Sequence[str],
    change: Callable[[SchemaField], SchemaField],
    *,
    preserves_nullability: bool = True,
) -> lance.LanceOperation.BaseOperation:
    tree = FieldTree.of(dataset.lance_schema).changed(path, change)
    return _project(tree, preserves_nullability=preserves_nullability)


def _project(tree: FieldTree, *, preserves_nullability: bool = True) -> lance.LanceOperation.BaseOperation:
    import lance

    return lance.LanceOperation.Project(tree.to_lance(), preserves_nullability=preserves_nullability)
