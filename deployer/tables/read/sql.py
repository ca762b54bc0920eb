"""Runs SQL queries over the tables of an instance, with DataFusion on their Lance datasets. Only reads are allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.datasets.errors import as_deployer_error, first_line, is_of_files
from deployer.errors import DeployerError, InvalidInput, Refused
from deployer.specs.yaml.suggestions import nearest
from deployer.tables.open_table import read_entry
from deployer.tables.read.relation import Relation
from deployer.tables.read.table import Rows
from deployer.tables.read.zoned_literals import with_instants

if TYPE_CHECKING:
    from deployer.state.reader import StateReader


_BARE = re.compile(r"[a-z_][a-z0-9_]*")


def run_sql(store: StateReader, root: str, query: str) -> Rows:
    """Returns the result of a SELECT. Tables are `database.name`, or `name` when it is the only one of that name; names
    with other than small letters, digits and `_` are quoted: `"nyc"."Flights"`.

    Raises Refused for statements that are not queries, InvalidInput for SQL that is wrong.
    """
    import datafusion

    query = with_instants(query)
    context = datafusion.SessionContext(datafusion.SessionConfig().with_information_schema(True))
    relations = _register(context, store, root, query)
    columns = {name: [] if each is None else list(each.schema.names) for name, each in relations.items()}
    allowed = datafusion.SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
    try:
        frame = context.sql_with_options(query, allowed)
        schema = frame.schema()
        batches = _batches(frame, columns)
        first = next(batches, None)
    except DeployerError:
        raise
    except Exception as failure:
        if is_of_files(failure):
            raise as_deployer_error(failure, root) from failure
        raise _explained(failure, columns) from failure
    read = [each for each in relations.values() if each is not None]  # all is planned before the first batch comes
    opened, total = sum(each.opened for each in read), sum(each.total for each in read)
    return Rows(first.schema if first is not None else schema, _chain(first, batches), opened, total)


def _register(context: Any, store: StateReader, root: str, query: str) -> dict[str, Relation | None]:
    """Registers the tables that the query may name. Returns all tables by name, with None for those that it does not
    name."""
    from datafusion import Table
    from datafusion.catalog import Schema

    entries = [entry for entry in store.instance().tables.values() if entry.status == "active"]
    bare = [entry.name for entry in entries]
    catalog = context.catalog()
    known: dict[str, Relation | None] = {entry.full_name: None for entry in entries}
    for entry in entries:
        if entry.name.lower() not in query.lower():
            continue  # the query does not name it; opening a thousand tables for one query would take long
        relation = known[entry.full_name] = Relation(read_entry(store, root, entry))
        table = Table(relation)
        if entry.database not in catalog.names():
            catalog.register_schema(entry.database, Schema.memory_schema())
        catalog.schema(entry.database).register_table(entry.name, table)
        if bare.count(entry.name) == 1:
            context.register_table(entry.name, table)
    return known


def _batches(frame: Any, columns: dict[str, list[str]]) -> Iterator[pa.RecordBatch]:
    try:
        for batch in frame.execute_stream():
            arrow = batch.to_pyarrow()
            if arrow.num_rows:
                yield arrow
    except Exception as failure:
        raise _explained(failure, columns) from failure


def _chain(first: pa.RecordBatch | None, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if first is not None:
        yield first
        yield from rest


def _explained(failure: Exception, columns: dict[str, list[str]]) -> DeployerError:
    text = str(failure).replace("DataFusion error: ", "")
    if re.search(r"(DDL|DML|Statement) not supported", text):
        return Refused("`deployer sql` only reads: give one SELECT", remedy="tables are changed by `up` and `ingest`")
    if missing := re.search(r"table '([^']+)' not found", text):
        name = missing[1].removeprefix("datafusion.").removeprefix("public.")
        known = list(columns) + [full.split(".", 1)[1] for full in columns]
        near = nearest(name, known)
        return InvalidInput(
            f"there is no table {name!r}",
            remedy=f"did you mean {near!r}?" if near else f"tables: {', '.join(sorted(columns))}",
        )
    if missing := re.search(r"No field named ([^.\n]+(?:\.[^.\s]+)*?)\.(?:\s|$)", text):
        name = missing[1].replace('"', "").rsplit(".", 1)[-1]
        names = sorted({column for each in columns.values() for column in each})
        near = nearest(name, names)
        if near and not _BARE.fullmatch(near):
            remedy = f"did you mean `{near}`? Write names with other characters than a-z, digits and _ in backticks"
        else:
            remedy = f"did you mean {near!r}?" if near else "`deployer describe TABLE` lists columns"
        return InvalidInput(f"there is no column {name!r}", remedy=remedy)
    if parsing := re.search(r'ParserError\("(.*?)"\)', text):
        return InvalidInput(f"the SQL cannot be read: {parsing[1]}", remedy="give one SELECT")
    return InvalidInput(
        f"the SQL cannot be run: {first_line(failure)}", remedy="see `deployer tables` and `deployer describe TABLE`"
    )
