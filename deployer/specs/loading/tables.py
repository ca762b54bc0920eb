"""Table declarations: reads documents as `TableSpec`s, and checks the rules of a single table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deployer.errors import Position, Problem
from deployer.platform.sql.one_expression import NotOneExpression
from deployer.platform.sql.parsing import check_expression
from deployer.platform.text.units import SPEC_DURATION, canonical_duration
from deployer.specs.declarations.columns import DeclaredColumn, Places, check_sources
from deployer.specs.declarations.embeddings import read_embedding
from deployer.specs.declarations.indexes import index_places, read_indexes
from deployer.specs.declarations.ingest import check_ingest, with_ingest
from deployer.specs.declarations.retention import (
    check_expire,
    hold_places,
    read_holds,
    read_retained_changes,
    read_retention,
)
from deployer.specs.declarations.services import Defaults, read_services, service_places
from deployer.specs.loading.computed import LONGEST_EXPRESSION, TableColumns, check_computed
from deployer.specs.loading.partitions import read_leaf_limit, read_split_points
from deployer.specs.loading.schemas import ComposedColumns, Schemas
from deployer.specs.model import Storage, TableSpec
from deployer.specs.rules import Rule
from deployer.specs.sources.files import Document
from deployer.specs.sources.modules import VersionOf, no_versions
from deployer.specs.types.lance_support import NEWER, newer_findings
from deployer.specs.types.types import Blob, Column, Dictionary, Scalar, children, format_type
from deployer.specs.validation.validate import check_shape
from deployer.specs.values.keys import instead_of, is_key_type
from deployer.specs.yaml.nodes import Node
from deployer.specs.yaml.suggestions import nearest
from deployer.state.model.location import RESERVED

Report = Callable[[Position, Rule, str, str], None]


def read_table(
    document: Document,
    schemas: Schemas,
    defaults: Defaults,
    problems: list[Problem],
    versions: VersionOf = no_versions,
) -> TableSpec:
    """Returns the valid parts of the table; faults are added to `problems`, and the lake is then refused.

    `versions` returns the versions of functions that are declared without one.
    """

    def report(at: Position, rule: Rule, what: str, remedy: str) -> None:
        problems.append(Problem(at, what, remedy, rule))

    database, name = _text(document, "database"), _text(document, "name")
    label = f"{document.kind.lower()} `{database}.{name}`"
    if database.lower() in RESERVED:
        at = document.get("database") or document.node
        what = f"a database cannot be called `{database}`, which is a folder of deployer's own in the root"
        report(at.at, Rule.RESERVED_NAME, what, "use another name")
    composed = schemas.compose(document, label)
    columns = tuple(declared.column for declared in composed.columns)
    if not columns and composed.complete:
        report(document.node.at, Rule.NO_COLUMNS, f"{label} has no columns", "add `columns:` or `schemas:`")
        composed = ComposedColumns((), False, None)
    by_name = {column.name: column for column in columns}
    storage = _storage(document)
    _check_storage(document, storage, composed.columns, label, report)
    row_keys = _keys(document, "row_keys", by_name, composed.lacks, report)
    sort_keys = _keys(document, "sort_keys", by_name, composed.lacks, report)
    for key in _items(document.get("sort_keys")):
        if key.value in row_keys:
            what = f"`{key.value}` is a row key already"
            report(key.at, Rule.OVERLAPPING_KEYS, what, "remove it here; rows are sorted by their row keys first")
    _check_row_keys(document, by_name, report)
    unique = _unique(document, label, report)
    max_rows_per_leaf = read_leaf_limit(document, label, report)
    split_points = read_split_points(document, [by_name.get(key) for key in row_keys], label, report)
    _check_column_renames(columns, report)
    for column in columns:
        _check_no_sql(column, column, report)
    for declared in composed.columns:
        _check_sql(declared, report)
    check_sources(composed.columns, report)
    ordered_by = dict.fromkeys(sort_keys, "sort key") | dict.fromkeys(row_keys, "row key")
    columns = check_computed(
        TableColumns(composed.columns, ordered_by, composed.lacks, composed.complete), versions, report
    )
    indexes = read_indexes(document.valid("indexes"), columns, composed.lacks, report)
    embedding = read_embedding(document.valid("embedding"), columns, composed.lacks, report)
    keys = None if document.invalid & {"row_keys", "sort_keys"} else (*row_keys, *sort_keys)
    expires = document.get("retention")
    services = read_services(
        with_ingest(document.valid("services"), document.valid("ingest")),
        defaults,
        columns,
        keys,
        composed.lacks,
        report,
        expires=expires is not None,
    )
    services = check_expire(services, expires, document.get("services"), report)
    check_ingest(document.valid("ingest"), columns, row_keys, composed.lacks, defaults.root, report)
    return TableSpec(
        database=database,
        name=name,
        columns=columns,
        row_keys=row_keys,
        sort_keys=sort_keys,
        split_points=split_points,
        max_rows_per_leaf=max_rows_per_leaf,
        description=_text(document, "description").strip(),
        online=_flag(document, "online"),
        deletion_protection=_flag(document, "deletion_protection"),
        storage=storage,
        renamed_from=_text(document, "renamed_from") or None,
        tags=read_tags(document),
        indexes=indexes,
        services=services,
        unique=unique,
        embedding=embedding,
        retention=read_retention(document.valid("retention"), by_name, composed.lacks, report),
        holds=read_holds(document.valid("holds"), columns, composed.complete, report),
        retain_changes=read_retained_changes(document.valid("retain_changes"), report),
        sources=Places(lambda: _places(document, composed.columns, defaults)),
    )


def problems_of_table(form: Mapping[str, Any]) -> list[Problem]:
    """Returns the problems of a table that does not come from specs:

    `form` is its document as plain values. The place of a problem has the property as its file, and the item of a list
    as its line.
    """
    return table_of_document(form)[1]


def table_of_document(form: Mapping[str, Any]) -> tuple[TableSpec | None, list[Problem]]:
    """Returns the valid parts of the table of a document as plain values, and its problems, as `problems_of_table`
    does."""
    node = Node({name: _placed(value, name) for name, value in form.items()}, "", 1, 1)
    problems: list[Problem] = []
    table = None
    if shape := check_shape(node, problems):
        document, schemas = Document(node, *shape), Schemas({}, False, problems)
        table = read_table(document, schemas, Defaults(None, None), problems)
    return table, list(dict.fromkeys(problems))


def _placed(value: Any, name: str, line: int = 1) -> Node:
    match value:
        case Mapping():
            return Node({key: _placed(item, name, line) for key, item in value.items()}, name, line, 1)
        case list() | tuple():
            return Node([_placed(item, name, number) for number, item in enumerate(value, 1)], name, line, 1)
        case _:
            return Node(value, name, line, 1)


def read_tags(document: Document) -> Mapping[str, str]:
    """Returns the tags of a Table or Instance."""
    tags = document.get("tags")
    return {key: str(node.value) for key, node in tags.value.items()} if tags and isinstance(tags.value, dict) else {}


def _text(document: Document, name: str) -> str:
    node = document.get(name)
    return str(node.value) if node else ""


def _flag(document: Document, name: str) -> bool:
    node = document.get(name)
    return node.value is True if node else True


def _items(node: Node | None) -> Sequence[Node]:
    return node.value if node is not None and isinstance(node.value, list) else ()


def _places(document: Document, columns: Sequence[DeclaredColumn], defaults: Defaults) -> Mapping[str, Position]:
    places = {"": document.node.at}
    assert isinstance(document.node.value, dict)  # noqa: S101
    for key, node in document.node.value.items():
        places[key] = node.key_at
    for declared in columns:
        for path, at in declared.places():
            places["columns." + path] = at
    for name, at in hold_places(document.valid("holds")):
        places["holds." + name] = at
    if (expires := document.get("retention")) is not None:
        places["services.expire"] = expires.key_at
    for path, at in index_places(document.valid("indexes")):
        places["indexes." + path] = at
    for path, at in service_places(with_ingest(document.get("services"), document.get("ingest")), defaults):
        places["services." + path] = at
    return places


def _duration(value: object, default: str) -> str:
    """Returns a duration in canonical form; the JSON Schema reports any other text."""
    return canonical_duration(value) if isinstance(value, str) and re.fullmatch(SPEC_DURATION, value) else default


def _storage(document: Document) -> Storage:
    node = document.valid("storage")
    options = node.value if node and isinstance(node.value, dict) else {}
    values = {key: option.value for key, option in options.items()}
    default = Storage()
    stable = values.get("stable_row_ids")
    return Storage(
        data_storage_version=str(values.get("data_storage_version", default.data_storage_version)),
        max_rows_per_file=_whole(values.get("max_rows_per_file"), default.max_rows_per_file),
        max_bytes_per_file=_whole(values.get("max_bytes_per_file"), default.max_bytes_per_file),
        stable_row_ids=stable if isinstance(stable, bool) else None,
        keep_replaced_for=_duration(values.get("keep_replaced_for"), default.keep_replaced_for),
    )


def _is_known(document: Document, name: str, field: str) -> bool:
    """Returns whether a field of a property is valid, or left out."""
    if name not in document.invalid:
        return True
    given = document.node.value.get(name) if isinstance(document.node.value, dict) else None
    valid = document.valid(name)
    if given is None or valid is None or not isinstance(given.value, dict) or not isinstance(valid.value, dict):
        return False
    return (field in given.value) == (field in valid.value)


def _whole(value: object, default: int) -> int:
    return int(value) if isinstance(value, (int, float)) else default


def _check_storage(
    document: Document, storage: Storage, columns: Sequence[DeclaredColumn], label: str, report: Report
) -> None:
    if storage.data_storage_version < NEWER and _is_known(document, "storage", "data_storage_version"):
        for declared in columns:
            column = declared.column
            if isinstance(column.type, (Scalar, Dictionary, Blob)):
                continue
            for finding in newer_findings(column.type):
                what = f"{finding.what}, and {label} has {storage.data_storage_version}"
                report(declared.type_at, finding.rule, what, finding.remedy)


def _keys(
    document: Document, field: str, columns: Mapping[str, Column], lacks: Callable[[str], bool], report: Report
) -> tuple[str, ...]:
    keys: list[str] = []
    for node in _items(document.get(field)):
        key = str(node.value)
        if key in keys:
            report(node.at, Rule.REPEATED_KEY, f"`{key}` is in `{field}` twice", "remove the second one")
            continue
        keys.append(key)
        column = columns.get(key)
        if column is None:
            if lacks(key):
                near = nearest(key, tuple(columns))
                remedy = f"did you mean {near}?" if near else "name one of the table's columns"
                report(node.at, Rule.UNKNOWN_KEY, f"no column `{key}`, which `{field}` names", remedy)
        elif not is_key_type(column.type):
            what = f"column `{key}` of type {format_type(column.type)} has no order, which `{field}` needs"
            report(node.at, Rule.KEY_TYPE, what, instead_of(column.type))
    return tuple(keys)


def _check_row_keys(document: Document, columns: Mapping[str, Column], report: Report) -> None:
    seen: set[object] = set()
    for node in _items(document.get("row_keys")):
        column = columns.get(str(node.value))
        if column and column.nullable and node.value not in seen:
            where = f" ({column.at})" if column.at else ""
            what = f"row key `{column.name}` may be null"
            remedy = f"add `nullable: false` to the column{where}"
            if document.kind == "View":
                remedy = (
                    f"add `{{name: {column.name}, nullable: false}}` to `columns:`, and let the query leave nulls out"
                )
            report(node.at, Rule.NULLABLE_KEY, what, remedy)
        seen.add(node.value)


def _unique(document: Document, label: str, report: Report) -> bool:
    node = document.get("unique")
    if node is None or node.value is not True:
        return False
    if not document.get("row_keys") and "row_keys" not in document.invalid:
        what = f"{label} is declared with unique row keys, but has no row keys"
        report(node.at, Rule.UNIQUE_WITHOUT_KEYS, what, "add `row_keys:`, or remove `unique`")
        return False
    return True


def _check_column_renames(columns: Sequence[Column], report: Report) -> None:
    """Checks renames of columns in one table or struct, and in the structs inside of it."""
    declared = {column.name for column in columns}
    sources: dict[str, str] = {}
    for column in columns:
        if nested := children(column.type):
            _check_column_renames(nested, report)
        before = column.renamed_from
        if before is None or column.at is None:
            continue
        if before == column.name:
            report(
                column.at,
                Rule.RENAMED_FROM_ITSELF,
                f"column `{before}` is renamed from itself",
                "remove `renamed_from`",
            )
        elif before in declared:
            what = f"column `{column.name}` is renamed from `{before}`, which is still declared"
            report(column.at, Rule.RENAMED_FROM_DECLARED, what, f"remove column `{before}`, or `renamed_from`")
        elif before in sources:
            what = f"columns `{sources[before]}` and `{column.name}` are both renamed from `{before}`"
            report(column.at, Rule.RENAMED_FROM_TWICE, what, "keep `renamed_from` in one of them")
        sources.setdefault(before, column.name)


def _check_sql(declared: DeclaredColumn, report: Report) -> None:
    """Checks the text of the expression. A plan evaluates it on the table's rows."""
    column = declared.column
    for name, text in (("default", column.default), ("using", column.using)):
        if not text:
            continue
        try:
            check_expression(text, LONGEST_EXPRESSION)
        except NotOneExpression as wrong:
            what = f"`{name}` of column `{column.name}` is not one SQL expression: it has {wrong}"
            report(declared.place_of(name), Rule.SQL_EXPRESSION, what, "write one value, such as CAST(delay AS INT)")


def _check_no_sql(column: Column, inside: Column, report: Report) -> None:
    """Reports SQL of nested fields: values are computed only for whole columns."""
    for field in children(inside.type):
        for name, text in (("default", field.default), ("using", field.using)):
            if text and field.at is not None:
                what = f"`{name}` of a field inside column `{column.name}`, which only columns can have"
                remedy = f"remove it, or give `{column.name}` one for its whole value"
                report(field.at, Rule.SQL_OF_A_FIELD, what, remedy)
        _check_no_sql(column, field, report)
