"""The computation of a query: the tables it scans and looks up, the functions it calls, and the states of its
aggregates.

Expressions are texts in DataFusion's SQL whose columns are flat names: `"f.distance"` is the column `distance` of the
table with the alias `f`. Therefore every step reads a single relation, however many tables the query names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

BRANCH = "__branch"  #: hidden column: the part of UNION ALL that a row comes from
GROUP = "__group"  #: hidden column of the one row of a query that aggregates without GROUP BY
ROWS = "__rows"  #: hidden column: the number of source rows of a group


def quoted(name: str) -> str:
    """Returns a name in double quotes, for SQL."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Expression:
    """The SQL of a value, and the flat columns that it reads."""

    sql: str
    columns: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Output:
    """A column that a step returns."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Scan:
    """A table in the query. `columns` are the columns of the table that the query reads."""

    alias: str
    table: str
    columns: tuple[str, ...]

    def flat(self, column: str) -> str:
        return f"{self.alias}.{column}"


@dataclass(frozen=True, slots=True)
class Lookup:
    """A small table that is joined by its unique row keys.

    `keys` are pairs of a value from an earlier table and a column of this table. `driver` is the alias of the earlier
    table. `condition` uses only columns of this table.
    """

    scan: Scan
    kind: Literal["inner", "left"]
    keys: tuple[tuple[Expression, str], ...]
    driver: str
    condition: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function for each row; its result is the column `output`."""

    function: str
    arguments: tuple[Expression, ...]
    output: str
    type: pa.DataType
    names: tuple[str, ...] = ()  #: the names of the arguments, for a function of batches


@dataclass(frozen=True, slots=True)
class Unnest:
    """The items of a list, each in a separate row. `fields` has pairs of a flat column and the part of an item that it
    contains: the name of a struct's field, or None for the whole item. `position` is a flat column that counts the
    items from 1; empty for no such column."""

    value: Expression
    fields: tuple[tuple[str, str | None], ...]
    position: str


@dataclass(frozen=True, slots=True)
class Identity:
    """The columns that identify a row of the first table. `unique` says that no two rows have the same values."""

    columns: tuple[str, ...] = ()
    unique: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """One SELECT without its aggregates.

    `scan` is the first table, whose rows are streamed. `conditions` are joined by AND. `types` has the types of all
    flat columns. `outputs` are the columns of the result, and `identity` the columns that identify its rows.
    """

    scan: Scan
    lookups: tuple[Lookup, ...]
    calls: tuple[Call, ...]
    unnest: Unnest | None
    conditions: tuple[Expression, ...]
    outputs: tuple[Output, ...]
    source: Identity
    identity: tuple[Output, ...]
    types: Mapping[str, pa.DataType]

    @property
    def scans(self) -> tuple[Scan, ...]:
        return (self.scan, *(each.scan for each in self.lookups))


StateKind = Literal["rows", "count", "sum", "float sum", "min", "max", "sketch"]


@dataclass(frozen=True, slots=True)
class State:
    """The stored state of a group, from which an aggregate is computed.

    `name` is the column during the computation, and `stored` the column of the view. `argument` is the column of the
    rows from which the state is computed; empty for the number of rows. `type` is the type during the computation.
    `counted` is, for a sum, the state that counts its values: a sum without values is null.
    """

    name: str
    kind: StateKind
    argument: str
    type: pa.DataType
    stored: str = ""
    counted: str = ""


def estimate_of(sketch: str) -> str:
    """Returns the name of the column with the estimates for a column of sketches."""
    return f"{sketch}_estimate"


@dataclass(frozen=True, slots=True)
class Key:
    """A column of GROUP BY. `name` is the column of the rows and during the computation, `stored` the column of the
    view.

    `source` is the column of the scanned table that the key is equal to; empty for an expression.
    """

    name: str
    stored: str
    type: pa.DataType
    source: str = ""


@dataclass(frozen=True, slots=True)
class RowProgram:
    """The program of a row view: the parts of UNION ALL, or one SELECT."""

    branches: tuple[Rows, ...]


@dataclass(frozen=True, slots=True)
class GroupProgram:
    """The program of a group view. `rows` computes the columns of the keys and of the aggregated values.

    `outputs` are the visible columns, computed from the columns of keys and states. `single` says that the query has no
    GROUP BY: the view then has one row even if there are no source rows.
    """

    rows: Rows
    keys: tuple[Key, ...]
    states: tuple[State, ...]
    outputs: tuple[Output, ...]
    single: bool


Program = RowProgram | GroupProgram
