"""Specs as JSON and back: canonical, without positions, what equals its default left out. Used as Pulumi inputs.

A column is `{"name", "type": canonical text, "nullable", "description", "renamed_from", "default", "using", "fields"}`,
where `fields` is
what a type's text cannot hold: `{nested name: {"description", "renamed_from", "fields"}}`. `nullable` is left out when
true. Bytes in split points are `{"base64": "…"}`; integers that a double cannot hold, as which a protobuf Struct
carries numbers, are `{"integer": "…"}`. Whole numbers that come back as doubles become integers again.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never

from deployer.specs.indexes import index_from_json, index_to_json
from deployer.specs.model import Cluster, InstanceSpec, KeyValue, StateBackend, Storage, TableSpec
from deployer.specs.service_form import services_from_json, services_to_json
from deployer.specs.service_schema import plain
from deployer.specs.type_names import FLOATS
from deployer.specs.type_text import parse_type
from deployer.specs.types import (
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

JSON = Any
_DOUBLE_HOLDS = 2**53


def column_to_json(column: Column) -> dict[str, JSON]:
    """One column as JSON."""
    form: dict[str, JSON] = {"name": column.name, "type": format_type(column.type)}
    if not column.nullable:
        form["nullable"] = False
    return form | _notes(column)


def column_from_json(form: Mapping[str, JSON]) -> Column:
    """The inverse of `column_to_json`; raises InvalidInput for a text that is no type."""
    column = Column(form["name"], parse_type(form["type"]), form.get("nullable", True))
    return _with_notes(column, form)


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
    if fields := {child.name: notes for child in children(column.type) if (notes := _notes(child))}:
        form["fields"] = fields
    return form


def _with_notes(column: Column, form: Mapping[str, JSON]) -> Column:
    column = replace(
        column,
        description=form.get("description", ""),
        renamed_from=form.get("renamed_from"),
        default=form.get("default", ""),
        using=form.get("using"),
    )
    fields = form.get("fields")
    return replace(column, type=_type_with_notes(column.type, fields)) if fields else column


def _type_with_notes(column_type: ColumnType, fields: Mapping[str, JSON]) -> ColumnType:
    def noted(child: Column) -> Column:
        return _with_notes(child, fields.get(child.name, {}))

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
    """A (prefix of a) row-key tuple as JSON."""
    return [_key_value_to_json(value) for value in values]


def _key_value_to_json(value: KeyValue) -> JSON:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, int) and abs(value) > _DOUBLE_HOLDS:
        return {"integer": str(value)}
    return value


def key_from_json(form: Sequence[JSON], columns: Sequence[Column]) -> tuple[KeyValue, ...]:
    """The inverse of `key_to_json`; `columns` are the key columns, which say which numbers are floats."""
    return tuple(_key_value_from_json(value, column) for value, column in zip(form, columns, strict=False))


def _key_value_from_json(value: JSON, column: Column) -> KeyValue:
    match value:
        case {"base64": str(text)}:
            return base64.b64decode(text)
        case {"integer": str(text)}:
            return int(text)
        case bool() | str():
            return value
        case _:
            is_float = isinstance(column.type, Scalar) and column.type.name in FLOATS
            return float(value) if is_float else int(value)


def table_to_json(spec: TableSpec) -> dict[str, JSON]:
    """A table as JSON."""
    storage, default = spec.storage, Storage()
    form: dict[str, JSON] = {
        "database": spec.database,
        "name": spec.name,
        "columns": [column_to_json(column) for column in spec.columns],
        "row_keys": list(spec.row_keys),
        "sort_keys": list(spec.sort_keys),
        "partitions": _partitions_to_json(spec),
        "description": spec.description,
        "storage": {
            name: value for name in Storage.__slots__ if (value := getattr(storage, name)) != getattr(default, name)
        },
        "tags": dict(sorted(spec.tags.items())),
        "renamed_from": spec.renamed_from,
        "indexes": [index_to_json(index) for index in spec.indexes],
        "services": services_to_json(spec.services),
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
    """The inverse of `table_to_json`."""
    columns = tuple(column_from_json(column) for column in form["columns"])
    row_keys = tuple(form.get("row_keys", ()))
    by_name = {column.name: column for column in columns}
    key_columns = [by_name[name] for name in row_keys if name in by_name]  # a live table may lack a key's column
    partitions = form.get("partitions", {})
    points, limit = partitions.get("split_points", ()), partitions.get("max_rows_per_leaf")
    return TableSpec(
        database=form["database"],
        name=form["name"],
        columns=columns,
        row_keys=row_keys,
        sort_keys=tuple(form.get("sort_keys", ())),
        split_points=tuple(key_from_json(point, key_columns) for point in points),
        max_rows_per_leaf=None if limit is None else int(limit),
        description=form.get("description", ""),
        online=form.get("online", True),
        deletion_protection=form.get("deletion_protection", True),
        storage=Storage(**plain(form.get("storage", {}))),
        renamed_from=form.get("renamed_from"),
        tags=dict(form.get("tags", {})),
        indexes=tuple(index_from_json(index) for index in form.get("indexes", ())),
        services=services_from_json(form.get("services", {})),
    )


def instance_to_json(spec: InstanceSpec) -> dict[str, JSON]:
    """An instance as JSON; `state` and each cluster carry their options beside `backend` and `kind`."""
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
    """The inverse of `instance_to_json`."""
    state = plain(form.get("state", {}))
    return InstanceSpec(
        name=form["name"],
        root=form["root"],
        description=form.get("description", ""),
        engine=form.get("engine", "auto"),
        state=StateBackend(state.pop("backend", "sqlite"), state),
        clusters=tuple(
            Cluster(name, options["kind"], {key: value for key, value in options.items() if key != "kind"})
            for name, options in sorted(plain(form.get("clusters", {})).items())  # Pulumi keeps no order of them
        ),
        tags=dict(form.get("tags", {})),
        notify=tuple(form.get("notify", ())),
    )
