"""The model of a parsed view query, and of the sources that give it rows.

A query is a *row view* (each row comes from one row of a source: select, filter, expressions, functions, chunkers,
unions, joins with small tables by key) or a *group view* (GROUP BY). The rows of a group view have the partial states
of its aggregates in hidden columns, so that a refresh can update them from the changes of the sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, cast

import pyarrow as pa

from deployer.functions.model import UDF, Failure, Form
from deployer.functions.packages.package import PackageInfo
from deployer.specs.types.arrow import arrow_type
from deployer.specs.types.parser import parse_type
from deployer.specs.types.view import HIDDEN
from deployer.views.query.program import GroupProgram, Program

ROW_ID = "_rowid"  #: the column of a source's stable row ids, as Lance names it; uint64 in Arrow

ChangeKind = Literal["insert", "update", "delete"]


@dataclass(frozen=True, slots=True)
class SourceSchema:
    """The schema of a source. `unique`: no two rows have the same row keys.

    `schema` has the visible columns. `stable_row_ids` says that rows keep their ids when they move to other files.
    """

    table: str  #: full name
    schema: pa.Schema
    row_keys: tuple[str, ...] = ()
    unique: bool = False
    stable_row_ids: bool = False


@dataclass(frozen=True, slots=True)
class FunctionSignature:
    """The facts about a function that the check of a query needs, without its code.

    The `type` of a function with several outputs is a struct of them. `parameters` is empty for a function of batches.
    """

    parameters: tuple[str, ...]
    form: Form
    type: pa.DataType

    @staticmethod
    def of_udf(udf: UDF) -> FunctionSignature:
        """Returns the signature of a function."""
        outputs = [(each.name, arrow_type(each.type)) for each in udf.outputs]
        return FunctionSignature(udf.parameters, udf.form, _type_of(outputs))

    @staticmethod
    def of_package(info: PackageInfo) -> FunctionSignature:
        """Returns the signature of a packaged function, from the description of its package, without running it."""
        outputs = [(name or None, arrow_type(parse_type(kind))) for name, kind in info.outputs]
        return FunctionSignature(info.parameters, cast(Form, info.form), _type_of(outputs))


def _type_of(outputs: Sequence[tuple[str | None, pa.DataType]]) -> pa.DataType:
    if outputs[0][0] is None:
        return outputs[0][1]
    return pa.struct([pa.field(str(name), kind) for name, kind in outputs])


@dataclass(frozen=True, slots=True)
class ViewSource:
    """A table that a query reads. `columns` are all columns that a part of the query needs, including hidden
    identities.

    `where` is a condition on the source's own columns that is true for every row that the view needs; it serves to skip
    fragments and files. `small` says that the table is only joined by its key, and is held in memory.
    """

    table: str
    columns: tuple[str, ...]
    where: str = ""
    small: bool = False


@dataclass(frozen=True, slots=True)
class ViewQuery:
    """A query that can be maintained. `parse_view` returns it.

    `schema` has the visible columns. `stored_schema` has the visible columns, then the hidden ones. `identity` names
    the columns of the stored schema by which rows are replaced: `ViewDelta.removed` has values of these columns, which
    may be null, and all rows of the view with these values are removed. `default_keys` names visible columns without
    nulls that can be row keys; it is empty where there are none. `unique_keys` says that no two rows have the same
    default keys.

    `lineage` names the columns of sources, as (table, column), that each visible column is computed from.
    `full_refresh` has the reason why changes of a kind in a table need a full refresh; all other changes can be
    applied incrementally.
    """

    text: str  #: the query on one line, without comments
    sources: tuple[ViewSource, ...]
    schema: pa.Schema
    stored_schema: pa.Schema
    identity: tuple[str, ...]
    default_keys: tuple[str, ...]
    unique_keys: bool
    lineage: Mapping[str, tuple[tuple[str, str], ...]]
    full_refresh: Mapping[tuple[str, ChangeKind], str]
    functions: tuple[str, ...]  #: names in the query
    program: Program = field(repr=False, compare=False)  #: how it is computed; only `deployer.views.query` uses it

    @property
    def grouped(self) -> bool:
        """Returns whether this is a group view."""
        return isinstance(self.program, GroupProgram)

    @property
    def tables(self) -> tuple[str, ...]:
        """The full names of the sources."""
        return tuple(each.table for each in self.sources)

    @property
    def hidden(self) -> tuple[str, ...]:
        """The names of the hidden columns."""
        return tuple(name for name in self.stored_schema.names if name.startswith(HIDDEN))


class SourceReader(Protocol):
    """Reads the sources, all at the versions that the refreshed view reflects."""

    def read(self, table: str, columns: Sequence[str], where: str) -> Iterator[pa.RecordBatch]:
        """Yields rows with the columns, which may include `_rowid`.

        `where` is a condition in DataFusion's SQL on columns of the source, empty for all rows. Rows that do not match
        may be included; they are removed later.
        """
        ...


class SourceChanges(Protocol):
    """Reads the changes of the sources between the versions that the view reflects now and after the refresh.

    Changes are net: a row that was added and removed in between is on neither side, nor is a row with unchanged values.
    """

    @property
    def tables(self) -> Sequence[str]:
        """The full names of the sources in which any row changed."""
        ...

    def before(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yields rows that were deleted or updated, with their former values; columns as of `SourceReader.read`."""
        ...

    def after(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yields rows that were inserted or updated, with their new values."""
        ...


class StoredView(Protocol):
    """Reads the rows of the view before the refresh."""

    def rows(self, identities: pa.Table, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yields these columns of the rows that have these values of `ViewQuery.identity`. Null is equal to null.

        A group that is read although it did not change is removed and added again with the same values.
        """
        ...


@dataclass(frozen=True, slots=True)
class ViewDelta:
    """The delta of a view: rows with the `removed` identities are deleted, then the `added` rows are inserted.

    `removed` has the columns `ViewQuery.identity`. It may contain identities that the view does not have, or the same
    identity twice. `added` has the stored schema. Both are streams; read `removed` first. `all_return` says that each
    identity in `removed` is exactly once in `added`.
    """

    removed: Iterator[pa.RecordBatch]
    added: Iterator[pa.RecordBatch]
    all_return: bool = False


#: Callback for rows for which a function failed: its name in the query, the rows of the call, and the failures.
OnFailures = Callable[[str, pa.RecordBatch, Sequence[Failure]], None]


class FullRefreshNeeded(Exception):
    """The view needs a full refresh. The message is the reason, as a sentence without its end."""
