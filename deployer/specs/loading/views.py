"""View declarations: reads documents as `TableSpec`s with a query.

The columns of a view are those of DataFusion's plan of its query over the declared columns of its tables. With them, a
view's document is read by the rules of tables. Functions are never imported, and nothing is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from deployer.errors import Position, Problem
from deployer.platform.sql.select import NotOneSelect, check_select, named_tables
from deployer.specs.declarations.services import Defaults
from deployer.specs.loading.schemas import Schemas
from deployer.specs.loading.tables import read_table
from deployer.specs.loading.view_columns import columns_of_view
from deployer.specs.loading.view_properties import (
    DeclaredView,
    check_own_services,
    read_functions,
    read_staleness,
    without_services,
)
from deployer.specs.model import TableSpec
from deployer.specs.rules import Rule
from deployer.specs.schema.views import VIEW
from deployer.specs.sources.files import Document
from deployer.specs.sources.modules import VersionOf
from deployer.specs.types.view import ViewSpec
from deployer.specs.yaml.suggestions import reference_remedy

_OF_TABLES_ALONE = (
    "BACKFILL",
    "EXPIRE",
    "INGEST",
)  #: services that write rows or values, which only refreshes do in views
Report = Callable[[Position, Rule, str, str], None]


@dataclass(frozen=True, slots=True)
class ViewReader:
    """The context in which the views of a lake are read. `incomplete`: unread files or documents may declare tables."""

    schemas: Schemas
    defaults: Defaults
    problems: list[Problem]
    versions: VersionOf
    incomplete: bool

    def report(self, at: Position, rule: Rule, what: str, remedy: str) -> None:
        self.problems.append(Problem(at, what, remedy, rule))


def read_views(
    documents: Sequence[Document], tables: Iterable[tuple[TableSpec, Document]], reader: ViewReader
) -> list[tuple[TableSpec, Document]]:
    """Returns the valid parts of the views in the order of their documents; `tables` are those of the lake."""
    declared = [_declared(document, reader) for document in documents]
    known: dict[str, TableSpec | None] = {}  # None: its columns are unknown
    for table, document in tables:
        known[table.full_name] = None if document.invalid & {"columns", "schemas"} or not table.columns else table
    of_views = {each.full_name: each for each in declared}
    for view in declared:
        _check_sources(view, [*known, *of_views], reader)
    in_cycles = _check_cycles(declared, of_views, reader)
    found: dict[int, TableSpec] = {}
    for view in _in_order(declared, of_views, in_cycles):
        spec = _read(view, known, reader, planned=view.full_name not in in_cycles)
        found[id(view)] = spec
        known.setdefault(view.full_name, spec if spec.columns else None)
    return [(found[id(view)], view.document) for view in declared]


def _declared(document: Document, reader: ViewReader) -> DeclaredView:
    node = document.get("query")
    text = str(node.value).strip() if node is not None else ""
    database, name = (str(each.value) if (each := document.get(key)) else "" for key in ("database", "name"))
    view = DeclaredView(document, f"{database}.{name}", text)
    if node is None:
        return view
    try:
        check_select(text)
    except NotOneSelect as wrong:
        what = f"the query of view `{view.full_name}` is not one SELECT: {wrong}"
        reader.report(node.at, Rule.VIEW_QUERY, what, "write one SELECT, such as SELECT carrier FROM nyc.flights")
        return view
    named = named_tables(text)
    for bare in named.bare:
        what = f"the query of view `{view.full_name}` reads `{bare}`, which is not the full name of a table"
        reader.report(
            node.at, Rule.VIEW_SOURCE, what, f"write `{database}.{bare}`, or another database before the name"
        )
    if not named.full and not named.bare:
        what = f"the query of view `{view.full_name}` reads no table"
        reader.report(node.at, Rule.VIEW_SOURCE, what, "add FROM with the full name of a table")
    return replace(view, sources=named.full, plannable=bool(named.full) and not named.bare)


def _check_sources(view: DeclaredView, names: Sequence[str], reader: ViewReader) -> None:
    node = view.document.get("query")
    for name in view.sources:
        if node is None or name in names:
            continue
        remedy = reference_remedy(name, names, "declare it, or read another table")
        if reader.incomplete and not remedy.startswith("did you mean"):
            continue
        what = f"view `{view.full_name}` reads `{name}`, which is not declared"
        if any(name == each.lower() for each in names):
            exact = next(each for each in names if name == each.lower())
            remedy = "write it in quotes, as it has capitals: " + ".".join(f'"{part}"' for part in exact.split("."))
        reader.report(node.at, Rule.VIEW_SOURCE, what, remedy)


def _check_cycles(
    declared: Sequence[DeclaredView], of_views: Mapping[str, DeclaredView], reader: ViewReader
) -> frozenset[str]:
    """Returns the views of cycles, each of which is reported once with its path."""
    inside: set[str] = set()
    for view in declared:
        if view.full_name in inside or (path := _path_back(view.full_name, of_views)) is None:
            continue
        inside.update(path)
        node = view.document.get("query")
        assert node is not None  # noqa: S101 -- it has sources
        if len(path) == 1:
            what, remedy = f"view `{view.full_name}` reads itself", "read the tables that it is made of"
        else:
            what = f"views read each other in a cycle: {' → '.join((*path, path[0]))}"
            remedy = "let one of them read the tables that the other is made of"
        reader.report(node.at, Rule.VIEW_CYCLE, what, remedy)
    return frozenset(inside)


def _path_back(start: str, of_views: Mapping[str, DeclaredView]) -> tuple[str, ...] | None:
    """Returns the views from `start` until one that reads it; None where none does."""
    pending: list[tuple[str, ...]] = [(start,)]
    seen: set[str] = set()
    while pending:
        path = pending.pop()
        view = of_views.get(path[-1])
        for name in view.sources if view is not None else ():
            if name == start:
                return path
            if name not in seen:
                seen.add(name)
                pending.append((*path, name))
    return None


def _in_order(
    declared: Sequence[DeclaredView], of_views: Mapping[str, DeclaredView], in_cycles: frozenset[str]
) -> list[DeclaredView]:
    """Returns the views, each after its sources; views of cycles come first."""
    waiting = [view for view in declared if view.full_name not in in_cycles]
    order = [view for view in declared if view.full_name in in_cycles]
    while waiting:
        pending = {view.full_name for view in waiting}
        ready = [view for view in waiting if not pending & {*view.sources} - {view.full_name}] or waiting
        order += ready
        waiting = [view for view in waiting if not any(view is each for each in ready)]
    return order


def _read(view: DeclaredView, known: Mapping[str, TableSpec | None], reader: ViewReader, *, planned: bool) -> TableSpec:
    document, report = view.document, reader.report
    functions = read_functions(view, report)
    staleness = read_staleness(document.get("max_staleness"), report)
    sources = {name: known.get(name) for name in view.sources}
    given = document.get("functions")
    are_known = given is None or (isinstance(given.value, dict) and given.value.keys() == functions.keys())
    planned = planned and view.plannable and are_known and "functions" not in document.invalid
    columns = columns_of_view(view, sources, functions, report) if planned else None
    check_own_services(document.get("services"), _OF_TABLES_ALONE, report)
    assert isinstance(document.node.value, dict)  # noqa: S101
    properties = {name: node for name, node in document.node.value.items() if name in VIEW["properties"]}
    properties.pop("columns", None)
    invalid = document.invalid | {"columns"}
    if columns is not None:
        place = document.get("columns") or document.get("query") or document.node
        properties["columns"] = place._replace(value=list(columns.nodes))
        invalid -= {"columns"}
    if (services := properties.get("services")) is not None:
        properties["services"] = without_services(services, _OF_TABLES_ALONE)
    defaults = replace(reader.defaults, services=without_services(reader.defaults.services, _OF_TABLES_ALONE))
    as_table = Document(document.node._replace(value=properties), "View", invalid, document.unresolved)
    spec = read_table(as_table, reader.schemas, defaults, reader.problems, reader.versions)
    reads, lineage = (columns.reads, columns.lineage) if columns is not None else ({}, {})
    return replace(spec, view=ViewSpec(view.query, functions, staleness, reads, lineage))
