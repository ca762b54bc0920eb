"""The query of a view: the search for its sources, the parsing for their columns, and the interface to compute it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from deployer.errors import DeployerError, InvalidInput, NotFound, Refused
from deployer.live.reader import has_unique_keys
from deployer.specs.types.view import HIDDEN
from deployer.state.model.entities import TableEntry
from deployer.tables.open_table import ReadTable, open_entry, read_entry
from deployer.views.definition import ReflectedInputs, ViewDefinition, view_definition
from deployer.views.query.model import (
    OnFailures,
    SourceChanges,
    SourceReader,
    SourceSchema,
    StoredView,
    ViewDelta,
    ViewQuery,
)
from deployer.views.refresh.record import reflected
from deployer.views.refresh.sources import Source, find_source

if TYPE_CHECKING:
    from deployer.state.reader import StateReader
    from deployer.state.store import StateStore


class Queries(Protocol):
    """The interface that parses and computes queries. `deployer.views.query` implements this release's queries."""

    def parse(
        self, definition: ViewDefinition, source_schema: Callable[[str], SourceSchema], where: str
    ) -> ViewQuery: ...

    def build(
        self,
        definition: ViewDefinition,
        query: ViewQuery,
        reader: SourceReader,
        on_failures: OnFailures | None = None,
    ) -> Iterator[pa.RecordBatch]: ...

    def delta(
        self,
        definition: ViewDefinition,
        query: ViewQuery,
        changes: SourceChanges,
        reader: SourceReader,
        view: StoredView,
        on_failures: OnFailures | None = None,
    ) -> ViewDelta: ...


@dataclass(frozen=True)
class FoundQuery:
    """A query, parsed for the columns of its sources, with the sources' entries and schemas by their names."""

    query: ViewQuery
    entries: Mapping[str, TableEntry]
    schemas: Mapping[str, SourceSchema]


def require_view(table: ReadTable) -> ViewDefinition:
    """Returns the definition of a view. Raises InvalidInput for a table that is not one."""
    definition = view_definition(table.state.properties, table.address)
    if definition is None:
        raise InvalidInput(
            f"{table.entry.full_name} is a table and not a view",
            where=table.address,
            remedy="`deployer view list` lists the views",
        )
    return definition


def find_query(
    queries: Queries, table: ReadTable, definition: ViewDefinition, record: StateStore | None = None
) -> FoundQuery:
    """Returns the query of a view, parsed for the current sources.

    With `record`, changes of the sources that Lance has and the log lacks are recorded in that store. Without it, each
    read of the sources finds these changes again. Raises NotFound for a source that no longer exists, and Refused for a
    source that was renamed and for a query that no longer fits the columns of its sources.
    """
    known = _names_then(table.store, reflected(table.state))
    return parsed(queries, table.store, table.root, definition, table.address, known, record=record)


def names_read(queries: Queries, table: ReadTable, definition: ViewDefinition) -> tuple[str, ...]:
    """Returns the names of the tables that the query of a view reads. If the query does not fit one of them, the tables
    after that one are missing."""
    names: dict[str, None] = {}

    def schema_of(name: str) -> SourceSchema:
        names[name] = None
        entry = find_source(table.store.instance().tables, name, None, table.address)
        return source_schema(name, read_entry(table.store, table.root, entry), stable_row_ids=False)

    with suppress(DeployerError):
        queries.parse(definition, schema_of, table.address)
    return tuple(names)


def parsed(
    queries: Queries,
    store: StateReader,
    root: str,
    definition: ViewDefinition,
    view: str,
    known: Mapping[str, str] | None = None,
    *,
    itself: str = "",
    record: StateStore | None = None,
) -> FoundQuery:
    """Returns a query, parsed for the current sources.

    `known` has the ids of the sources at the last refresh, by name. It is None for a new view, for which the errors of
    the parser are raised unchanged. `itself` is the name of a new view: a query that reads this name raises
    InvalidInput unless a table has the name. `record` has the same meaning as in `find_query`.
    """
    entries, schemas = dict[str, TableEntry](), dict[str, SourceSchema]()

    def schema_of(name: str) -> SourceSchema:
        if name not in schemas:
            tables = store.instance().tables
            if name == itself and all(each.full_name != name for each in tables.values()):
                raise reads_itself((name, name))
            entry = find_source(tables, name, (known or {}).get(name), view)
            source = read_entry(store, root, entry) if record is None else open_entry(record, root, entry)
            entries[name] = entry
            schemas[name] = source_schema(name, source, stable_row_ids=bool(source.dataset().has_stable_row_ids))
        return schemas[name]

    return FoundQuery(_parsed(queries, definition, schema_of, view, is_new=known is None), entries, schemas)


def reads_itself(path: Sequence[str]) -> InvalidInput:
    """Returns the error for a view that would read itself, along a path of views that begins and ends with it."""
    return InvalidInput(
        f"the view would read itself: {' → '.join(path)}",
        where=f"view/{path[0]}",
        remedy="let its query read the tables that these views are made of",
    )


def parsed_again(
    queries: Queries, found: FoundQuery, definition: ViewDefinition, sources: Mapping[str, Source], view: str
) -> ViewQuery:
    """Returns the query, parsed for the versions of the sources that are read. If their columns are the same as before,
    returns the known query.

    Raises Refused for a query that does not fit these versions.
    """
    schemas = {
        name: source_schema(name, each.table, each.schema, stable_row_ids=each.stable_row_ids)
        for name, each in sources.items()
    }
    if schemas == found.schemas:
        return found.query

    def schema_of(name: str) -> SourceSchema:
        if name not in schemas:
            raise NotFound(f"there is no table {name}, which the view reads", where=view, remedy="refresh again")
        return schemas[name]

    return _parsed(queries, definition, schema_of, view, is_new=False)


def source_schema(
    name: str, source: ReadTable, schema: pa.Schema | None = None, *, stable_row_ids: bool
) -> SourceSchema:
    """Returns the schema of a source for a query. A source that is a view has only its visible columns."""
    own = source.schema if schema is None else schema
    if view_definition(source.state.properties, source.address) is not None:
        own = pa.schema([each for each in own if not each.name.startswith(HIDDEN)])
    return SourceSchema(name, own, source.row_keys, has_unique_keys(source.state), stable_row_ids)


def _parsed(
    queries: Queries,
    definition: ViewDefinition,
    schema_of: Callable[[str], SourceSchema],
    view: str,
    *,
    is_new: bool,
) -> ViewQuery:
    try:
        return queries.parse(definition, schema_of, view)
    except InvalidInput as error:
        if is_new:
            raise
        raise Refused(
            f"the view's query does not fit its sources any more: {error.what}",
            where=view,
            remedy=f"{error.remedy}; the view stays as it is until its query is changed or its sources fit again",
        ) from error


def _names_then(store: StateReader, record: ReflectedInputs | None) -> dict[str, str]:
    """Returns the ids of the sources by the names that they had at the last refresh. Returns nothing if that version of
    the instance's log is no longer kept."""
    if record is None:
        return {}
    try:
        now = store.instance()  # usually no table was created or deleted since, so this version is the recorded one
        is_now = now.version == record.log_version
        then = (now if is_now else store.instance(at=record.log_version)).tables if record.log_version else {}
    except NotFound:
        return {}
    ids = [each.table_id for each in record.sources]
    return {then[table_id].full_name: table_id for table_id in ids if table_id in then}
