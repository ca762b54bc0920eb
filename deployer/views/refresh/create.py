"""Creates views: tables whose columns and rows come from a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deployer.errors import Conflict, InvalidInput
from deployer.platform.sql.one_expression import names_in
from deployer.platform.sql.select import without_comments
from deployer.specs.model import Storage, TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.specs.types.view import FUNCTION_NAME
from deployer.state.model.names import fault_of_name
from deployer.state.reader import StateReader
from deployer.state.store import StateStore
from deployer.tables.admin.tables import create_table
from deployer.tables.open_table import OpenTable, open_entry, read_entry
from deployer.views.definition import VIEW, ViewDefinition, view_definition
from deployer.views.query.model import ViewQuery
from deployer.views.refresh.queries import Queries, names_read, parsed, reads_itself


@dataclass(frozen=True, slots=True)
class NewView:
    """The declaration of a view to create. `row_keys` None uses the query's own keys (see `ViewQuery.default_keys`)."""

    database: str
    name: str
    definition: ViewDefinition
    row_keys: tuple[str, ...] | None = None
    sort_keys: tuple[str, ...] = ()
    description: str = ""
    deletion_protection: bool = True
    storage: Storage = Storage()

    @property
    def full_name(self) -> str:
        return f"{self.database}.{self.name}"


def create_view(store: StateStore, root: str, view: NewView, queries: Queries, owner: str = "") -> OpenTable:
    """Creates the view without rows, and returns its table. The first refresh computes the rows.

    If a view of that name with the same query exists, returns it unchanged. Raises the errors of `check_view`; creates
    nothing in that case.
    """
    spec = check_view(store, root, view, queries)
    there = store.instance().by_name(view.full_name)
    if there is not None and there.status == "active":
        return open_entry(store, root, there)
    table_id = create_table(store, root, spec, owner, declared={VIEW: view.definition.to_json()})
    return open_entry(store, root, store.instance().tables[table_id])


def check_view(store: StateReader, root: str, view: NewView, queries: Queries) -> TableSpec:
    """Returns the specification of the view's table. Writes nothing.

    Raises InvalidInput for a query that cannot be maintained, that reads tables or columns that do not exist, or that
    reads the view itself; the errors of `check_new`; Conflict where a table, or a view with another query, has the
    name.
    """
    check_new(view)
    found = parsed(queries, store, root, view.definition, f"view/{view.full_name}", itself=view.full_name)
    there = store.instance().by_name(view.full_name)
    if there is not None and there.status == "active":
        opened = read_entry(store, root, there)
        known = view_definition(opened.state.properties, opened.address)
        if known is None or known.fingerprint != view.definition.fingerprint:
            what = "a table" if known is None else "a view with another query"
            raise Conflict(
                f"there is {what} of that name already",
                where=opened.address,
                remedy="choose another name, or delete it",
            )
    else:
        refuse_cycle(store, root, queries, view.full_name, tuple(found.entries))
    return spec_of(view, found.query)


def check_new(view: NewView) -> None:
    """Raises InvalidInput for invalid names, for functions that the query does not call, and for a `max_staleness` of
    less than 1 ms."""
    address = f"view/{view.full_name}"
    for name in (view.database, view.name):
        if fault := fault_of_name(name):
            remedy = "name it `database.name`, or `name` for one in the database `default`"
            raise InvalidInput(f"{name!r} {fault}", where=address, remedy=remedy)
    definition = view.definition
    called = names_in(without_comments(definition.query))
    for name in definition.functions:
        if not FUNCTION_NAME.fullmatch(name):
            what = f"{name!r} cannot be the name of a function in a query"
            raise InvalidInput(
                what, where=address, remedy="use small letters, digits and _, and start with a letter or _"
            )
        if name not in called:
            what = f"the query does not call the function {name}"
            raise InvalidInput(what, where=address, remedy="leave the function out, or call it in the query")
    if definition.max_staleness is not None and definition.max_staleness < 1:
        what = "`max_staleness` is not above zero, which no refresh can keep"
        raise InvalidInput(what, where=address, remedy="give a time such as timedelta(hours=1), or leave it out")


def spec_of(view: NewView, query: ViewQuery) -> TableSpec:
    """Returns the specification of a view's table, with all stored columns, including hidden ones. Raises InvalidInput
    for keys that are not columns of the query."""
    keys = query.default_keys if view.row_keys is None else view.row_keys
    for name in (*keys, *view.sort_keys):
        if name not in query.schema.names:
            raise InvalidInput(
                f"{name!r} is declared as a key of the view, but is not a column that its query gives",
                where=f"view/{view.full_name}",
                remedy=f"use one of {', '.join(query.schema.names)}",
            )
    schema = query.stored_schema
    for place, each in enumerate(schema):
        if each.name in keys and each.nullable:
            schema = schema.set(place, each.with_nullable(False))
    return TableSpec(
        view.database,
        view.name,
        columns_of(schema),
        tuple(keys),
        view.sort_keys,
        description=view.description,
        deletion_protection=view.deletion_protection,
        storage=view.storage,
        unique=bool(keys) and query.unique_keys and view.row_keys in (None, query.default_keys),
    )


def refuse_cycle(store: StateReader, root: str, queries: Queries, name: str, sources: Sequence[str]) -> None:
    """Raises InvalidInput, with the path, where a view would read itself, directly or through other views."""
    if path := _path_to(sources_of_all(store, root, queries), name, sources, (name,)):
        raise reads_itself(path)


def sources_of_all(store: StateReader, root: str, queries: Queries) -> dict[str, tuple[str, ...]]:
    """Returns the views of the instance, each with the tables that its query reads. For a query that no longer fits its
    sources, returns the tables up to the first one that it does not fit."""
    found = {}
    for entry in store.instance().tables.values():
        if entry.status != "active":
            continue
        table = read_entry(store, root, entry)
        definition = view_definition(table.state.properties, table.address)
        if definition is not None:
            found[entry.full_name] = names_read(queries, table, definition)
    return found


def in_order(views: Mapping[str, Sequence[str]], *wanted: str) -> list[str]:
    """Returns the `wanted` views and the views that they read, each after the views that it reads. Without `wanted`,
    returns all views."""
    done: dict[str, None] = {}

    def visit(name: str, above: frozenset[str]) -> None:
        if name in done or name in above or name not in views:
            return
        for source in sorted(views[name]):
            visit(source, above | {name})
        done[name] = None

    for name in wanted or sorted(views):
        visit(name, frozenset())
    return list(done)


def _path_to(
    views: Mapping[str, Sequence[str]], name: str, sources: Sequence[str], so_far: tuple[str, ...]
) -> tuple[str, ...]:
    for each in sources:
        if each == name:
            return (*so_far, name)
        if each not in so_far and (found := _path_to(views, name, views.get(each, ()), (*so_far, each))):
            return found
    return ()
