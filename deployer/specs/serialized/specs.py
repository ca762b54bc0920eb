"""The canonical JSON form of specs, for Pulumi's inputs. It omits positions and values that equal their defaults.

A column is `{"name", "type": canonical text, "nullable", "description", "renamed_from", "default", "using", "source",
"computed", "fields"}`. `fields` has the details of nested columns that the text of a type cannot express: `{nested
name: {"description", "renamed_from", "fields"}}`. `nullable` is omitted where it is true. Bytes in split points are
`{"base64": "…"}`. A protobuf Struct stores numbers as doubles, so integers that a double cannot represent are
`{"integer": "…"}`, and the readers make integers of doubles without a fraction.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, assert_never

from deployer.errors import InvalidInput
from deployer.platform.text.visible import shortened
from deployer.specs.declarations.embeddings import embedding_from_json, embedding_to_json
from deployer.specs.declarations.indexes import index_from_json, index_to_json
from deployer.specs.model import Cluster, InstanceSpec, KeyValue, StateBackend, Storage, TableSpec
from deployer.specs.schema.parts import ref
from deployer.specs.schema.services import plain
from deployer.specs.serialized.retention import (
    holds_from_json,
    holds_to_json,
    retained_changes_from_json,
    retention_from_json,
    retention_to_json,
)
from deployer.specs.serialized.services import services_from_json, services_to_json
from deployer.specs.types.computed import Computed, computed_from_json, computed_to_json
from deployer.specs.types.names import BINARIES, FLOATS, MAX_PRECISION, TEXTS
from deployer.specs.types.parser import parse_type
from deployer.specs.types.types import (
    Blob,
    Column,
    ColumnType,
    Dictionary,
    FixedSizeList,
    ListOf,
    MapOf,
    Scalar,
    Struct,
    children,
    format_type,
)
from deployer.specs.types.view import view_from_json, view_to_json
from deployer.specs.validation.plain_values import (
    flag,
    lists,
    mapping,
    objects,
    optional_text,
    optional_whole,
    refuse_unfit,
    text,
    text_map,
    texts,
    whole,
)
from deployer.state.model.names import fault_of_name

JSON = Any
_DOUBLE_HOLDS = 2**53
_INTEGER = re.compile(r"-?[0-9]{1,20}")
_NOT_INTEGERS = frozenset(("", "bool", "fixed_size_binary", *TEXTS, *FLOATS, *BINARIES, *MAX_PRECISION))


def column_to_json(column: Column) -> dict[str, JSON]:
    """Returns one column as JSON."""
    form: dict[str, JSON] = {"name": column.name, "type": format_type(column.type)}
    if not column.nullable:
        form["nullable"] = False
    return form | _notes(column)


def column_from_json(form: Mapping[str, JSON]) -> Column:
    """Returns the column from the form that `column_to_json` returns. Raises InvalidInput for an invalid form."""
    return _with_notes(Column(text(form, "name"), parse_type(text(form, "type")), flag(form, "nullable", True)), form)


def _computed(form: Mapping[str, JSON]) -> Computed | None:
    given = mapping(form, "computed", {})
    if not given:
        return None
    if (found := computed_from_json(given)) is None:
        raise InvalidInput(f"`computed` of column {form.get('name')!r} is not a definition of `sql` or `udf`")
    return found


def _notes(column: Column) -> dict[str, JSON]:
    form: dict[str, JSON] = {}
    if column.description:
        form["description"] = column.description
    if column.renamed_from is not None:
        form["renamed_from"] = column.renamed_from
    if column.default:
        form["default"] = column.default
    if column.using is not None:
        form["using"] = column.using
    if column.source is not None:
        form["source"] = column.source
    if column.sensitive:
        form["sensitive"] = True
    if column.computed is not None:
        form["computed"] = computed_to_json(column.computed)
    if fields := {child.name: notes for child in children(column.type) if (notes := _notes(child))}:
        form["fields"] = fields
    return form


def _with_notes(column: Column, form: Mapping[str, JSON]) -> Column:
    column = replace(
        column,
        description=text(form, "description", ""),
        renamed_from=optional_text(form, "renamed_from"),
        default=text(form, "default", ""),
        using=optional_text(form, "using"),
        source=optional_text(form, "source"),
        computed=_computed(form),
        sensitive=flag(form, "sensitive", False),
    )
    fields = mapping(form, "fields", {})
    return replace(column, type=_type_with_notes(column.type, fields)) if fields else column


def _type_with_notes(column_type: ColumnType, fields: Mapping[str, JSON]) -> ColumnType:
    def noted(child: Column) -> Column:
        return _with_notes(child, mapping(fields, child.name, {}))

    match column_type:
        case ListOf(item):
            return replace(column_type, item=noted(item))
        case FixedSizeList(item):
            return replace(column_type, item=noted(item))
        case Struct(inner):
            return Struct(tuple(noted(field) for field in inner))
        case MapOf(key, value):
            return MapOf(noted(key), noted(value))
        case Scalar() | Dictionary() | Blob():
            return column_type
        case _:
            assert_never(column_type)


def key_to_json(values: Sequence[KeyValue]) -> list[JSON]:
    """Returns the values of the first row keys, or of all, as JSON."""
    return [_key_value_to_json(value) for value in values]


def _key_value_to_json(value: KeyValue) -> JSON:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, int) and abs(value) > _DOUBLE_HOLDS:
        return {"integer": str(value)}
    return value


def key_from_json(form: Sequence[JSON], columns: Sequence[Column]) -> tuple[KeyValue, ...]:
    """Returns the key values from the form that `key_to_json` returns.

    `columns` are the key columns; their types determine which numbers are floats. Raises InvalidInput for values that
    do not have the columns' types.
    """
    return tuple(_key_value_from_json(value, column) for value, column in zip(form, columns, strict=False))


def _key_value_from_json(value: JSON, column: Column) -> KeyValue:
    name = column.type.name if isinstance(column.type, Scalar) else ""
    found: KeyValue | None = None
    match value:
        case {"base64": str(content)} if name in BINARIES or name == "fixed_size_binary":
            with suppress(ValueError):
                found = base64.b64decode(content, validate=True)
        case {"integer": str(digits)} if _INTEGER.fullmatch(digits):
            found = int(digits)
        case bool() if name == "bool":
            found = value
        case str() if name in TEXTS or name in MAX_PRECISION:
            found = value
        case float() | int() if name in FLOATS and value - value == 0:
            found = float(value)
        case int() if not isinstance(value, bool):
            found = value
        case float() if value.is_integer():
            found = int(value)
        case _:
            pass
    is_number = isinstance(found, int) and not isinstance(found, bool)
    if found is None or (is_number and (name in _NOT_INTEGERS or abs(int(found)) >= 2**64)):
        raise InvalidInput(f"a split point has a value that is not of column `{column.name}`")
    return found


def table_to_json(spec: TableSpec) -> dict[str, JSON]:
    """Returns a table as JSON."""
    storage, default = spec.storage, Storage()
    form: dict[str, JSON] = {
        "database": spec.database,
        "name": spec.name,
        "columns": [column_to_json(column) for column in spec.columns],
        "row_keys": list(spec.row_keys),
        "unique": spec.unique,
        "sort_keys": list(spec.sort_keys),
        "partitions": _partitions_to_json(spec),
        "description": spec.description,
        "storage": {
            name: value for name in Storage.__slots__ if (value := getattr(storage, name)) != getattr(default, name)
        },
        "tags": dict(sorted(spec.tags.items())),
        "renamed_from": spec.renamed_from,
        "indexes": [index_to_json(index) for index in spec.indexes],
        "embedding": embedding_to_json(spec.embedding) if spec.embedding else {},
        "services": services_to_json(spec.services),
        "retention": retention_to_json(spec.retention) if spec.retention else None,
        "holds": holds_to_json(spec.holds),
        "retain_changes": spec.retain_changes,
        "view": view_to_json(spec.view) if spec.view else {},
    }
    form = {name: value for name, value in form.items() if value or name == "columns"}
    if not spec.online:
        form["online"] = False
    if not spec.deletion_protection:
        form["deletion_protection"] = False
    return form


def _partitions_to_json(spec: TableSpec) -> dict[str, JSON]:
    form: dict[str, JSON] = {}
    if spec.split_points:
        form["split_points"] = [key_to_json(point) for point in spec.split_points]
    if spec.max_rows_per_leaf is not None:
        form["max_rows_per_leaf"] = spec.max_rows_per_leaf
    return form


def table_from_json(form: Mapping[str, JSON]) -> TableSpec:
    """Returns the table from the form that `table_to_json` returns. Raises InvalidInput for an invalid form; the error
    names the fault."""
    columns = tuple(column_from_json(column) for column in objects(form, "columns"))
    row_keys = texts(form, "row_keys")
    by_name = {column.name: column for column in columns}
    key_columns = [by_name[name] for name in row_keys if name in by_name]  # a live table may lack a key's column
    partitions = mapping(form, "partitions", {})
    return TableSpec(
        database=_name(form, "database"),
        name=_name(form, "name"),
        columns=columns,
        row_keys=row_keys,
        sort_keys=texts(form, "sort_keys"),
        split_points=tuple(key_from_json(point, key_columns) for point in lists(partitions, "split_points")),
        max_rows_per_leaf=optional_whole(partitions, "max_rows_per_leaf"),
        description=text(form, "description", ""),
        online=flag(form, "online", True),
        deletion_protection=flag(form, "deletion_protection", True),
        storage=storage_from_json(mapping(form, "storage", {})),
        renamed_from=optional_text(form, "renamed_from"),
        tags=text_map(form, "tags"),
        indexes=tuple(index_from_json(index) for index in objects(form, "indexes", ())),
        services=services_from_json(mapping(form, "services", {})),
        unique=flag(form, "unique", False),
        embedding=embedding_from_json(mapping(form, "embedding", {})),
        retention=retention_from_json(form.get("retention")),
        holds=holds_from_json(form.get("holds")),
        retain_changes=retained_changes_from_json(form.get("retain_changes")),
        view=view_from_json(mapping(form, "view", {})),
    )


def _name(form: Mapping[str, JSON], name: str) -> str:
    """Returns the name of a table or database, which becomes a part of a path."""
    found = text(form, name)
    if (fault := fault_of_name(found)) is not None:
        raise InvalidInput(f"`{name}`: {shortened(found, 80)} {fault}")
    return found


def storage_in_full(storage: Storage) -> dict[str, JSON]:
    """Returns all settings of storage, including defaults, in the form of the state."""
    return {name: getattr(storage, name) for name in Storage.__slots__}


def storage_from_json(form: Mapping[str, JSON]) -> Storage:
    """Returns the settings of storage. Missing settings have their defaults.

    Raises InvalidInput for a form that a spec cannot declare.
    """
    given, default = {name: each for name, each in form.items() if each is not None}, Storage()
    if any(each != getattr(default, name, None) for name, each in given.items()):  # most tables skip this
        refuse_unfit("storage", partial(ref, "storage"), given)
    return Storage(
        data_storage_version=text(form, "data_storage_version", default.data_storage_version),
        max_rows_per_file=whole(form, "max_rows_per_file", default.max_rows_per_file),
        max_bytes_per_file=whole(form, "max_bytes_per_file", default.max_bytes_per_file),
        stable_row_ids=None if form.get("stable_row_ids") is None else flag(form, "stable_row_ids"),
        keep_replaced_for=text(form, "keep_replaced_for", default.keep_replaced_for),
    )


def instance_to_json(spec: InstanceSpec) -> dict[str, JSON]:
    """Returns an instance as JSON. The options of `state` are beside `backend`, those of a cluster beside `kind`."""
    form: dict[str, JSON] = {
        "name": spec.name,
        "root": spec.root,
        "description": spec.description,
        "state": {"backend": spec.state.backend, **spec.state.options} if spec.state != StateBackend() else {},
        "clusters": {cluster.name: {"kind": cluster.kind, **cluster.options} for cluster in spec.clusters},
        "tags": dict(sorted(spec.tags.items())),
        "notify": list(spec.notify),
    }
    form = {name: value for name, value in form.items() if value or name in ("name", "root")}
    if spec.engine != "auto":
        form["engine"] = spec.engine
    return form


def instance_from_json(form: Mapping[str, JSON]) -> InstanceSpec:
    """Returns the instance from the form that `instance_to_json` returns. Raises InvalidInput for an invalid form; the
    error names the fault."""
    state, clusters = plain(mapping(form, "state", {})), mapping(form, "clusters", {})
    return InstanceSpec(
        name=text(form, "name"),
        root=text(form, "root"),
        description=text(form, "description", ""),
        engine=text(form, "engine", "auto"),
        state=StateBackend(
            text(state, "backend", "sqlite"), {name: value for name, value in state.items() if name != "backend"}
        ),
        clusters=tuple(_cluster(name, mapping(clusters, name)) for name in sorted(clusters)),  # Pulumi keeps no order
        tags=text_map(form, "tags"),
        notify=texts(form, "notify"),
    )


def _cluster(name: str, form: Mapping[str, JSON]) -> Cluster:
    return Cluster(name, text(form, "kind"), plain({key: value for key, value in form.items() if key != "kind"}))
