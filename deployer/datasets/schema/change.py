"""Changes of a Lance dataset's schema that write no data file: each is one operation, to be committed by the caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deployer.datasets.schema.fields import FieldTree, SchemaField, new_field, next_field_id
from deployer.specs.types.arrow import computed_of
from deployer.specs.types.computed import (
    COMPUTED_NOTE,
    Computed,
    computed_note,
    definitions_after,
    is_stale,
    with_renamed_inputs,
)
from deployer.specs.types.types import Column

if TYPE_CHECKING:
    import lance
    import pyarrow as pa


def add_null_column(
    dataset: lance.LanceDataset, parent: Sequence[str], column: Column, after: str | None
) -> lance.LanceOperation.BaseOperation:
    """Returns the operation that adds a column or field behind its sibling `after` (None: as the first).

    Existing rows read null.

    The operation is a projection, not a merge as of Lance's `add_columns`, so that concurrent appends do not conflict.
    """
    added = new_field(column, next_field_id(dataset))
    tree = with_column(FieldTree.of(dataset.lance_schema), parent, added, after)
    return _project(tree, preserves_nullability=column.nullable)


def add_null_columns(dataset: lance.LanceDataset, columns: Sequence[Column]) -> lance.LanceOperation.BaseOperation:
    """Returns the operation that adds columns behind all others. Existing rows read null."""
    tree = FieldTree.of(dataset.lance_schema)
    number = next_field_id(dataset)
    for column in columns:
        added = new_field(column, number)
        number = _last_id(added) + 1
        tree = replace(tree, fields=(*tree.fields, added))
    return _project(tree)


def _last_id(field: SchemaField) -> int:
    return max([field.id, *map(_last_id, field.children)])


def with_column(tree: FieldTree, parent: Sequence[str], added: SchemaField, after: str | None) -> FieldTree:
    """Returns the schema with one more field at `parent`, behind the sibling `after`."""
    siblings = list(tree.siblings(parent))
    place = next((number + 1 for number, field in enumerate(siblings) if field.name == after), 0)
    siblings.insert(place, added)
    return tree.with_siblings(parent, siblings)


def drop_column(dataset: lance.LanceDataset, path: Sequence[str]) -> lance.LanceOperation.BaseOperation:
    """Returns the operation that drops a column or field. Its values stay in the data files until those are
    compacted."""
    return _project(without_column(FieldTree.of(dataset.lance_schema), path))


def without_column(tree: FieldTree, path: Sequence[str]) -> FieldTree:
    """Returns the schema without the field at `path`."""
    target, parent = tree.at(path).id, path[:-1]
    return tree.with_siblings(parent, [field for field in tree.siblings(parent) if field.id != target])


def rename_column(dataset: lance.LanceDataset, path: Sequence[str], name: str) -> lance.LanceOperation.BaseOperation:
    """Returns the operation that renames the column or field at `path`. The definitions of columns that are computed
    from it are changed too."""
    tree = FieldTree.of(dataset.lance_schema)
    definitions: dict[str, Computed | None] = {}
    if len(path) == 1:
        for column, computed in computed_columns(dataset.schema).items():
            renamed = with_renamed_inputs(computed, {path[0]: name})
            definitions |= {column: renamed} if renamed is not computed else {}
    return _project(with_definitions(tree, definitions).changed(path, lambda field: replace(field, name=name)))


def define_column(
    dataset: lance.LanceDataset, name: str, computed: Computed | None
) -> lance.LanceOperation.BaseOperation:
    """Returns the operation that changes the definition of a computed column; None makes it an ordinary column. Columns
    that are computed from it become stale too."""
    found = computed_columns(dataset.schema)
    before = found.get(name)
    changed = definitions_after(found, name, f"{name} is {computed.identity}") if computed is not None else {}
    definitions = changed if is_stale(before, computed) else {}
    return _project(with_definitions(FieldTree.of(dataset.lance_schema), {**definitions, name: computed}))


def computed_columns(schema: pa.Schema) -> dict[str, Computed]:
    """Returns the definitions of the computed columns, by their names."""
    return {field.name: computed for field in schema if (computed := computed_of(field)) is not None}


def with_definitions(tree: FieldTree, definitions: Mapping[str, Computed | None]) -> FieldTree:
    """Returns the schema with other definitions of computed columns, by the columns' names."""
    for name, computed in definitions.items():
        text = computed_note(computed)
        tree = tree.changed([name], lambda field, text=text: field.noted(COMPUTED_NOTE, text))  # type: ignore[misc]
    return tree


def stale_readers(schema: pa.Schema, name: str, what: str) -> dict[str, Computed]:
    """Returns the new definitions of computed columns when the values of a column change. `what` describes the
    change."""
    return definitions_after(computed_columns(schema), name, what)


def note_column(
    dataset: lance.LanceDataset, path: Sequence[str], note: bytes, text: str
) -> lance.LanceOperation.BaseOperation:
    """Returns the operation that changes the description, default or source (see `deployer.specs.types.arrow`) of a
    column or field; an empty text removes it."""
    return _altered(dataset, path, lambda field: field.noted(note, text))


def set_nullable(
    dataset: lance.LanceDataset, path: Sequence[str], nullable: bool
) -> lance.LanceOperation.BaseOperation:
    """Returns the operation that makes the column or field nullable or not.

    Rows are not checked: see `deployer.tables.evolution.schema.check`.
    """
    return _altered(dataset, path, lambda field: replace(field, nullable=nullable), preserves_nullability=False)


def reorder_columns(
    dataset: lance.LanceDataset, parent: Sequence[str], names: Sequence[str]
) -> lance.LanceOperation.BaseOperation:
    """Returns the operation that orders the fields of the struct at `parent` (empty: the table) as in `names`; other
    fields follow."""
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
