"""The columns of a view: those of its query, with the properties in the view's document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deployer.errors import DeployerError, Position
from deployer.platform.sql.select import NotOneSelect, NotPlanned, plan_select
from deployer.specs.loading.view_properties import DeclaredView
from deployer.specs.model import TableSpec
from deployer.specs.rules import Rule
from deployer.specs.types.column_names import name_fault
from deployer.specs.types.types import Column, format_type
from deployer.specs.types.view import HIDDEN, ViewFunction
from deployer.specs.yaml.nodes import Node
from deployer.specs.yaml.suggestions import nearest

if TYPE_CHECKING:
    import pyarrow as pa

Report = Callable[[Position, Rule, str, str], None]
Origins = Mapping[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class ViewColumns:
    """The columns of a view in the form of a table's document, and the columns that its query reads."""

    nodes: tuple[Node, ...]
    reads: Mapping[str, tuple[str, ...]]
    lineage: Origins


def columns_of_view(
    view: DeclaredView,
    sources: Mapping[str, TableSpec | None],
    functions: Mapping[str, ViewFunction],
    report: Report,
) -> ViewColumns | None:
    """Returns the columns of a view, whose sources are None where their columns are unknown; None where the query
    cannot be planned, which is reported, or where something that it needs is unknown."""
    known = {name: table for name, table in sources.items() if table is not None}
    if len(known) < len(sources) or view.document.unresolved & {"query", "functions"}:
        return None
    declared = dict(_named(view.document.valid("columns")))
    query = view.document.get("query")
    assert query is not None  # noqa: S101 -- only queries are planned
    if any(not each.returns for each in functions.values()):
        return _as_declared(view, known, declared, functions, report)
    planned = _planned(view, known, functions, query.at, report)
    if planned is None:
        return None
    columns, reads, lineage = planned
    for name in declared.keys() - {column.name for column in columns}:
        near = nearest(name, tuple(column.name for column in columns))
        remedy = f"did you mean {near}?" if near else f"the query gives {', '.join(each.name for each in columns)}"
        what = f"the query of view `{view.full_name}` gives no column `{name}`"
        report(declared[name].at, Rule.VIEW_COLUMN, what, remedy)
    nodes = tuple(_node(column, declared.get(column.name), query, report) for column in columns)
    return ViewColumns(nodes, reads, lineage)


def _planned(
    view: DeclaredView,
    tables: Mapping[str, TableSpec],
    functions: Mapping[str, ViewFunction],
    at: Position,
    report: Report,
) -> tuple[list[Column], Mapping[str, tuple[str, ...]], Origins] | None:
    from deployer.specs.types.arrow import arrow_schema, arrow_type, column_of  # loads pyarrow, which only views need
    from deployer.specs.types.parser import parse_type

    returned: dict[str, pa.DataType] = {name: arrow_type(parse_type(each.returns)) for name, each in functions.items()}
    schemas = {name: arrow_schema(table.columns) for name, table in tables.items()}
    try:
        planned = plan_select(view.query, schemas, returned)
    except (NotOneSelect, NotPlanned) as wrong:
        names = tuple(dict.fromkeys(column.name for table in tables.values() for column in table.columns))
        missing = wrong.column if isinstance(wrong, NotPlanned) else ""
        near = nearest(missing, names) if missing else None
        near = near if near is None or near == near.lower() else f'"{near}", in quotes'
        remedy = f"did you mean {near}?" if near else _otherwise(missing, tables)
        if str(wrong).startswith("invalid function"):
            remedy = "declare it in `functions:`, or use a function that DataFusion has"
        report(at, Rule.VIEW_QUERY, f"the query of view `{view.full_name}` cannot be planned: {wrong}", remedy)
        return None
    columns: list[Column] = []
    for field in planned.schema:
        fault = _fault_of_name(field.name)
        if fault or any(column.name.lower() == field.name.lower() for column in columns):
            what = fault or "another column has the name too"
            what = f"column `{field.name}` of the query of view `{view.full_name}` cannot be called so: {what}"
            report(at, Rule.VIEW_COLUMN, what, "give it a name with AS")
            return None
        try:
            columns.append(column_of(field.remove_metadata()))
        except DeployerError as error:
            what = f"column `{field.name}` of view `{view.full_name}` cannot be stored: {error.what}"
            report(at, Rule.VIEW_COLUMN, what, error.remedy or "CAST it to another type")
            return None
    return columns, planned.reads, planned.lineage


def _fault_of_name(name: str) -> str:
    if name.startswith(HIDDEN):
        return f"names that begin with {HIDDEN} are those of columns that refreshes keep for themselves"
    fault = name_fault(name)
    return fault.what if fault is not None else ""


def _otherwise(column: str, tables: Mapping[str, TableSpec]) -> str:
    if not column:
        return "correct the query; `deployer sql` runs it on the tables"
    listed = "; ".join(
        f"{name} has {', '.join(each.name for each in table.columns[:20])}" for name, table in tables.items()
    )
    return f"use columns of the tables: {listed}"


def _as_declared(
    view: DeclaredView,
    tables: Mapping[str, TableSpec],
    declared: Mapping[str, Node],
    functions: Mapping[str, ViewFunction],
    report: Report,
) -> ViewColumns | None:
    """Returns the columns of the document, which need types, where a function does not declare its result type."""
    unknown = next(name for name, each in functions.items() if not each.returns)
    node = view.document.get("functions") or view.document.node
    untyped = [name for name, item in declared.items() if isinstance(item.value, dict) and "type" not in item.value]
    if untyped or not declared:
        missing = f"column `{untyped[0]}` has no `type`" if untyped else "the view lists no `columns`"
        what = f"function `{unknown}` has no `returns`, and {missing}"
        remedy = f"add the type of its values, such as `returns: string`, to function `{unknown}`"
        report(node.at, Rule.VIEW_FUNCTION, what, remedy)
        return None
    from deployer.platform.sql.one_expression import names_in

    mentioned = names_in(view.query)
    reads = {
        name: tuple(column.name for column in table.columns if column.name in mentioned)
        for name, table in sorted(tables.items())
    }
    return ViewColumns(tuple(declared.values()), reads, {})


def _node(column: Column, declared: Node | None, query: Node, report: Report) -> Node:
    """Returns the column in the form of a table's document, with the most informative place."""
    place = declared or query
    own = declared.value if declared is not None and isinstance(declared.value, dict) else {}
    kind = format_type(column.type)
    if (typed := own.get("type")) is not None:
        from deployer.specs.declarations.columns import column_type_of

        wanted = format_type(column_type_of(typed))
        if wanted != kind:
            what = f"column `{column.name}` is declared as {wanted}, and the query gives {kind}"
            report(typed.at, Rule.VIEW_COLUMN, what, f"write `type: {kind}`, or CAST it in the query")
    form = {"name": place._replace(value=column.name), "type": place._replace(value=kind)}
    if "nullable" in own:
        form["nullable"] = own["nullable"]
    elif not column.nullable:
        form["nullable"] = place._replace(value=False)
    form |= {name: own[name] for name in ("description", "sensitive") if name in own}
    return place._replace(value=form)


def _named(node: Node | None) -> Iterator[tuple[str, Node]]:
    items: Iterable[Node] = node.value if node is not None and isinstance(node.value, list) else ()
    for item in items:
        if isinstance(item.value, dict) and "name" in item.value:
            yield str(item.value["name"].value), item
