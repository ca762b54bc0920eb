"""The computation of a query: the tables it scans and looks up, the functions it calls, and the states of its
aggregates.

Expressions are texts in DataFusion's SQL whose columns are flat names: `"f.distance"` is the column `distance` of the
table with the alias `f`, so that every step reads one relation, however many tables the query names.
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
    """Returns a name as SQL writes it in quotes."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Expression:
    """The SQL of a value, and the flat columns that it reads."""

    sql: str
    columns: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Output:
    """A column that a step gives."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Scan:
    """A table in the query. `columns` are those that the query reads of it."""

    alias: str
    table: str
    columns: tuple[str, ...]

    def flat(self, column: str) -> str:
        return f"{self.alias}.{column}"


@dataclass(frozen=True, slots=True)
class Lookup:
    """A small table that is joined by its unique row keys.

    `keys` are pairs of a value of the tables before it and a column of its own. `driver` is the alias of the table that
    these values are computed from. `condition` is on its own columns.
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
    names: tuple[str, ...] = ()  #: of the arguments, for a function of batches


@dataclass(frozen=True, slots=True)
class Unnest:
    """The items of a list, each in a row of its own. `fields` names flat columns and what they have of an item: a field
    of a struct, or None for the item. `position` is a flat column that counts the items from 1."""

    value: Expression
    fields: tuple[tuple[str, str | None], ...]
    position: str


@dataclass(frozen=True, slots=True)
class Identity:
    """The columns that identify a row of the first table. `unique`: no other row has the same."""

    columns: tuple[str, ...] = ()
    unique: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """One SELECT without its aggregates.

    `scan` is the table whose rows it goes through, `conditions` are joined by AND, `types` are those of all flat
    columns. `outputs` are the columns of the result; `identity` those in which rows are known.
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

    `name` is the column while it is computed, `stored` in the view, and `argument` the column of the rows that it is
    made of, empty for the number of rows. `type` is that while it is computed. `counted` is the state of a sum that
    counts its values: a sum of none is null.
    """

    name: str
    kind: StateKind
    argument: str
    type: pa.DataType
    stored: str = ""
    counted: str = ""


def estimate_of(sketch: str) -> str:
    """Returns the name of the column that has the estimates of a column of sketches."""
    return f"{sketch}_estimate"


@dataclass(frozen=True, slots=True)
class Key:
    """A column of GROUP BY: `name` in the rows and while it is computed, `stored` in the view.

    `source` is the column of the scanned table that it is, empty for an expression.
    """

    name: str
    stored: str
    type: pa.DataType
    source: str = ""


@dataclass(frozen=True, slots=True)
class RowProgram:
    """A row view: the parts of UNION ALL, or one SELECT."""

    branches: tuple[Rows, ...]


@dataclass(frozen=True, slots=True)
class GroupProgram:
    """A group view. `rows` gives the columns of the keys and of what is aggregated.

    `outputs` are the visible columns, from the columns of keys and states. `single`: without GROUP BY, so that there is
    one row even of no rows.
    """

    rows: Rows
    keys: tuple[Key, ...]
    states: tuple[State, ...]
    outputs: tuple[Output, ...]
    single: bool


Program = RowProgram | GroupProgram
