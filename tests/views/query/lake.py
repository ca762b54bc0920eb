"""Sources and views as plain Arrow tables, as the queries of views read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from datafusion import SessionConfig, SessionContext

from deployer.functions import UDF
from deployer.views.query.build import build
from deployer.views.query.delta import delta
from deployer.views.query.model import ROW_ID, FunctionSignature, SourceSchema, ViewQuery
from deployer.views.query.parsing.parse import parse_view

Row = dict[str, Any]


@dataclass
class Lake:
    """Tables by full name, each row by its stable row id."""

    schemas: Mapping[str, SourceSchema]
    rows: dict[str, dict[int, Row]] = field(default_factory=dict)
    given: int = 0  #: row ids
    read_rows: int = 0  #: by `read`

    def insert(self, table: str, *rows: Row) -> None:
        for row in rows:
            self.given += 1
            self.rows.setdefault(table, {})[self.given] = row

    def copy(self) -> Lake:
        return Lake(self.schemas, {name: dict(rows) for name, rows in self.rows.items()}, self.given)

    def table(self, name: str, rows: Mapping[int, Row] | None = None) -> pa.Table:
        held = self.rows.get(name, {}) if rows is None else rows
        schema = self.schemas[name].schema
        table = pa.Table.from_pylist(list(held.values()), schema)
        return table.append_column(ROW_ID, pa.array(held.keys(), pa.uint64()))

    def parse(self, query: str, functions: Mapping[str, UDF] | None = None) -> ViewQuery:
        signatures = {name: FunctionSignature.of_udf(each) for name, each in (functions or {}).items()}
        return parse_view(query, self.schemas.__getitem__, signatures)

    # SourceReader

    def read(self, table: str, columns: Sequence[str], where: str) -> Iterator[pa.RecordBatch]:
        found = self.table(table)
        if where:  # as a real reader leaves rows out
            context = SessionContext(SessionConfig().with_target_partitions(1))
            frame: Any = context.from_arrow(found)
            found = frame.filter(frame.parse_sql_expr(where)).to_arrow_table()
        self.read_rows += found.num_rows
        yield from found.select(list(columns)).to_batches(max_chunksize=7)


@dataclass
class Changed:
    """What changed between two states of a lake."""

    then: Lake
    now: Lake

    @property
    def tables(self) -> list[str]:
        return [name for name in self.now.schemas if self.then.rows.get(name) != self.now.rows.get(name)]

    def before(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from self._only(self.then, self.now, table, columns)

    def after(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from self._only(self.now, self.then, table, columns)

    def _only(self, own: Lake, other: Lake, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        others = other.rows.get(table, {})
        rows = {number: row for number, row in own.rows.get(table, {}).items() if others.get(number) != row}
        yield from own.table(table, rows).select(list(columns)).to_batches(max_chunksize=5)


@dataclass
class Kept:
    """The rows of a view, which deltas change as a refresh does."""

    query: ViewQuery
    table: pa.Table

    @staticmethod
    def built(query: ViewQuery, lake: Lake, functions: Mapping[str, UDF] | None = None) -> Kept:
        return Kept(query, pa.Table.from_batches(build(query, lake, functions), query.stored_schema))

    def rows(self, identities: pa.Table, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        assert identities.schema.names == list(self.query.identity)
        yield from self._chosen(identities, among=True).select(list(columns)).to_batches(max_chunksize=3)

    def refresh(self, then: Lake, now: Lake, functions: Mapping[str, UDF] | None = None) -> None:
        found = delta(self.query, Changed(then, now), now, self, functions)
        identity = pa.schema([self.query.stored_schema.field(name) for name in self.query.identity])
        removed = pa.Table.from_batches(found.removed, identity)
        added = pa.Table.from_batches(found.added, self.query.stored_schema)
        kept = self._chosen(removed, among=False) if self.query.identity else self.table
        self.table = pa.concat_tables([kept, added])

    def visible(self) -> pa.Table:
        return self.table.select(self.query.schema.names)

    def _chosen(self, identities: pa.Table, *, among: bool) -> pa.Table:
        names = list(self.query.identity)
        wanted = set(zip(*(identities.column(name).to_pylist() for name in names), strict=True))
        own = zip(*(self.table.column(name).to_pylist() for name in names), strict=True)
        return self.table.filter(pa.array([(each in wanted) == among for each in own], pa.bool_()))
