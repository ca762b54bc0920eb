"""The source rows of a merge: matched with the table's columns, cast, and checked for repeated keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.errors import InvalidInput, Refused
from deployer.platform.text.formatting import count
from deployer.tables.append import as_arrow
from deployer.tables.ingest.keys.sets import KeySet
from deployer.tables.ingest.keys.unique import describe_keys
from deployer.tables.ingest.rows.bad_rows import refusal
from deployer.tables.ingest.rows.check import SourceRows, check, match_columns
from deployer.tables.ingest.rows.computed_values import Computing, without_computed
from deployer.tables.read.key_values import unknown_column

if TYPE_CHECKING:
    from numpy.typing import NDArray

LISTED = 10  #: maximum number of rows that an error lists
SHOWN = 5  #: maximum number of duplicate keys in a message


class KnownTable(Protocol):
    """The properties of the table that receives rows."""

    @property
    def address(self) -> str: ...
    @property
    def schema(self) -> pa.Schema: ...
    @property
    def row_keys(self) -> tuple[str, ...]: ...
    @property
    def root(self) -> str: ...


@dataclass(frozen=True, slots=True)
class RepeatedKeys:
    """The number of keys that are in more than one row, and the first of these keys as text for messages."""

    count: int = 0
    examples: tuple[str, ...] = ()

    def joined(self, other: RepeatedKeys) -> RepeatedKeys:
        return RepeatedKeys(self.count + other.count, (*self.examples, *other.examples)[:SHOWN])


@dataclass(frozen=True, slots=True)
class MergeSource:
    """The rows of a merge. `given` has the columns of the source, with the table's types. `on` are the key columns.

    `keyed` are the places of the rows whose key has no null, and `keys` is the set of their keys. `repeated` are the
    keys of more than one row; a merge is refused if there are any.
    """

    given: pa.RecordBatch
    on: tuple[str, ...]
    keyed: NDArray[np.int64]
    keys: KeySet
    repeated: RepeatedKeys

    @staticmethod
    def of(rows: Any, on: Sequence[str] | str | None, table: KnownTable) -> MergeSource:
        """Returns the rows after checking them against the table's columns. `on` defaults to the row keys.

        Raises InvalidInput for columns that do not fit, and Refused for values that do not fit.
        """
        names = keys_of(on, table)
        source = as_arrow(rows, table.address)
        schema = columns_given(source.schema, names, table)
        batches = source.combine_chunks().to_batches() if isinstance(source, pa.Table) else [source]
        batch = batches[0] if batches else pa.RecordBatch.from_pylist([], source.schema)
        given = checked_rows(batch, schema, [name for name in table.row_keys if name in schema.names], table)
        given = given.select(without_computed(schema).names)  # computed columns have only nulls here
        keyed = np.ones(given.num_rows, np.bool_)
        for name in names:
            keyed &= np.asarray(pc.is_valid(given.column(name)))
        places = np.flatnonzero(keyed)
        keys = pa.Table.from_batches([given.select(list(names))]).take(pa.array(places))
        found = KeySet(keys.columns)
        return MergeSource(given, names, places, found, repeated_keys(found, keys))

    def full_rows(self, places: NDArray[np.int64], table: KnownTable) -> pa.RecordBatch:
        """Returns the rows at these places with all columns of the table. A missing column gets its default, or null.

        Raises InvalidInput if a required column is missing, and Refused for values that are not valid.
        """
        try:
            match_columns(self.given.schema, table.schema, where=table.address, text=False, ignore_extra=False)
        except InvalidInput as error:
            raise InvalidInput(
                f"{count(len(places), 'row')} with keys that the table does not have cannot be inserted: {error.what}",
                where=table.address,
                remedy="add the column to the rows, or leave out such rows with `when_not_matched` = ignore (on the "
                "command line --when-not-matched ignore)",
            ) from None
        return checked_rows(self.given.take(pa.array(places)), table.schema, table.row_keys, table)


def columns_given(source: pa.Schema, on: Sequence[str], table: KnownTable) -> pa.Schema:
    """Returns the table's columns that the source has. Raises InvalidInput if the source lacks one of the columns `on`,
    and for columns that do not fit."""
    for name in on:
        if name not in source.names:
            raise InvalidInput(
                f"the rows have no column {name!r}, which they are to be matched by",
                where=table.address,
                remedy="add the column to the rows, or match by other columns with `on` (on the command line --on)",
            )
    there = frozenset(source.names)
    schema = pa.schema([each for each in table.schema if each.name in there])
    try:
        match_columns(source, schema, where=table.address, text=False, ignore_extra=False)
    except InvalidInput as error:
        remedy = "rename, cast or leave out the columns of the rows"
        raise InvalidInput(error.what, where=table.address, remedy=remedy) from None
    return schema


def checked_rows(
    batch: pa.RecordBatch,
    schema: pa.Schema,
    row_keys: Sequence[str],
    table: KnownTable,
    changed: frozenset[str] | None = None,
) -> pa.RecordBatch:
    """Returns the rows with exactly the columns of `schema`. Raises Refused, which lists some rows, for rows that do
    not fit.

    `changed` are the columns that get other values, if the rows are rows of the table.
    """
    numbers = np.arange(1, batch.num_rows + 1)
    computing = Computing(table.root, changed)
    checked = check(SourceRows(batch, numbers), schema, row_keys, text=False, listed=LISTED, computing=computing)
    if checked.bad.rows:
        raise refusal({"the rows": checked.bad}, table.address, "merged")
    return checked.rows


def keys_of(on: Sequence[str] | str | None, table: KnownTable) -> tuple[str, ...]:
    """Returns the columns by which rows are matched: `on`, or by default the row keys. Raises InvalidInput if there are
    none, or for columns that cannot be used."""
    names = table.row_keys if on is None else (on,) if isinstance(on, str) else tuple(on)
    if not names:
        raise InvalidInput(
            "the table has no row keys that rows could be matched by" if on is None else "`on` names no column",
            where=table.address,
            remedy="name the columns that identify a row with `on`",
        )
    for name in names:
        if name not in table.schema.names:
            raise unknown_column(name, table.schema.names, table.address)
        if pa.types.is_nested(table.schema.field(name).type):
            raise InvalidInput(
                f"rows cannot be matched by column {name!r} of type {table.schema.field(name).type}",
                where=table.address,
                remedy="match by columns of single values",
            )
    if len(set(names)) < len(names):
        raise InvalidInput("`on` names a column twice", where=table.address, remedy="name each column once")
    return names


def repeated_keys(found: KeySet, keys: pa.Table) -> RepeatedKeys:
    """Returns the keys that several rows have; `found` is the set of `keys`."""
    repeats = np.flatnonzero(found.repeats())
    if not len(repeats):
        return RepeatedKeys()
    distinct = np.unique(found.codes[repeats])
    first = found.first_rows()[distinct[:SHOWN]]
    return RepeatedKeys(len(distinct), tuple(describe_keys(keys.take(pa.array(first)))))


def refuse_repeated(repeated: RepeatedKeys, table: KnownTable) -> None:
    """Raises Refused, with examples, if several rows of a source have the same key."""
    if not repeated.count:
        return
    are, examples = "is" if repeated.count == 1 else "are", ", ".join(repeated.examples)
    raise Refused(
        f"{count(repeated.count, 'key')} {are} in more than one of the rows (first: {examples}), so the "
        "row to merge is unknown; nothing was changed",
        where=table.address,
        remedy="leave one row for each key",
    )
