"""Writes a lake as canonical YAML without includes, schemas, variables or overlays; `load_lake` reads the same lake
from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, assert_never

import yaml

from deployer.platform.text.units import exact_size
from deployer.platform.text.visible import is_visible, visible_yaml
from deployer.specs.declarations.ingest import ingest_document
from deployer.specs.model import InstanceSpec, KeyValue, Lake, ServiceSpec, TableSpec
from deployer.specs.schema.aws_settings import aws_document
from deployer.specs.schema.services import OWN_PROPERTY, option_document
from deployer.specs.serialized.datasets import dataset_document
from deployer.specs.serialized.services import service_to_json
from deployer.specs.serialized.specs import column_to_json, instance_to_json, table_to_json
from deployer.specs.sources.variables import escaped
from deployer.specs.types.computed import computed_document
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
from deployer.specs.types.view import view_document
from deployer.specs.values.key_times import PER_SECOND
from deployer.specs.yaml.nodes import resolve_plain

_OF_VIEWS = ("query", "functions", "max_staleness")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def lake_to_yaml(lake: Lake) -> str:
    """Returns every document of the lake, the instance first, then its tables by name, then its datasets."""
    tables = sorted(lake.tables, key=lambda table: table.full_name)
    datasets = sorted(lake.datasets, key=lambda dataset: dataset.name)
    documents = (*map(table_to_yaml, tables), *(to_yaml(dataset_document(each)) for each in datasets))
    return "---\n".join((instance_to_yaml(lake.instance), *documents))


def instance_to_yaml(spec: InstanceSpec) -> str:
    """Returns the Instance document that declares `spec`."""
    settings = aws_document(spec.aws)
    return to_yaml({"kind": "Instance", **instance_to_json(spec), **({"aws": settings} if settings else {})})


def table_to_yaml(spec: TableSpec) -> str:
    """Returns the Table or View document that declares `spec`."""
    return to_yaml(table_document(spec))


def table_document(spec: TableSpec) -> dict[str, Any]:
    """Returns the Table or View document as plain values, in the order in which people write it."""
    form: dict[str, Any] = table_to_json(spec)
    form.pop("view", None)
    form["columns"] = [column_document(column) for column in spec.columns]
    if spec.split_points:
        by_name = {column.name: column for column in spec.columns}
        keys = [by_name[name] for name in spec.row_keys if name in by_name]  # the rules may not have been checked
        form["partitions"] |= {"split_points": [split_point_document(point, keys) for point in spec.split_points]}
    form.pop("services", None)
    if services := [service for service in spec.services if service.kind not in OWN_PROPERTY]:
        form["services"] = {service.name: service_document(service) for service in services}
    for service in spec.services:
        if service.kind in OWN_PROPERTY:
            form[OWN_PROPERTY[service.kind]] = ingest_document(service_document(service))
    if spec.view is not None:
        form |= view_document(spec.view)
        form["columns"] = [_view_column(column, spec) for column in form["columns"]]
    first = ("database", "name", "renamed_from", "description", *_OF_VIEWS, "columns")
    return (
        {"kind": "Table" if spec.view is None else "View"} | {name: form[name] for name in first if name in form} | form
    )


def _view_column(form: dict[str, Any], spec: TableSpec) -> dict[str, Any]:
    """Returns a view's declaration of a column: its type only where it is not known otherwise."""
    types_are_known = spec.view is not None and all(each.returns for each in spec.view.functions.values())
    names = ("name", *(() if types_are_known else ("type",)), "nullable", "description", "sensitive")
    return {name: form[name] for name in names if name in form}


def service_document(service: ServiceSpec) -> dict[str, Any]:
    """Returns a service in the form of specs: sizes as people write them."""
    form = service_to_json(service)
    if "bytes" in form.get("trigger", {}):
        form["trigger"]["bytes"] = exact_size(form["trigger"]["bytes"])
    if not service.unsafe_raw and "options" in form:
        form["options"] = {name: option_document(service.kind, name, each) for name, each in form["options"].items()}
    return form


def column_document(column: Column) -> dict[str, Any]:
    """Returns a column in the form of specs; nested types with descriptions are in the long form."""
    form = column_to_json(column)
    form.pop("fields", None)
    computed = {} if column.computed is None else {"computed": computed_document(column.computed)}
    return {**form, "type": type_document(column.type), **computed}


def type_document(column_type: ColumnType) -> Any:
    """Returns a type as text, or in the long form if it has descriptions."""
    if not _has_notes(column_type):
        return format_type(column_type)
    match column_type:
        case Struct(fields):
            return {"struct": [column_document(field) for field in fields]}
        case ListOf(item, large):
            return {"large_list" if large else "list": _element(item)}
        case FixedSizeList(item, size):
            return {"fixed_size_list": {"item": _element(item), "size": size}}
        case MapOf(key, value):
            return {"map": {"key": _element(key, always_there=True), "value": _element(value)}}
        case Scalar() | Dictionary() | Blob():
            return format_type(column_type)
        case _:
            assert_never(column_type)


def _has_notes(column_type: ColumnType) -> bool:
    return any(
        child.description or child.sensitive or child.renamed_from is not None or _has_notes(child.type)
        for child in children(column_type)
    )


def _element(column: Column, *, always_there: bool = False) -> dict[str, Any]:
    form = column_document(column)
    form.pop("name")
    if always_there:
        form.pop("nullable", None)
    return form


def split_point_document(point: Sequence[KeyValue], keys: Sequence[Column]) -> Any:
    """Returns a split point in the form of specs: a value of the first row key, or a list of values of the first
    few."""
    values = [_key_value(value, column) for value, column in zip(point, keys, strict=False)]
    return values[0] if len(values) == 1 else values


def _key_value(value: KeyValue, column: Column) -> Any:
    """Returns the value as `read_key_value` takes it."""
    if isinstance(value, bytes):
        return value.hex()
    if not isinstance(column.type, Scalar) or isinstance(value, str | float | bool):
        return value
    try:
        return _moment(value, column.type)
    except OverflowError:  # a time that Python's own types do not reach
        return value


def _moment(value: int, kind: Scalar) -> Any:
    args = kind.args
    match kind.name:
        case "date32":
            return (_EPOCH + timedelta(days=value)).date().isoformat()
        case "date64":
            return (_EPOCH + timedelta(milliseconds=value)).date().isoformat()
        case "time32" | "time64":
            return _clock(value, str(args[0]))
        case "timestamp":
            days, rest = divmod(value, 86_400 * PER_SECOND[str(args[0])])
            zone = "Z" if args[1:] else ""
            return f"{(_EPOCH + timedelta(days=days)).date().isoformat()}T{_clock(rest, str(args[0]))}{zone}"
        case "duration":
            return f"{value}{args[0]}"
        case _:
            return value


def _clock(value: int, unit: str) -> str:
    seconds, fraction = divmod(value, PER_SECOND[unit])
    digits = len(str(PER_SECOND[unit])) - 1
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:0{digits}}" if fraction else text


def to_yaml(document: Mapping[str, Any]) -> str:
    """Returns one document as YAML that reads as the same values by the core schema of YAML 1.2."""
    text = yaml.dump(
        escaped(document),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=120,
        default_flow_style=False,
        indent=2,
    )
    return visible_yaml(text)


class _Dumper(yaml.SafeDumper):
    """Quotes what YAML 1.2 would not read as text."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    plain = not value or (resolve_plain(value) == value and value.isprintable() and is_visible(value))
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if plain else '"')


_Dumper.add_representer(str, _text)
