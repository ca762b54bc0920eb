"""The target of a rewrite: the new keys and storage of the table, and the dataset for its rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.datasets.commit_metadata import CommitMetadata
from deployer.datasets.dataset import create_dataset, latest_version, open_dataset
from deployer.datasets.errors import storage_errors
from deployer.datasets.files.writer import Layout, WrittenFragment
from deployer.datasets.lance_transactions import Append, commit_now
from deployer.datasets.ordering.key_ranges import key_kinds
from deployer.datasets.schema.change import stale_readers
from deployer.datasets.storage.options import objects_at
from deployer.errors import NotFound
from deployer.specs.model import Storage, TableSpec
from deployer.specs.serialized.specs import key_to_json, storage_from_json, storage_in_full
from deployer.specs.types.arrow import arrow_schema, arrow_type
from deployer.specs.types.computed import COMPUTED_NOTE, computed_note
from deployer.state.model.declared_properties import SPLIT_POINTS
from deployer.state.model.entities import JSON, TableState
from deployer.tables.open_table import OpenTable

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a rewrite.

    `kinds` are those of the new row keys; `fingerprint` identifies the whole target, including the table's columns.
    `schema` has the table's current columns, except row keys that get a wider type, because the type defines their
    order.
    """

    row_keys: tuple[str, ...]
    sort_keys: tuple[str, ...]
    split_points: tuple[JSON, ...]
    storage: Storage
    kinds: tuple[str, ...]
    schema: pa.Schema
    fingerprint: str

    @property
    def stable_row_ids(self) -> bool:
        return _stable(self.storage.stable_row_ids, self.row_keys)

    def properties(self, state: TableState) -> dict[str, JSON]:
        """Returns the table's properties that it changes."""
        return {
            "row_keys": list(self.row_keys),
            "sort_keys": list(self.sort_keys),
            "storage": storage_in_full(self.storage),
            "declared": {**state.properties.declared, SPLIT_POINTS: list(self.split_points)},
        }

    def is_recorded(self, table: OpenTable) -> bool:
        return self._same_order(table) and storage_from_json(table.state.properties.storage) == self.storage

    def needs_no_files(self, table: OpenTable) -> bool:
        """Returns whether the existing files can stay unchanged."""
        properties = table.state.properties
        now = storage_from_json(properties.storage)
        return (
            self._same_order(table)
            and now.data_storage_version == self.storage.data_storage_version
            and _stable(now.stable_row_ids, properties.row_keys) == self.stable_row_ids
        )

    def _same_order(self, table: OpenTable) -> bool:
        now = table.state.properties
        points: Any = now.declared.get(SPLIT_POINTS) or []
        return (
            now.row_keys == self.row_keys
            and now.sort_keys == self.sort_keys
            and table.schema.types == self.schema.types
            and json.dumps(list(points)) == json.dumps(list(self.split_points))
        )

    def layout(self, location: str) -> Layout:
        """Returns the settings for writing its rows."""
        return Layout(
            location,
            self.schema.serialize().to_pybytes(),
            self.row_keys,
            self.sort_keys,
            self.storage.data_storage_version,
            self.storage.max_rows_per_file,
            self.storage.max_bytes_per_file,
        )


def target_of(table: OpenTable, spec: TableSpec) -> Target:
    """Returns the target that `spec` declares for the table as it is."""
    points = tuple(key_to_json(point) for point in spec.split_points)
    types = {column.name: arrow_type(column.type) for column in spec.columns if column.name in spec.row_keys}
    schema = pa.schema([field.with_type(types.get(field.name, field.type)) for field in table.schema])
    written = {name: value for name, value in storage_in_full(spec.storage).items() if name != "keep_replaced_for"}
    for name, kind in types.items():
        if kind != table.schema.field(name).type:
            schema = _with_stale_readers(schema, name, kind)
    document = [spec.row_keys, spec.sort_keys, points, written, schema.to_string()]
    fingerprint = hashlib.blake2b(json.dumps(document, default=list).encode(), digest_size=16).hexdigest()
    kinds = key_kinds(schema, spec.row_keys)
    return Target(spec.row_keys, spec.sort_keys, points, spec.storage, kinds, schema, fingerprint)


def _with_stale_readers(schema: pa.Schema, name: str, kind: pa.DataType) -> pa.Schema:
    """Returns the schema; columns that are computed from a key with a new type are stale in it."""
    for reader, computed in stale_readers(schema, name, f"{name} is {kind}").items():
        place = schema.get_field_index(reader)
        metadata = {**schema.field(place).metadata, COMPUTED_NOTE: computed_note(computed).encode()}
        schema = schema.set(place, schema.field(place).with_metadata(metadata))
    return schema


def target_without_rows(spec: TableSpec) -> Target:
    """Returns the target for a table without rows: all columns are those that `spec` declares. It has no
    fingerprint."""
    points = tuple(key_to_json(point) for point in spec.split_points)
    schema = arrow_schema(spec.columns)
    return Target(spec.row_keys, spec.sort_keys, points, spec.storage, key_kinds(schema, spec.row_keys), schema, "")


def create_target(location: str, table: OpenTable, target: Target) -> None:
    """Creates the new dataset without rows, with the columns, metadata and settings of the old one, unless it
    exists."""
    old = table.dataset().schema
    create_empty(
        location, table, target, pa.schema([_with_metadata(field, old.field(field.name)) for field in target.schema])
    )


def create_empty(location: str, table: OpenTable, target: Target, schema: pa.Schema) -> None:
    """Creates a dataset of this schema without rows, with the settings of the table's dataset, unless it exists."""
    if _is_made(location):
        return
    old = table.dataset()
    create_dataset(location, schema, target.storage.data_storage_version, stable_row_ids=target.stable_row_ids)
    with storage_errors(location):
        old_settings = _text(old.config())
        found = open_dataset(location)
        if missing := {name: value for name, value in old_settings.items() if found.config().get(name) != value}:
            found.update_config(missing)
        if about := _text(old.schema.metadata or {}):
            found.update_schema_metadata(about)


def _is_made(location: str) -> bool:
    try:
        return latest_version(location) > 0
    except NotFound:
        return False


def commit_fragments(location: str, job_id: str, written: Sequence[WrittenFragment]) -> None:
    """Makes the fragments part of the new dataset, as one version whose metadata records that; no other process writes
    to it.

    Files that an interrupted attempt left without a note are removed first.
    """
    dataset = open_dataset(location)
    _remove_strays(location, dataset, written)
    info = CommitMetadata(job_id, "rewrite", sum(each.rows for each in written), tuple(each.marked for each in written))
    with storage_errors(location):
        commit_now(location, dataset, Append([each.metadata for each in written]), [info])


def _remove_strays(location: str, dataset: LanceDataset, written: Sequence[WrittenFragment]) -> None:
    kept = {file["path"] for each in written for file in each.metadata["files"]}
    for fragment in dataset.get_fragments():
        kept |= {file.path for file in fragment.metadata.files}
    objects = objects_at(location)
    found = objects.list("data")
    objects.delete([path for path in found if path.endswith(".lance") and path.removeprefix("data/") not in kept])


def _with_metadata(field: Any, old: Any) -> Any:
    return field.with_metadata({**(old.metadata or {}), **(field.metadata or {})}) if old.metadata else field


def _text(settings: Mapping[Any, Any]) -> dict[str, str]:
    return {_decoded(name): _decoded(value) for name, value in settings.items()}


def _decoded(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _stable(declared: Any, row_keys: Sequence[str]) -> bool:
    return not row_keys if declared is None else bool(declared)
